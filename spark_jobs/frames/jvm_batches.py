"""Rows of the JVM on their way to Python tasks, in batches that Spark counts by their rows alone.

To end a batch at so many bytes, Spark asks before each row how many every column has by then. That
takes several times as long as handing the rows over. A batch of narrow rows has few bytes anyhow.
Short decimals come as numbers: Spark makes an object of each otherwise, and bytes of that.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
from pyspark.sql import functions as sql
from pyspark.sql import types as spark_types

from lakeformat.types.type_kinds import COMPACT_DECIMAL_PRECISION
from spark_jobs.frames.conditions import column_named
from spark_jobs.frames.parts import classic_context

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import Column, DataFrame

__all__ = [
    "BATCH_ROWS",
    "WIDEST_BYTES",
    "counted_by_rows",
    "in_tasks",
    "is_for_width",
    "narrow_rows",
]

BatchWork: TypeAlias = "Callable[[Any], Iterator[pa.RecordBatch]]"

BATCH_ROWS = 8192
"""What fits into a processor's cache, of rows as they mostly are."""
WIDEST_BYTES = 16 << 10
"""So many bytes the texts of a narrow row have at most: 128 MB a batch, of the widest rows."""

_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
_NO_LIMIT = str(2**31 - 1)

_NUMBER = "__lake_number"
_DIGITS = f"lake-{uuid.uuid4()}"
"""In the metadata of a column of numbers: the digits its decimals have, and those of a fraction.

Nobody else knows the name: metadata of columns is kept in files, and belongs to whoever made them.
"""
_TOO_WIDE = "lake: a row has texts of more than 16 KiB"
_TEXTS = (spark_types.StringType, spark_types.BinaryType)
_NARROW = (
    spark_types.BooleanType,
    spark_types.NumericType,
    spark_types.DateType,
    spark_types.TimestampType,
    spark_types.TimestampNTZType,
)


def in_tasks(frame: DataFrame, work: BatchWork, columns: str) -> DataFrame:
    """What ``mapInArrow`` makes of rows whose columns have any names, and maybe short decimals.

    Spark itself takes a dot in one for the field of a structure.
    """
    fields = frame.schema.fields
    names = [field.name for field in fields]
    if decimals := {f.name: f.metadata[_DIGITS] for f in fields if _DIGITS in f.metadata}:
        work = partial(_with_decimals, work, decimals)
    if any("." in name or "`" in name for name in names):
        frame = frame.toDF(*(f"c{number}" for number in range(len(names))))
        work = partial(_named, work, names)
    return frame.mapInArrow(work, columns)


def _named(
    work: BatchWork, names: Sequence[str], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    return work(batch.rename_columns(names) for batch in batches)


def _with_decimals(
    work: BatchWork, decimals: Mapping[str, list[int]], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    return work(_decimals_of(batch, decimals) for batch in batches)


def _decimals_of(batch: pa.RecordBatch, decimals: Mapping[str, list[int]]) -> pa.RecordBatch:
    for name, digits in decimals.items():
        numbers, kind = batch.column(name), pa.decimal64(*digits)
        column = pa.Array.from_buffers(
            kind, len(numbers), numbers.buffers(), numbers.null_count, numbers.offset
        )
        batch = batch.set_column(batch.schema.get_field_index(name), name, column)
    return batch


def counted_by_rows(frame: DataFrame, decimals: Collection[str] = ()) -> DataFrame | None:
    """The same rows in batches counted by rows, of which a wide one ends the job.

    The columns ``decimals`` come to ``in_tasks`` as decimals of 64 bits, if they are short.

    Settings belong to a session, which others use at the same time: so these rows get one of their
    own. None where somebody has set the limit of bytes, or nobody can tell how wide rows are.
    """
    session = frame.sparkSession
    context = classic_context(session)
    if context is None or session.conf.get(_BYTES, None) is not None:
        return None
    if (narrow := narrow_rows(frame)) is None:
        return None
    narrow = _with_numbers(narrow, decimals, context)
    from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame

    own: Any = session._jsparkSession.cloneSession()
    own.conf().set(_BYTES, _NO_LIMIT)
    own.conf().set(_ROWS, str(BATCH_ROWS))
    jvm: Any = context._jvm
    plan: Any = narrow._jdf
    rows = jvm.org.apache.spark.sql.classic.Dataset.ofRows(own, plan.queryExecution().analyzed())
    return ClassicFrame(rows, session)


def _with_numbers(frame: DataFrame, decimals: Collection[str], context: SparkContext) -> DataFrame:
    """The rows with numbers in place of short decimals."""
    columns = []
    for field in frame.schema.fields:
        column = column_named(field.name)
        if field.name in decimals and (digits := _short_digits(field.dataType)):
            column = _unscaled(column, context).alias(field.name, metadata={_DIGITS: digits})
        columns.append(column)
    return frame.select(*columns)


def _short_digits(kind: spark_types.DataType) -> list[int] | None:
    """All digits of a decimal and those of its fraction, if Spark itself keeps it as a number."""
    if not isinstance(kind, spark_types.DecimalType) or kind.precision > COMPACT_DECIMAL_PRECISION:
        return None
    return [kind.precision, kind.scale]


def _unscaled(column: Column, context: SparkContext) -> Column:
    """The digits of decimals as a number, which Spark has at hand and no function of SQL gives."""
    from pyspark.sql.classic.column import Column as ClassicColumn

    jvm: Any = context._jvm
    given: Any = column
    made = jvm.org.apache.spark.sql.classic.ExpressionUtils
    unscaled = jvm.org.apache.spark.sql.catalyst.expressions.UnscaledValue
    return ClassicColumn(made.column(unscaled(made.expression(given._jc))))


def narrow_rows(frame: DataFrame) -> DataFrame | None:
    """The same rows, of which a wide one ends the job; None where that cannot be told at once."""
    texts = []
    for field in frame.schema.fields:
        if isinstance(field.dataType, _TEXTS):
            texts.append(sql.octet_length(column_named(field.name)))
        elif not isinstance(field.dataType, _NARROW):
            return None
    if not texts:
        return frame
    size = sum((sql.coalesce(text, sql.lit(0)).cast("long") for text in texts), sql.lit(0))
    # Spark would ask where the texts are made, and make them twice, but for a number that it gives
    # each row only here.
    is_narrow = sql.when((size <= WIDEST_BYTES) | (sql.col(_NUMBER) < 0), sql.lit(True))
    refused = sql.raise_error(sql.lit(_TOO_WIDE)).cast("boolean")
    numbered = frame.withColumn(_NUMBER, sql.monotonically_increasing_id())
    return numbered.where(is_narrow.otherwise(refused)).drop(_NUMBER)


def is_for_width(failure: BaseException) -> bool:
    """Whether a job failed because of a row that was not narrow."""
    return _TOO_WIDE in str(failure)
