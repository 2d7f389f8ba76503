"""Other readers see the rows of golden Paimon tables that are published, but for pinned limits."""

from __future__ import annotations

from pathlib import Path

import lakeformat as lake
from lakeformat.errors import LakeError
from lakeformat.paimon.metadata.snapshot_directory import latest_snapshot
from lakeformat.publish.check.check import ExpectedRows, publishable_rows
from tests.conformance.publish.golden_matrix import golden_copies
from tests.json_process import PeerError
from tests.readers.readers import Reader

EQUAL = 26
"""The published golden tables, as ``docs/published-tables.md`` counts them."""
MILLIS = "Unsupported Arrow data type: Timestamp(ms)"
LIMITS: dict[str, dict[str, str]] = {
    "PyIceberg": {},
    "DuckDB": {},
    "Iceberg-Rust": {
        "format/all_types_parquet": MILLIS,
        "foreign/zone_america_new_york_parquet_true": MILLIS,
        "foreign/zone_asia_shanghai_parquet_true": MILLIS,
        "foreign/zone_utc_parquet_true": MILLIS,
    },
    "ClickHouse": {
        "format/all_types_parquet": "differs",
        "format-java/stats_truncation": "differs",
    },
}
"""The tables that a reader cannot read correctly, with a part of its error, or ``differs``: there
ClickHouse reads NULL in nested columns as empty values.
"""


def outcome(reader: Reader, table: lake.Table) -> str:
    """Compare all rows; return ``equal``, ``differs`` or the error of the reader."""
    handle = table._handle
    head = latest_snapshot(handle.storage, handle.layout)
    if head is None:
        return "equal"
    file = lake.publish_table(table).metadata_file
    assert file is not None
    shown = lake.open_table(file, external_roots=[table.location])
    assert isinstance(shown, lake.IcebergTable)
    expected = ExpectedRows(publishable_rows(handle, head))
    try:
        _, missing, other = expected.differences(reader.read_arrow(shown).to_batches())
    except (PeerError, ValueError) as error:
        return str(error)
    return "differs" if missing or other else "equal"


def test_a_reader_sees_the_rows_of_golden_tables(tmp_path: Path, reader: Reader):
    catalog = lake.open_catalog(str(tmp_path))
    found, equal = {}, 0
    for name, table_name in golden_copies(tmp_path):
        option = lake.set_option("metadata.iceberg.storage", "table-location")
        try:
            table = catalog.alter_table(table_name, option)
            if table.schema.primary_keys and table.schema.table_options.bucket > 0:
                table.compact(strategy="full")
            lake.publish_table(table)
        except LakeError:
            continue  # refused: docs/published-tables.md has the reason
        seen = outcome(reader, table)
        if seen == "equal":
            equal += 1
        else:
            found[name] = seen
    limits = LIMITS[reader.name]
    assert found.keys() == limits.keys()
    for name, reason in limits.items():
        assert reason in found[name]
    assert equal + len(found) == EQUAL
