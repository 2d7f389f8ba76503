"""Each golden Paimon table, published and read by PyIceberg: ``docs/published-tables.md``.

``python -m tests.conformance.publish.golden_matrix`` writes the page.
"""

from __future__ import annotations

import logging
import re
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import lakeformat as lake
from lakeformat.errors import LakeError
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot_if_present
from lakeformat.paimon.metadata.tag import read_tags
from lakeformat.paimon.options.kinds import POSTPONE_BUCKET
from lakeformat.publish.check.check import ExpectedRows, publishable_rows
from lakeformat.publish.check.pyiceberg_files import pyiceberg_table
from lakeformat.publish.place import versions_of
from tests.golden.folder import golden_archive

__all__ = ["ARCHIVES", "PAGE", "Line", "golden_copies", "line_of", "page"]

ARCHIVES = ("format", "format-java", "foreign")
"""The archives with tables in Paimon's format; ``merge`` has cases without tables."""
PAGE = Path(__file__).resolve().parents[3] / "docs" / "published-tables.md"
_SCHEMA = "schema/schema-0"
_ADVICE = re.compile(r": (?=set |create )|\. ")
"""The end of the reason in a refusal, before what to do."""
_HEAD = """# Golden tables, published

<!-- Written by `python -m tests.conformance.publish.golden_matrix`: a test compares it. -->

Golden tables are test data that pypaimon and Paimon's Java library have written: the Paimon tables
in the archives `format`, `format-java` and `foreign` in `tests/golden`. This page shows which of
them can be [published as Iceberg tables](publish.md). A test tries to publish each one with its
history, and reads it with PyIceberg.

- `table`: the archive in `tests/golden` that has the table, and the name of the table.
- `kind`: append table, or primary-key table with its `merge-engine`.
- `rows`: the number of rows that readers of Paimon see; empty if this library cannot read them.
- `published`: the number of rows in the [published files](publish.md#the-rows-that-readers-see),
  without the rows that wait for a compaction; empty if the table is refused.
- `compacted`: the number of published rows after a full compaction. It is empty for refused tables
  and append tables. It is also empty for tables with
  [postponed buckets](buckets.md#postponed-buckets-bucket---2), because their compaction adds rows
  that `rows` does not count.
- `outcome`: "equal" means that PyIceberg reads exactly the published rows, at each snapshot
  and tag; "also at" lists the tags; "refused" is followed by the reason.
  The section [What is refused](publish.md#what-is-refused) explains what to do.

{equal} of {all} tables have the outcome "equal"; the other tables are refused.

The tests in `tests/readers` read the {equal} equal tables with other readers. A table with a
primary key and a fixed number of buckets is fully compacted first. DuckDB reads all tables
correctly. Iceberg-Rust fails for the 4 tables with `TIMESTAMP` of 0 to 3 digits. ClickHouse reads 2
tables with a difference: NULL in nested columns becomes an empty value.

| table | kind | rows | published | compacted | outcome |
|---|---|---|---|---|---|
"""


@dataclass(frozen=True, slots=True)
class Line:
    """One golden table."""

    name: str
    kind: str
    rows: str
    """The rows that readers of Paimon see."""
    published: str
    """The rows of the published files."""
    compacted: str
    """The rows of the published files after a full compaction; empty for an append table."""
    outcome: str

    def __str__(self) -> str:
        cells = (self.kind, self.rows, self.published, self.compacted, self.outcome)
        return f"| `{self.name}` | {' | '.join(cells)} |"


def golden_copies(place: Path) -> Iterator[tuple[str, str]]:
    """Unpack every golden table below ``place``; yield its name and the name in a catalog there."""
    for archive in ARCHIVES:
        with tarfile.open(golden_archive(archive)) as content:
            names = [each.name for each in content.getmembers() if each.name.endswith(_SCHEMA)]
            roots = [name.removesuffix(f"/{_SCHEMA}") for name in names if "/branch/" not in name]
            for root in sorted(roots):
                table = root.removesuffix("/table").partition("/")[2].replace("/", "_").lower()
                database = archive.replace("-", "_")
                target = place / f"{database}.db" / table
                for each in content.getmembers():
                    if each.name.startswith(f"{root}/"):
                        each.name = each.name.removeprefix(f"{root}/")
                        content.extract(each, target, filter="data")
                yield f"{archive}/{table}", f"{database}.{table}"


