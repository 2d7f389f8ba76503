"""Rows of a DataFrame in files on this machine's disk, on their way to Python tasks.

Spark hands rows to Python one value at a time. Written by the JVM as plain Parquet, and read by
Python from there, they cost half of that. It pays where there are many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as sql
from pyspark.sql import types as spark_types

from spark_jobs.frames.parts import classic_context, tasks_at_once

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    import lakeformat as lake

__all__ = ["in_local_files", "pays_in_files"]

LEAST_BYTES = 64 << 20
"""So many bytes Spark has to expect; the files of fewer, made by a job more, save no time."""

# Nothing is kept: no value is looked for twice, and none is made smaller. Row groups are small,
# since each task holds one in the JVM's memory.
_OPTIONS = {
    "compression": "none",
    "parquet.enable.dictionary": "false",
    "parquet.block.size": str(8 << 20),
    "parquet.column.statistics.enabled": "false",
    "parquet.page.write-checksum.enabled": "false",
}
_TASKS_PER_CORE = 4

_AsNumber: TypeAlias = "Callable[[Column], Column]"
_AS_NUMBERS: dict[type[spark_types.DataType], tuple[_AsNumber, pa.DataType]] = {
    # Settings say how the JVM writes these to a file, and say nothing of numbers.
    spark_types.DateType: (sql.unix_date, pa.date32()),
    spark_types.TimestampType: (sql.unix_micros, pa.timestamp("us", "UTC")),
}
_AS_THEY_ARE = (
    spark_types.BooleanType,
    spark_types.ByteType,
    spark_types.ShortType,
    spark_types.IntegerType,
    spark_types.LongType,
    spark_types.FloatType,
    spark_types.DoubleType,
    spark_types.DecimalType,
    spark_types.StringType,
    spark_types.BinaryType,
    spark_types.TimestampNTZType,
)


def pays_in_files(frame: DataFrame) -> bool:
    """Whether rows go through files faster; only of types whose values are the same there."""
    known = all(
        type(field.dataType) in _AS_THEY_ARE or type(field.dataType) in _AS_NUMBERS
        for field in frame.schema.fields
    )
    return known and bool(frame.columns) and _expected_bytes(frame) >= LEAST_BYTES


def in_local_files(frame: DataFrame, directory: Path) -> tuple[DataFrame, Any]:
    """A DataFrame to run tasks over, and how a task gets its share of the rows.

    The ``directory`` is one that all tasks see; it is made here, and may go once they are done.
    """
    fields = frame.schema.fields
    numbered = frame.toDF(*(f"c{number}" for number in range(len(fields))))
    columns = [
        _AS_NUMBERS[type(field.dataType)][0](sql.col(name)).alias(name)
        if type(field.dataType) in _AS_NUMBERS
        else sql.col(name)
        for name, field in zip(numbered.columns, fields, strict=True)
    ]
    numbered.select(*columns).write.options(**_OPTIONS).parquet(directory.as_uri())
    paths = sorted(map(str, directory.glob("part-*.parquet")))
    types = [_AS_NUMBERS.get(type(field.dataType), (None, None))[1] for field in fields]
    read = partial(_read, paths, frame.columns, types)
    tasks = min(len(paths), tasks_at_once(frame.sparkSession) * _TASKS_PER_CORE)
    return frame.sparkSession.range(0, len(paths), 1, max(tasks, 1)), read


def _read(
    paths: Sequence[str],
    names: Sequence[str],
    types: Sequence[pa.DataType | None],
    table: lake.Table,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Runs in a Spark task."""
    for batch in batches:
        for number in batch.column(0).to_pylist():
            with pq.ParquetFile(paths[number], memory_map=True) as file:
                for rows in file.iter_batches():
                    columns = [
                        column if kind is None else column.view(kind)
                        for column, kind in zip(rows.columns, types, strict=True)
                    ]
                    yield pa.RecordBatch.from_arrays(columns, names=list(names))


def _expected_bytes(frame: DataFrame) -> int:
    """What Spark's planner expects; nothing where it does not say."""
    if classic_context(frame.sparkSession) is None:
        return 0
    plan: Any = frame._jdf
    return int(str(plan.queryExecution().optimizedPlan().stats().sizeInBytes()))
