# SPDX-License-Identifier: Apache-2.0
"""Counts the distinct values of columns, as Java's ``compute_table_stats`` does.

The rows of the newest snapshot are read once. A Puffin file stores a sketch for each column, and
the table metadata names this file for the snapshot. Spark and Trino read the file. No new snapshot
is made.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from lakeformat.errors import InvalidRequestError, LakeError
from lakeformat.files.puffin import PuffinWriter
from lakeformat.iceberg.analyze.report import IcebergAnalyzeReport
from lakeformat.iceberg.analyze.statistics_file import publish_statistics
from lakeformat.iceberg.analyze.theta_sketch import BLOB_TYPE, ThetaSketch
from lakeformat.iceberg.arrow_types import to_arrow_type
from lakeformat.iceberg.branch_history import history_of
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.single_value_bytes import single_value_bytes
from lakeformat.iceberg.metadata.snapshot import Snapshot
from lakeformat.iceberg.metadata.statistics import StatisticsFile
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.read.plan import TableState
from lakeformat.iceberg.read.scan import Scan
from lakeformat.iceberg.schema import Schema
from lakeformat.iceberg.types import Field, PrimitiveType
from lakeformat.tables.scan_arguments import columns_named
from lakeformat.types.closest import closest
from lakeformat.types.count_text import counted

__all__ = ["OnRows", "analyze"]

_log = logging.getLogger(__name__)

OnRows: TypeAlias = Callable[[int], object]
"""A callback that receives the number of rows read so far."""


def analyze(
    handle: TableHandle,
    columns: Sequence[str] | None,
    *,
    dry_run: bool = False,
    on_progress: OnRows | None = None,
) -> IcebergAnalyzeReport:
    """Count the distinct values of each column and store the counts for the newest snapshot.

    ``columns`` lists names; None or "all" means all columns whose values can be counted. If the
    snapshot already has these statistics, no data file is read. A dry run reads the rows, but
    stores nothing. Raise ``InvalidRequestError`` for a column that does not exist or cannot be
    counted, or if the snapshot expires meanwhile.
    """
    loaded = handle.load()
    fields, skipped = _chosen(loaded, columns)
    snapshots = history_of(loaded.metadata, handle.branch, handle.uri).snapshots
    report = IcebergAnalyzeReport(
        table=handle.uri,
        dry_run=dry_run,
        skipped=skipped,
        reason="the table has no snapshot, so there is nothing to count",
    )
    if not snapshots:
        return report
    snapshot = snapshots[-1].snapshot
    number = snapshot.snapshot_id
    report = replace(report, analyzed_snapshot_id=number)
    if not fields:
        return replace(report, reason="no column has a type whose values can be counted")
    if (known := _known(loaded.metadata, number, fields)) is not None:
        reason = f"snapshot {number} has these statistics already; no action needed"
        return replace(report, statistics=known, replayed=True, reason=reason)
    if not dry_run:
        handle.pointer.require_writable()
    sketches, rows = _read(loaded, snapshot, fields, on_progress)
    found = {field.name: sketch.estimate for field, sketch in zip(fields, sketches, strict=True)}
    what = f"{counted(len(fields), 'column')} of {counted(rows, 'row')} of snapshot {number}"
    report = replace(
        report, statistics=found, rows=rows, reason=f"would publish statistics: {what}"
    )
    if dry_run:
        return report
    name = f"{number}-{handle.environment.new_id()}.stats"
    publish_statistics(
        handle, loaded, name, _ColumnSketches(loaded, snapshot, fields, sketches).write
    )
    _log.info("analyzed %s: %s", handle.uri, what)
    return replace(report, reason=f"statistics published: {what}")


def _chosen(loaded: LoadedMetadata, columns: object) -> tuple[list[Field], tuple[str, ...]]:
    """Return the columns to count, and the names of columns left out because of their types.

    Only a request for all columns leaves columns out. Raise ``InvalidRequestError`` if a named
    column cannot be counted.
    """
    schema = loaded.metadata.schema
    if columns is None or columns == "all":
        fields = [each for each in schema.fields if _can_be_counted(each)]
        return fields, tuple(each.name for each in schema.fields if each not in fields)
    names = columns_named(columns)
    if not names:
        raise InvalidRequestError(
            f"columns must be 'all' or a list of names, got {columns!r}: name a column, or leave "
            "columns out to count all"
        )
    return [_named(loaded, schema, each) for each in dict.fromkeys(names)], ()


def _named(loaded: LoadedMetadata, schema: Schema, name: str) -> Field:
    field = schema.named(name)
    if field is None or field not in schema.fields:
        names = schema.column_names
        raise InvalidRequestError(
            f"{loaded.places.uri} has no column {name!r} at the top level; its columns are "
            f"{', '.join(names)}{closest(name, names)}"
        )
    if not _can_be_counted(field):
        raise InvalidRequestError(
            f"column {name!r} of {loaded.places.uri} has the type {field.type}, whose values are "
            "not counted: leave it out"
        )
    return field


def _can_be_counted(field: Field) -> bool:
    if not isinstance(field.type, PrimitiveType) or field.type.name == "unknown":
        return False
    try:
        to_arrow_type(field.type)
    except LakeError:
        return False
    return True


def _known(
    metadata: TableMetadata, snapshot_id: int, fields: Sequence[Field]
) -> Mapping[str, int] | None:
    """Return the stored counts of distinct values by column name; None if one is missing."""
    counts: dict[int, int] = {}
    for file in metadata.statistics:
        if file.snapshot_id == snapshot_id:
            for blob in file.blob_metadata:
                text = (blob.get("properties") or {}).get("ndv", "")
                if blob.get("type") == BLOB_TYPE and text.isdecimal():
                    counts[blob["fields"][0]] = int(text)
    if not fields or any(each.id not in counts for each in fields):
        return None
    return {each.name: counts[each.id] for each in fields}


def _read(
    loaded: LoadedMetadata,
    snapshot: Snapshot,
    fields: Sequence[Field],
    on_progress: OnRows | None,
) -> tuple[list[ThetaSketch], int]:
    metadata = loaded.metadata
    state = TableState(loaded.places, metadata, snapshot, metadata.schema)
    sketches, rows = [ThetaSketch() for _ in fields], 0
    for batch in Scan(state, [each.name for each in fields]).to_batches():
        for sketch, column in zip(sketches, batch.columns, strict=True):
            sketch.add(single_value_bytes(column.unique()))
        rows += batch.num_rows
        if on_progress is not None:
            on_progress(rows)
    return sketches, rows


@dataclass(frozen=True, slots=True)
class _ColumnSketches:
    loaded: LoadedMetadata
    snapshot: Snapshot
    fields: Sequence[Field]
    sketches: Sequence[ThetaSketch]

    def write(self, uri: str) -> StatisticsFile:
        """Write a Puffin file and return its entry in the metadata."""
        storage, path = self.loaded.places.place(uri)
        number, sequence = self.snapshot.snapshot_id, self.snapshot.sequence_number
        blobs = []
        with storage.open_output(path) as stream:
            writer = PuffinWriter(stream)
            for field, sketch in zip(self.fields, self.sketches, strict=True):
                counts = {"ndv": str(sketch.estimate)}
                writer.add(
                    BLOB_TYPE,
                    sketch.to_bytes(),
                    fields=[field.id],
                    properties=counts,
                    snapshot_id=number,
                    sequence_number=sequence,
                )
                blobs.append(
                    {
                        "type": BLOB_TYPE,
                        "snapshot-id": number,
                        "sequence-number": sequence,
                        "fields": [field.id],
                        "properties": counts,
                    }
                )
            footer = writer.finish({"created-by": "lakeformat"})
        return StatisticsFile(number, uri, writer.size, footer, tuple(blobs))
