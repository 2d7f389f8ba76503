"""Source files in Spark: Parquet read by Spark, text files handed to tasks to read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

import lakeformat as lake
from spark_jobs.file_readers import read_files
from spark_jobs.request import SourceFormat
from spark_jobs.source_files import SourceFiles
from spark_jobs.spark_write import RowReader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["source_frame"]

# Enough that a slow file does not hold up the rest, few enough that small files share a task.
_TASKS_PER_CORE = 4


def source_frame(spark: SparkSession, source: SourceFiles) -> tuple[DataFrame, RowReader]:
    """A DataFrame to run tasks over, and how a task gets rows out of its part."""
    if source.format == "parquet":
        return _parquet_rows(spark, source), _as_they_are
    return _paths(spark, source), partial(_read_named_files, source.format)


def _parquet_rows(spark: SparkSession, source: SourceFiles) -> DataFrame:
    """All columns of all files, and none made up from the names of directories."""
    reader = spark.read.option("mergeSchema", True).option("recursiveFileLookup", True)
    return reader.parquet(*(_literally(path) for path in source.paths))


def _literally(path: str) -> str:
    """Spark takes a path for a glob, and does not decode it."""
    return "file:" + re.sub(r"([\\{}\[\]*?])", r"\\\1", path)


def _paths(spark: SparkSession, source: SourceFiles) -> DataFrame:
    context = spark.sparkContext
    slices = min(len(source.paths), context.defaultParallelism * _TASKS_PER_CORE)
    rows = context.parallelize([(path,) for path in source.paths], slices)
    return spark.createDataFrame(rows, "path string")


def _as_they_are(table: lake.Table, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return batches


def _read_named_files(
    source_format: SourceFormat, table: lake.Table, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    columns = table.schema.arrow_schema()
    for batch in batches:
        yield from read_files(batch.column("path").to_pylist(), source_format, columns)
