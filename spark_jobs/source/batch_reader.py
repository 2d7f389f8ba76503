"""Reads a table as a batch, from parts planned once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import datasource as spark_filters
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

import lakeformat as lake
from lakeformat.read.predicate import Compare, Predicate, col
from lakeformat.read.prune import Op
from spark_jobs.frames.parts import PartWork
from spark_jobs.source.asked import Asked

__all__ = ["FilteringReader", "LakeReader", "Part"]

_COMPARISONS = (
    (spark_filters.EqualTo, Op.EQUAL),
    (spark_filters.EqualNullSafe, Op.EQUAL),
    (spark_filters.GreaterThan, Op.GREATER),
    (spark_filters.GreaterThanOrEqual, Op.GREATER_EQUAL),
    (spark_filters.LessThan, Op.LESS),
    (spark_filters.LessThanOrEqual, Op.LESS_EQUAL),
)


class Part(InputPartition):
    """What one task reads, and how."""

    def __init__(self, work: PartWork, part: object) -> None:
        super().__init__(None)
        self.work = work
        self.part = part

    def __repr__(self) -> str:
        return "Part()"


class LakeReader(DataSourceReader):
    """Rows of a snapshot, or what changed between two."""

    def __init__(self, asked: Asked, at_once: int) -> None:
        self._asked = asked
        self._at_once = at_once

    def partitions(self) -> Sequence[InputPartition]:
        plan = self._asked.plan(self._at_once)
        return [Part(plan.work, part) for part in plan.parts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, Part):  # Spark reads one of nothing where there is no part
            return iter(())
        return iter(partition.work(partition.part))


class FilteringReader(LakeReader):
    """The same where Spark tells what it filters by: files that cannot match are left out.

    Spark filters the rows all the same, so nothing depends on who is stricter.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        rows = self._asked.rows
        if self._asked.between is None and isinstance(rows, lake.Scan):
            for each in filters:
                rows = _narrowed(rows, each)
            self._asked = replace(self._asked, rows=rows)
        return filters


def _narrowed(scan: lake.Scan, pushed: Filter) -> lake.Scan:
    condition = _predicate(pushed)
    if condition is None:
        return scan
    try:
        return scan.meeting(condition)
    except lake.InvalidRequestError:
        return scan  # a value or a column, such as rowkind, that a scan does not compare


def _predicate(pushed: Filter) -> Predicate | None:
    """The same condition on a table's rows; None where there is none."""
    match pushed:
        case spark_filters.Not(child):
            inner = _predicate(child)
            return None if inner is None else ~inner
        case spark_filters.IsNull((name,)):
            return col(name).is_null()
        case spark_filters.IsNotNull((name,)):
            return col(name).is_not_null()
        case spark_filters.StringStartsWith((name,), value):
            return col(name).startswith(value)
        case spark_filters.In((name,), values) if None not in values:
            return col(name).isin(values)
    for kind, op in _COMPARISONS:
        if isinstance(pushed, kind) and len(pushed.attribute) == 1 and pushed.value is not None:
            return Compare(pushed.attribute[0], op, pushed.value)
    return None
