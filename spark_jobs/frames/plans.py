# SPDX-License-Identifier: Apache-2.0
"""Plans of reads: the part that each task reads, and the function that computes the rows of a
part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard, cast

import pyarrow as pa

import lakeformat as lake
from lakeformat.paimon.read.changes.rows import ROW_KIND
from lakeformat.rows.conditions.filter import Where, as_predicate
from lakeformat.rows.conditions.predicate import col
from lakeformat.tables.arguments import Partitions, WindowEnd
from lakeformat.tables.results import Results, Rows
from lakeformat.types.arrow_types import to_arrow_schema, type_of_column
from lakeformat.types.types import DataField
from spark_jobs.frames.columns import ToSpark, spark_schema
from spark_jobs.frames.parts import PartWork, pack, pack_in_order
from spark_jobs.frames.tables import AnyTable

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from lakeformat.iceberg.read.scan import Scan as IcebergScan
    from lakeformat.mixed.read.scan import MixedScan

__all__ = [
    "AnyScan",
    "ReadPlan",
    "has_splits",
    "pack_splits",
    "plan_changes",
    "plan_results",
    "plan_splits",
    "schema_of",
]

AnyScan: TypeAlias = "lake.Scan | IcebergScan | MixedScan"
"""A scan with splits that tasks can read."""


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """The parts of a read, which can be pickled, and the function that reads the rows of a part."""

    schema: StructType
    parts: Sequence[Any]
    work: PartWork


def has_splits(rows: Results) -> TypeGuard[AnyScan]:
    """Return True for a scan with splits, False for rows that a single task must compute."""
    return isinstance(rows, lake.Scan) or hasattr(rows, "splits")


def plan_splits(
    scan: AnyScan, splits: Sequence[Any], at_once: int, *, with_kind: bool = False
) -> ReadPlan:
    """Return a plan for the splits of a scan.

    With ``with_kind`` each row gets the kind ``+I`` in the first column. Raise
    ``UnsupportedError`` for a column type that is not passed to Spark.
    """
    kind = (ROW_KIND,) if with_kind else ()
    if isinstance(scan, lake.Scan):
        schema = spark_schema((*kind, *scan.fields))
    else:
        schema = schema_of(pa.schema([*to_arrow_schema(kind), *scan.schema]))
    parts = pack_splits(scan, splits, at_once)
    return ReadPlan(schema, parts, partial(_read_splits, scan, ToSpark(schema), with_kind))


def pack_splits(scan: AnyScan, splits: Sequence[Any], at_once: int) -> list[list[Any]]:
    """Group splits into parts, one for each task.

    Options of the table set the target size of a part, and the size that a small split counts as.
    """
    if isinstance(scan, lake.Scan):
        options = scan.table_schema.table_options
        target = options.source_split_target_size_bytes
        least = options.source_split_open_file_cost_bytes
    else:
        target, least = scan.split_sizes
    return pack(
        [(split, split.size_bytes) for split in splits],
        at_once=at_once,
        target_bytes=target,
        least_bytes=least,
    )


def plan_changes(
    table: AnyTable,
    after: WindowEnd,
    upto: WindowEnd | None,
    mode: str,
    at_once: int,
    *,
    columns: Sequence[str] | None,
    where: Where | None,
    partitions: Partitions | None = None,
    with_kind: bool = True,
) -> ReadPlan:
    """Return a plan for the changes after one snapshot, up to and including another.

    For a Paimon table, a part has files in the order of snapshots. If two snapshots are compared, a
    part has whole buckets of both. For tables of other formats, and for ``$binlog``, the plan has a
    single part. Without ``with_kind`` there is no column of kinds, and only the rows of kind ``+I``
    and ``+U`` are returned. Raise ``UnsupportedError`` for a column type that is not passed to
    Spark, and the errors of ``Table.changes``.
    """
    if not with_kind:
        where = _that_stay(where)
    changes: Rows = table.changes(
        after, upto, mode, columns=columns, where=where, partitions=partitions
    )
    if not isinstance(changes, lake.Changes):
        # Of $binlog, one reader joins the old and the new row of an update; of an Iceberg table,
        # it finds the rows that a commit only moved.
        return plan_results(changes, with_kind=with_kind)
    options = cast("lake.Table", table).options
    schema, skipped = _shape(changes.schema, with_kind)
    parts = pack_in_order(
        [(part, part.size_bytes) for part in changes.parts()],
        at_once=at_once,
        target_bytes=options.source_split_target_size_bytes,
        least_bytes=options.source_split_open_file_cost_bytes,
    )
    return ReadPlan(schema, parts, partial(_read_results, ToSpark(schema), skipped))


def plan_results(results: Results, *, with_kind: bool = True) -> ReadPlan:
    """Return a plan of one part, for rows that a single task must compute.

    With ``with_kind=False`` the first column, which has the row kinds, is left out. Raise
    ``UnsupportedError`` for a column type that is not passed to Spark.
    """
    schema, skipped = _shape(results.schema, with_kind)
    return ReadPlan(schema, [[results]], partial(_read_results, ToSpark(schema), skipped))


def _shape(schema: pa.Schema, with_kind: bool) -> tuple[StructType, int]:
    """Return the columns of the DataFrame, and the number of leading columns to skip.

    The column of row kinds comes first. It is skipped unless ``with_kind`` is True.
    """
    skipped = 0 if with_kind else 1
    return schema_of(pa.schema([*schema][skipped:])), skipped


def schema_of(schema: pa.Schema) -> StructType:
    """Return the Spark schema for an Arrow schema.

    Raise ``UnsupportedError`` for a type whose values are not passed to Spark, such as VARIANT.
    """
    return spark_schema(
        DataField(
            number, field.name, type_of_column(field.name, field.type, nullable=field.nullable)
        )
        for number, field in enumerate(schema)
    )


def _that_stay(where: Where | None) -> Where:
    stay = col(ROW_KIND.name).isin(["+I", "+U"])
    return stay if where is None else as_predicate(where) & stay


def _read_splits(
    scan: AnyScan, to_spark: ToSpark, with_kind: bool, splits: Sequence[Any]
) -> Iterator[pa.RecordBatch]:
    for split in splits:
        for batch in scan.read(split):
            kinds = [pa.repeat("+I", batch.num_rows)] if with_kind else []
            yield to_spark([*kinds, *batch.columns])


def _read_results(
    to_spark: ToSpark, skipped: int, parts: Sequence[Results]
) -> Iterator[pa.RecordBatch]:
    for part in parts:
        for batch in part.to_batches():
            yield to_spark(batch.columns[skipped:])
