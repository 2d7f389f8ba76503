# SPDX-License-Identifier: Apache-2.0
"""Writes the counts of each partition to a file, as Java's ``compute_partition_stats`` does.

Only manifests are read. The table's metadata names the Parquet file for the newest snapshot; no
snapshot is made. The file has the columns of Java's file, in the same order.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.iceberg.analyze.report import PartitionStatisticsReport
from lakeformat.iceberg.analyze.statistics_file import publish_statistics
from lakeformat.iceberg.branch_history import history_of
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.snapshot import Snapshot
from lakeformat.iceberg.metadata.statistics import PartitionStatisticsFile
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.system_tables.files import partition_counts
from lakeformat.iceberg.system_tables.unified_partition import unified_type
from lakeformat.iceberg.types import Field, PrimitiveType
from lakeformat.iceberg.write.parquet_columns import parquet_schema, to_stored
from lakeformat.types.count_text import counted

__all__ = ["analyze_partitions"]

_log = logging.getLogger(__name__)
_LONG, _INT = PrimitiveType("long"), PrimitiveType("int")
_LAST = 13
"""The field id of the column ``dv_count``, the last column; only format version 3 has it."""


def analyze_partitions(handle: TableHandle, *, dry_run: bool = False) -> PartitionStatisticsReport:
    """Count the rows and files of each partition, and store the result in the metadata.

    If the newest snapshot already has these statistics, no manifest is read. A dry run reads the
    manifests, but stores nothing. Raise ``InvalidRequestError`` for a table without partitions, or
    if the snapshot expires meanwhile, and ``UnsupportedError`` if two partition fields have the
    same id.
    """
    loaded = handle.load()
    metadata = loaded.metadata
    _check_fields(unified_type(metadata).fields, handle.uri)
    snapshots = history_of(metadata, handle.branch, handle.uri).snapshots
    report = PartitionStatisticsReport(
        table=handle.uri,
        dry_run=dry_run,
        reason="the table has no snapshot, so there is nothing to count",
    )
    if not snapshots:
        return report
    snapshot = snapshots[-1].snapshot
    number = snapshot.snapshot_id
    report = replace(report, analyzed_snapshot_id=number)
    if any(each.snapshot_id == number for each in metadata.partition_statistics):
        reason = f"snapshot {number} has partition statistics already; no action needed"
        return replace(report, replayed=True, reason=reason)
    if not dry_run:
        handle.pointer.require_writable()
    rows = _rows(loaded, snapshot)
    what = f"{counted(len(rows), 'partition')} of snapshot {number}"
    report = replace(report, partitions=len(rows), reason=f"would publish statistics: {what}")
    if dry_run:
        return report
    name = f"partition-stats-{number}-{handle.environment.new_id()}.parquet"
    publish_statistics(handle, loaded, name, partial(_write, loaded, number, rows))
    _log.info("analyzed partitions of %s: %s", handle.uri, what)
    return replace(report, reason=f"statistics published: {what}")


def _check_fields(fields: Sequence[Field], uri: str) -> None:
    """Raise an error if there is no partition field, or if two of them have the same id."""
    if not fields:
        raise InvalidRequestError(
            f"{uri} has no partitions to count: call analyze() for statistics of columns"
        )
    for field, following in pairwise(fields):  # ordered by id
        if field.id == following.id:
            raise UnsupportedError(
                f"the partition fields {following.name!r} and {field.name!r} of {uri} have the "
                f"same field id {field.id}, so a statistics file cannot distinguish them; nothing "
                "was written. Use the system table partitions, which has the same counts"
            )


def _fields(metadata: TableMetadata) -> tuple[Field, ...]:
    """Return the columns of the statistics file for the format version of the table.

    From version 3 on, the counts of delete files are required, and the column ``dv_count`` is
    added.
    """
    is_third = metadata.format_version > 2
    named = (
        ("spec_id", _INT, True),
        ("data_record_count", _LONG, True),
        ("data_file_count", _INT, True),
        ("total_data_file_size_in_bytes", _LONG, True),
        ("position_delete_record_count", _LONG, is_third),
        ("position_delete_file_count", _INT, is_third),
        ("equality_delete_record_count", _LONG, is_third),
        ("equality_delete_file_count", _INT, is_third),
        ("total_record_count", _LONG, False),
        ("last_updated_at", _LONG, False),
        ("last_updated_snapshot_id", _LONG, False),
        ("dv_count", _INT, True),
    )
    fields = (
        Field(2 + place, name, kind, required=required)
        for place, (name, kind, required) in enumerate(named)
    )
    partition = Field(1, "partition", unified_type(metadata), required=True)
    return (partition, *(each for each in fields if is_third or each.id < _LAST))


def _rows(loaded: LoadedMetadata, snapshot: Snapshot) -> pa.Table:
    """Return one row for each partition of each spec, sorted by the partition and then by the spec
    id.
    """
    found = partition_counts(loaded, snapshot)
    fields = _fields(loaded.metadata)
    # Deletes are not applied, so the number of remaining rows is unknown, as in Java's file.
    found = found.append_column("total_record_count", pa.nulls(len(found), pa.int64()))
    schema = parquet_schema(fields)
    rows = to_stored(found, schema)
    order = pa.table(dict(_sorted_columns(rows)))
    keys = [(name, "ascending", "at_start") for name in order.column_names]
    return rows.take(pc.sort_indices(order, sort_keys=keys))


def _sorted_columns(rows: pa.Table) -> Iterator[tuple[str, pa.Array]]:
    """Yield the name and the values of each column by which the rows are sorted."""
    for place, values in enumerate(rows.column("partition").combine_chunks().flatten()):
        plain = values.storage if isinstance(values, pa.ExtensionArray) else values
        is_fixed = pa.types.is_fixed_size_binary(plain.type)
        yield str(place), plain.cast(pa.binary()) if is_fixed else plain
    yield "spec_id", rows.column("spec_id")


def _write(
    loaded: LoadedMetadata, number: int, rows: pa.Table, uri: str
) -> PartitionStatisticsFile:
    storage, path = loaded.places.place(uri)
    with storage.open_output(path) as stream:
        pq.write_table(rows, stream, store_schema=False)
        return PartitionStatisticsFile(number, uri, stream.tell())
