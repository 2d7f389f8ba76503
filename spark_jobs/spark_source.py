"""Source files in Spark: tasks get paths, and read them as the Python engine does."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

import lakeformat as lake
from spark_jobs.file_readers import read_files
from spark_jobs.frames.parts import tasks_at_once
from spark_jobs.request import SourceFormat
from spark_jobs.source_files import SourceFiles
from spark_jobs.spark_write import RowReader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["source_frame"]

# Enough that a slow file does not hold up the rest, few enough that small files share a task.
_TASKS_PER_CORE = 4


def source_frame(spark: SparkSession, source: SourceFiles) -> tuple[DataFrame, RowReader]:
    """A DataFrame to run tasks over, and how a task gets rows out of its part.

    Spark itself reads none of the files: what passes through its rows is converted twice.
    """
    files = len(source.paths)
    tasks = min(files, tasks_at_once(spark) * _TASKS_PER_CORE)
    numbers = spark.range(0, files, 1, max(tasks, 1))
    return numbers, partial(_read_named_files, source)


def _read_named_files(
    source: SourceFiles, table: lake.Table, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    columns = table.schema.arrow_schema()
    source_format: SourceFormat = source.format
    for batch in batches:
        paths = [source.paths[number] for number in batch.column(0).to_pylist()]
        yield from read_files(paths, source_format, columns, source.options)