def line_of(catalog: lake.Catalog, name: str, table_name: str) -> Line:
    """Publish one table, read it with PyIceberg at the head and each tag, and describe it."""
    kind = rows = published = compacted = ""
    try:
        table = catalog.table(table_name)
        kind = _kind(table)
        rows = str(table.scan().count())
        table = catalog.alter_table(
            table_name, lake.set_option("metadata.iceberg.storage", "table-location")
        )
        lake.publish_table(table)
        published, outcome = _compared(table)
        if table.schema.primary_keys and table.schema.table_options.bucket != POSTPONE_BUCKET:
            table.compact(strategy="full")
            compacted, after = _compared(table)
            outcome = after if compacted == rows else f"**differs**: {after} after the compaction"
    except LakeError as refusal:
        outcome = f"refused: {_plain(refusal, catalog, table_name)}"
    return Line(name, kind, rows, published, compacted, outcome)


def _compared(table: lake.Table) -> tuple[str, str]:
    handle = table._handle
    newest = versions_of(handle).newest()
    if newest is None:
        return "0", "no snapshot to publish"
    theirs = pyiceberg_table(newest)
    tags = {tag.name: tag.snapshot for tag in read_tags(handle.storage, handle.layout)}
    differing, count = [], 0
    for name, snapshot in _published_states(handle, newest.metadata, tags).items():
        expected = ExpectedRows(publishable_rows(handle, snapshot))
        batches = theirs.scan(snapshot_id=snapshot.id).to_arrow_batch_reader()
        _, missing, other = expected.differences(batches)
        if name == "main":
            count = len(expected)
        if missing or other:
            differing.append(f"{name}: {missing} missing, {other} other")
    if differing:
        return str(count), f"**differs**: {'; '.join(differing)}"
    shown_tags = [name for name in newest.metadata.references if name != "main"]
    return str(count), "equal" + (f", also at {', '.join(shown_tags)}" if shown_tags else "")


def _published_states(
    handle: TableHandle, metadata: TableMetadata, tags: dict[str, Snapshot]
) -> dict[str, Snapshot]:
    """Return the Paimon snapshot of each published one: by its number, then by tag and main."""
    kept = {snapshot.id: snapshot for snapshot in tags.values()}
    found = {}
    for each in metadata.snapshots:
        number = each.snapshot_id
        there = read_snapshot_if_present(handle.storage, handle.layout, number)
        found[str(number)] = there or kept[number]
    for name, each in metadata.references.items():
        found[name] = tags.get(name) or found[str(each.snapshot_id)]
    return found


def _kind(table: lake.Table) -> str:
    if not table.schema.primary_keys:
        return "append"
    return f"primary key, {table.schema.table_options.merge_engine}"


def _plain(refusal: LakeError, catalog: lake.Catalog, table_name: str) -> str:
    database, _, table = table_name.partition(".")
    place = f"{catalog.location}/{database}.db/{table}"
    reason = _ADVICE.split(str(refusal), maxsplit=1)[0]
    return reason.replace(place, "the table").replace("\n", " ").replace("|", "\\|")


def page() -> str:
    """Return the page about all golden tables."""
    with tempfile.TemporaryDirectory() as directory:
        catalog = lake.open_catalog(directory)
        lines = [line_of(catalog, *names) for names in golden_copies(Path(directory))]
    equal = sum(line.outcome.startswith("equal") for line in lines)
    head = _HEAD.format(equal=equal, all=len(lines))
    return head + "".join(f"{line}\n" for line in lines)


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"{PAGE.name} is written\n")
