# SPDX-License-Identifier: Apache-2.0
"""Divides the files of a source, or the parts of a table, among the tasks of Spark.

Spark distributes only numbers: positions in the list of files or parts. Each task gets some of the
numbers, and reads the files or parts at these positions in the same way as engine ``python``.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

import lakeformat as lake
from lakeformat.catalog.row_schema import row_schema
from lakeformat.paimon.write.passthrough_columns import texts_as_numbers
from spark_jobs.frames.parts import tasks_at_once, to_send
from spark_jobs.frames.spark_write import RowReader
from spark_jobs.ingestion.source_files import SourceFiles

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["files_frame", "parts_frame"]

_Part = TypeVar("_Part")

# Enough files that a slow one does not delay the rest, few enough that small files share a task.
_TASKS_PER_CORE = 4


def files_frame(spark: SparkSession, source: SourceFiles) -> tuple[DataFrame, RowReader]:
    """Return a DataFrame with the numbers of the files, and the function with which each task
    reads the files whose numbers it has.

    The tasks do not use Spark's file readers, because the rows would then be converted twice.
    """
    return _numbers(spark, len(source.paths)), partial(_read_named_files, source)


def parts_frame(
    spark: SparkSession,
    parts: Sequence[_Part],
    read: Callable[[lake.Table, _Part], Iterator[pa.RecordBatch]],
) -> tuple[DataFrame, RowReader]:
    """Return a DataFrame with the numbers of the parts, and the function with which each task
    reads the parts whose numbers it has.

    That function calls ``read`` with the table and each part, and yields the rows. Each task has
    consecutive parts, and the tasks are in the order of the parts.
    """
    return _numbers(spark, len(parts)), partial(_read_parts, to_send((parts, read)))


def _numbers(spark: SparkSession, count: int) -> DataFrame:
    tasks = min(count, tasks_at_once(spark) * _TASKS_PER_CORE)
    return spark.range(0, count, 1, max(tasks, 1))


def _read_parts(
    sent: bytes, table: lake.Table, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    parts, read = pickle.loads(sent)
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield from read(table, parts[number])


def _read_named_files(
    source: SourceFiles, table: lake.Table, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    schema = row_schema(table)
    encoded = texts_as_numbers(schema)
    for batch in batches:
        paths = [source.paths[number] for number in batch.column(0).to_pylist()]
        yield from source.rows(schema, paths, encoded)
