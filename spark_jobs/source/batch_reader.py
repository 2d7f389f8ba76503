"""Reads a table as a batch, from parts planned once.

Filters are not taken from Spark, though it offers them to a reader that has ``pushFilters``:
Spark 4.1 keeps what such a reader has planned with the DataFrame, and reads the same parts for
whatever is asked of it next. Of two branches of a union both had the rows of the last filter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from spark_jobs.frames.parts import PartWork
from spark_jobs.frames.worker import prepare_worker
from spark_jobs.source.read_request import ReadRequest

__all__ = ["LakePartition", "LakeReader"]


class LakePartition(InputPartition):
    """What one task reads, and how."""

    def __init__(self, work: PartWork, part: object) -> None:
        super().__init__(None)
        self.work = work
        self.part = part

    def __repr__(self) -> str:
        return "LakePartition()"


class LakeReader(DataSourceReader):
    """Rows of a snapshot, or what changed between two."""

    def __init__(self, asked: ReadRequest, at_once: int) -> None:
        self._asked = asked
        self._at_once = at_once

    def partitions(self) -> Sequence[InputPartition]:
        plan = self._asked.plan(self._at_once)
        return [LakePartition(plan.work, part) for part in plan.parts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(
            partition, LakePartition
        ):  # Spark reads one of nothing where there is no part
            return iter(())
        prepare_worker()
        return iter(partition.work(partition.part))
