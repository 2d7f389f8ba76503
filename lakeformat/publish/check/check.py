# SPDX-License-Identifier: Apache-2.0
"""Compares the rows of the published files with the rows that installed readers return.

Rows are compared by hashes, in any order.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from lakeformat.errors import NotFoundError
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.paimon.handle import TableHandle, with_newest_schema
from lakeformat.paimon.metadata.schema_file import read_schema
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot_if_present
from lakeformat.paimon.read.plan import plan_columns
from lakeformat.paimon.read.scan import Scan
from lakeformat.paimon.table import Table
from lakeformat.publish.check.published_files import wrong_files
from lakeformat.publish.check.readers import READERS, Reader
from lakeformat.publish.check.report import PublicationCheckReport, ReaderCheck
from lakeformat.publish.lag import lag_of
from lakeformat.publish.place import versions_of
from lakeformat.publish.published_table import require_published_table
from lakeformat.publish.schemas import shown_before
from lakeformat.publish.targets.followers import targets_of
from lakeformat.publish.visible_files import visible_files
from lakeformat.rows.paired_rows import paired_rows
from lakeformat.rows.row_hashes import Hashes, row_hashes
from lakeformat.storage import ExternalRoots
from lakeformat.tables.table import offering_arguments
from lakeformat.types.count_text import counted

__all__ = ["ExpectedRows", "check_publication"]

_log = logging.getLogger(__name__)
_MOST_LETTERS = 300
"""An error message of a reader is cut to this many characters."""


@offering_arguments
def check_publication(table: Table, readers: Sequence[Reader] = READERS) -> PublicationCheckReport:
    """Read the published table with each installed Iceberg reader, and compare all rows.

    The expected rows are those of the published files; this library reads them without the Iceberg
    metadata. The data files that the metadata names are also compared with the published files.
    Nothing is changed. Memory grows by 32 bytes for each row of the table.

    Raise ``InvalidRequestError`` if the table is not published, and ``NotFoundError`` if the table
    no longer has the published snapshot.
    """
    handle = with_newest_schema(require_published_table(table))
    newest = versions_of(handle).shown()
    shown = None if newest is None else newest.metadata.current_snapshot
    outstanding = lag_of(handle, targets_of(handle)).finding
    if newest is None or shown is None:
        return _report(handle, None, None, 0, (outstanding, None), ())
    snapshot = read_snapshot_if_present(handle.storage, handle.layout, shown.snapshot_id)
    if snapshot is None:
        raise NotFoundError(
            f"the published snapshot {shown.snapshot_id} of {handle.uri} does not exist any more: "
            f"run `lake publish {handle.argument}`, then check again"
        )
    expected = ExpectedRows(publishable_rows(handle, snapshot))
    readable = _with_external_roots(newest, handle)
    found = tuple(_checked(each, readable, expected) for each in readers)
    problems = (outstanding, wrong_files(handle, newest, snapshot))
    return _report(handle, shown.snapshot_id, newest, len(expected), problems, found)


def _with_external_roots(newest: LoadedMetadata, handle: TableHandle) -> LoadedMetadata:
    """Return a copy of the metadata that also allows files in the table's external roots."""
    places = newest.places
    every = (*places.external_roots.locations, *handle.external_roots.locations)
    return replace(newest, places=replace(places, external_roots=ExternalRoots(every)))


class ExpectedRows:
    """The rows of the published files, kept as hashes."""

    def __init__(self, scan: Scan) -> None:
        self._schema = scan.schema
        self._hashes = _hashes(scan.to_batches(), scan.schema)

    def __len__(self) -> int:
        return len(self._hashes)

    def differences(self, batches: Iterable[pa.RecordBatch]) -> tuple[int, int, int]:
        """Return three counts: of the rows in ``batches``, of missing rows, and of unexpected rows.

        A missing row is expected, but not in ``batches``.
        """
        given = _hashes(batches, self._schema)
        ours, theirs = paired_rows(self._hashes, given)
        return len(given), int((~ours).sum()), int((~theirs).sum())


def _checked(reader: Reader, newest: LoadedMetadata, expected: ExpectedRows) -> ReaderCheck:
    found = ReaderCheck(reader=reader.name, outcome="equal")
    if missing := reader.missing_packages():
        return replace(found, outcome="not installed", reason=f"pip install {' '.join(missing)}")
    if not reader.can_reach(newest):
        reason = "it gets no credentials, so it reads only tables on local disks"
        return replace(found, outcome="not checked", reason=reason)
    try:
        rows, missing_rows, other_rows = expected.differences(reader.read(newest))
    except Exception as error:  # noqa: BLE001 - any error of a reader is the result of its check
        if limit := reader.limit_of(newest.metadata, str(error)):
            return replace(found, outcome="known limit", reason=limit)
        return replace(found, outcome="failed", reason=_shortened(error))
    counts = replace(found, rows=rows, missing_rows=missing_rows, other_rows=other_rows)
    if not missing_rows and not other_rows:
        return counts
    if limit := reader.limit_of(newest.metadata):
        return replace(counts, outcome="known limit", reason=limit)
    return replace(counts, outcome="differ")


def _hashes(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Hashes:
    parts = [np.empty((0, 2), np.uint64)]
    for batch in batches:
        columns = [batch.column(field.name).cast(field.type) for field in schema]
        parts.append(row_hashes(columns))
    return np.concatenate(parts)


def _shortened(error: Exception) -> str:
    text = f"{type(error).__name__}: {error}".replace("\n", " ")
    return text if len(text) <= _MOST_LETTERS else f"{text[:_MOST_LETTERS]}…"


def _report(
    handle: TableHandle,
    snapshot_id: int | None,
    newest: LoadedMetadata | None,
    rows: int,
    problems: tuple[str | None, str | None],
    readers: tuple[ReaderCheck, ...],
) -> PublicationCheckReport:
    equal = [each.reader for each in readers if each.outcome == "equal"]
    bad = [each.reader for each in readers if each.outcome in ("differ", "failed")]
    reason = "no snapshot is published"
    if snapshot_id is not None:
        reason = f"snapshot {snapshot_id} has {counted(rows, 'row')} in its published files"
        reason += f"; equal: {', '.join(equal) or 'no reader'}"
        reason += f"; failed or returned different rows: {', '.join(bad)}" if bad else ""
        has_wrong_files = problems[1] is not None
        reason += "; the metadata names wrong files or lacks files" if has_wrong_files else ""
    report = PublicationCheckReport(
        table=handle.uri,
        snapshot_id=snapshot_id,
        metadata_file=None if newest is None else newest.metadata_file,
        rows=rows,
        outstanding=problems[0],
        wrong_files=problems[1],
        readers=readers,
        reason=reason,
    )
    _log.info("check of the publication of %s: %s", handle.name, reason)
    return report


def publishable_rows(handle: TableHandle, snapshot: Snapshot) -> Scan:
    """Return a scan of those files of a snapshot whose rows need no merge.

    The scan has the columns of the snapshot that are published.
    """
    live = plan_columns(handle, snapshot).columns
    hidden = live.filter(~visible_files(handle.schema, live)).file_name.texts()
    names = [name for name in hidden if name is not None]
    newest = handle.schema
    if snapshot.schema_id != newest.id:
        of_snapshot = read_schema(handle.storage, handle.layout, snapshot.schema_id)
        handle = replace(handle, schema=of_snapshot)
    shown = shown_before(handle.schema, newest, newest.table_options.iceberg_format_version)
    return Scan(handle, snapshot, [field.name for field in shown.fields], without=names)
