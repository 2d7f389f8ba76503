# SPDX-License-Identifier: Apache-2.0
"""The parts that tasks read, one for each task, and the work that turns a part into rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import lakeformat as lake
from lakeformat.paimon.read.changes.rows import ROW_KIND
from lakeformat.paimon.read.splits import Split
from lakeformat.rows.conditions.filter import Where, as_predicate
from lakeformat.rows.conditions.predicate import col
from lakeformat.tables.arguments import Partitions, WindowEnd
from lakeformat.tables.results import Results, Rows
from lakeformat.types.arrow_types import from_arrow_type
from lakeformat.types.types import DataField
from spark_jobs.frames.columns import ToSpark, spark_schema
from spark_jobs.frames.parts import PartWork, pack, pack_in_order

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ["ReadPlan", "pack_splits", "plan_changes", "plan_results", "plan_splits", "schema_of"]


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """Parts that can be pickled, and the work for each."""

    schema: StructType
    parts: Sequence[Any]
    work: PartWork


def plan_splits(
    scan: lake.Scan, splits: Sequence[Split], at_once: int, *, with_kind: bool = False
) -> ReadPlan:
    """Return a plan for the splits of a scan; with ``with_kind`` every row has the kind insert."""
    fields = (ROW_KIND, *scan.fields) if with_kind else scan.fields
    schema = spark_schema(fields)
    parts = pack_splits(scan, splits, at_once)
    return ReadPlan(schema, parts, partial(_read_splits, scan, ToSpark(schema), with_kind))


def pack_splits(scan: lake.Scan, splits: Sequence[Split], at_once: int) -> list[list[Split]]:
    """Return splits as the parts of tasks, by the table's options."""
    options = scan.table_schema.table_options
    return pack(
        [(split, split.size_bytes) for split in splits],
        at_once=at_once,
        target_bytes=options.source_split_target_size_bytes,
        least_bytes=options.source_split_open_file_cost_bytes,
    )


def plan_changes(
    table: lake.Table,
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
    """Return a plan for files in the order of snapshots, or for buckets of two compared states.

    Without ``with_kind``, deleted rows are left out.
    """
    if not with_kind:
        where = _that_stay(where)
    changes: Rows = table.changes(
        after, upto, mode, columns=columns, where=where, partitions=partitions
    )
    if not isinstance(
        changes, lake.Changes
    ):  # $binlog: one reader joins the old and the new row of an update
        return plan_results(changes)
    schema, skipped = _shape(changes.schema, with_kind)
    parts = pack_in_order(
        [(part, part.size_bytes) for part in changes.parts()],
        at_once=at_once,
        target_bytes=table.options.source_split_target_size_bytes,
        least_bytes=table.options.source_split_open_file_cost_bytes,
    )
    return ReadPlan(schema, parts, partial(_read_results, ToSpark(schema), skipped))


def plan_results(results: Results) -> ReadPlan:
    """Return a plan for rows that only one reader can compute."""
    schema, _ = _shape(results.schema, with_kind=True)
    return ReadPlan(schema, [[results]], partial(_read_results, ToSpark(schema), 0))


def _shape(schema: pa.Schema, with_kind: bool) -> tuple[StructType, int]:
    """Return the columns of the DataFrame, and the number of leading columns to skip.

    Without ``with_kind`` the first column, the kind of the row, is skipped.
    """
    skipped = 0 if with_kind else 1
    return schema_of(pa.schema([*schema][skipped:])), skipped


def schema_of(schema: pa.Schema) -> StructType:
    """Return the columns of a DataFrame for an Arrow schema."""
    return spark_schema(
        DataField(number, field.name, from_arrow_type(field.type, nullable=field.nullable))
        for number, field in enumerate(schema)
    )


def _that_stay(where: Where | None) -> Where:
    stay = col(ROW_KIND.name).isin(["+I", "+U"])
    return stay if where is None else as_predicate(where) & stay


def _read_splits(
    scan: lake.Scan, to_spark: ToSpark, with_kind: bool, splits: Sequence[Split]
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
