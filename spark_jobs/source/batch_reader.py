# SPDX-License-Identifier: Apache-2.0
"""Reads a table as a batch, from parts that are planned once.

The reader does not define ``pushFilters``, so Spark passes it no filters. If a reader has this
method, Spark 4.1 plans its parts for one filter and may read them for another query of the same
DataFrame. In a union of two filters of one DataFrame, both branches have the rows of the second
filter. A later query without a filter may have the rows of an earlier filter.
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
    """The part that one task reads, and the function that reads it."""

    def __init__(self, work: PartWork, part: object) -> None:
        super().__init__(None)
        self.work = work
        self.part = part

    def __repr__(self) -> str:
        return "LakePartition()"


class LakeReader(DataSourceReader):
    """Reads the rows of a snapshot, or the changes between two snapshots."""

    def __init__(self, asked: ReadRequest, at_once: int) -> None:
        self._asked = asked
        self._at_once = at_once

    def partitions(self) -> Sequence[InputPartition]:
        plan = self._asked.plan(self._at_once)
        return [LakePartition(plan.work, part) for part in plan.parts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, LakePartition):  # without parts Spark reads an empty one
            return iter(())
        prepare_worker()
        return iter(partition.work(partition.part))
