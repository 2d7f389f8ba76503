# SPDX-License-Identifier: Apache-2.0
"""Selects manifests and files that may have matching rows: by partition, then by statistics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.iceberg.partition_spec import PartitionSpec
from lakeformat.iceberg.read.condition_fields import condition_type
from lakeformat.iceberg.read.projection import project
from lakeformat.iceberg.read.single_values import bounds_of
from lakeformat.iceberg.schema import Schema
from lakeformat.iceberg.types import PrimitiveType
from lakeformat.rows.prune import Bounds, ColumnTest, Conjunction, Mask, Op, in_any, may_meet
from lakeformat.types.arrow_memory import array_of

__all__ = ["ColumnStatistics", "PartitionSummaries", "by_partition", "by_statistics", "by_summary"]


@dataclass(frozen=True, slots=True)
class PartitionSummaries:
    """The summaries of one partition field, one for each manifest, from the manifest list."""

    contains_null: pa.Array
    contains_nan: pa.Array
    lower: pa.Array
    """The lower bounds in binary form; null if all values are null or NaN, or if there is no
    summary.
    """
    upper: pa.Array


class ColumnStatistics(Protocol):
    """The statistics of files as columns."""

    def __len__(self) -> int:
        """Return the number of files."""
        ...

    @property
    def record_count(self) -> pa.Array:
        """The number of rows of each file; null if it is unknown."""
        ...

    def statistic(self, name: str, field_id: int) -> pa.Array:
        """Return a statistic of one column, such as ``lower_bounds``; null for files without it."""
        ...


def by_summary(
    conditions: Conjunction,
    spec: PartitionSpec,
    schema: Schema,
    summaries: Sequence[PartitionSummaries],
    count: int,
) -> Mask:
    """Return a mask of the manifests of one partition spec that may have matching rows."""

    def ask(tests: Sequence[ColumnTest]) -> Mask:
        mask = np.ones(count, np.bool_)
        for each in project(tests, spec, schema):
            if each.place < len(summaries):
                bounds = _of_summary(summaries[each.place], each.kind)
                mask &= each.may_hold(bounds)
        return mask

    return in_any(conditions, ask)


def _of_summary(summary: PartitionSummaries, kind: PrimitiveType) -> Bounds:
    """Return the summaries of one partition field as bounds, as if each manifest had one row.

    The row counts as null if all values of the manifest are null.
    """
    no_nulls = pc.invert(summary.contains_null)
    no_nan = pc.invert(pc.fill_null(summary.contains_nan, kind.name in ("float", "double")))
    only_nulls = pc.and_(pc.and_(summary.contains_null, pc.is_null(summary.lower)), no_nan)
    nulls = pc.case_when(pc.make_struct(no_nulls, only_nulls), pa.scalar(0), pa.scalar(1))
    return Bounds(
        *bounds_of(summary.lower, summary.upper, kind),
        nulls,
        array_of(np.ones(len(nulls), np.int64)),
        pc.invert(no_nan).cast(pa.int64()),
    )


def by_partition(
    conditions: Conjunction,
    spec: PartitionSpec,
    schema: Schema,
    partitions: Sequence[pa.Array],
    count: int,
) -> Mask:
    """Return a mask of the files of one partition spec whose partition may have matching rows."""
    ones = array_of(np.ones(count, np.int64))

    def ask(tests: Sequence[ColumnTest]) -> Mask:
        mask = np.ones(count, np.bool_)
        for each in project(tests, spec, schema):
            values = partitions[each.place]
            bounds = Bounds(
                values, values, pc.is_null(values).cast(pa.int64()), ones, _nans(values)
            )
            mask &= each.may_hold(bounds)
        return mask

    return in_any(conditions, ask)


def _nans(values: pa.Array) -> pa.Array | None:
    if not pa.types.is_floating(values.type):
        return None
    return pc.fill_null(pc.is_nan(values), False).cast(pa.int64())


def by_statistics(conditions: Conjunction, schema: Schema, files: ColumnStatistics) -> Mask:
    """Return a mask of the files whose statistics allow matching rows.

    If a struct is null, some writers do not count its fields as null. So the condition IS NULL on a
    field in a struct excludes no file.
    """
    columns = set(schema.column_names)

    def ask(tests: Sequence[ColumnTest]) -> Mask:
        mask = np.ones(len(files), np.bool_)
        for test in tests:
            if test.op is Op.IS_NULL and test.column not in columns:
                continue
            field = schema.named(test.column)
            if field is not None and isinstance(field.type, PrimitiveType):
                bounds = _of_column(files, field.id, field.type)
                mask &= may_meet(test, bounds, condition_type(field.type))
        return mask

    return in_any(conditions, ask)


def _of_column(files: ColumnStatistics, field_id: int, kind: PrimitiveType) -> Bounds:
    lower, upper = (files.statistic(name, field_id) for name in ("lower_bounds", "upper_bounds"))
    return Bounds(
        *bounds_of(lower, upper, kind),
        files.statistic("null_value_counts", field_id),
        files.record_count,
        files.statistic("nan_value_counts", field_id),
    )
