# SPDX-License-Identifier: Apache-2.0
"""Passes rows of the JVM to Python tasks in batches that Spark limits only by their number of rows.

Spark's limit of bytes for a batch is not used, because Spark would compute the size of every column
for each row, which takes several times as long as passing the rows. Instead, each row must be
narrow: its texts have at most ``WIDEST_BYTES``. A batch of ``BATCH_ROWS`` such rows has at most
128 MiB of texts. Decimals of up to 18 digits can be passed as 64-bit integers, because otherwise
Spark creates an object and bytes for each decimal.
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
"""The number of rows in a batch; such a batch usually fits into a processor's cache."""
WIDEST_BYTES = 16 << 10
"""The largest size of all texts of a narrow row together, in bytes."""

_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
_NO_LIMIT = str(2**31 - 1)

_NUMBER = "__lake_number"
_DIGITS = f"lake-{uuid.uuid4()}"
"""The key in a column's metadata for the precision and scale of decimals that are passed as
integers.

The key is random, so that it differs from every key that a user has stored in the metadata of
columns.
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
    """Return ``frame.mapInArrow(work, columns)``, also if names of columns contain a dot.

    Spark itself takes a dot in a name as the access to a field of a struct. ``columns`` is the
    schema of the result. If ``counted_by_rows`` has turned decimals into integers, ``work`` gets
    them as 64-bit decimals.
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
    """Return ``frame`` with its rows in batches that are limited only by the number of rows; None
    if this is impossible.

    That is impossible with Spark Connect, with a nested column, and if the user has set Spark's
    limit of bytes for a batch. A row whose texts have more than ``WIDEST_BYTES`` fails the job. The
    columns ``decimals`` become 64-bit integers if they have at most 18 digits; ``in_tasks`` makes
    decimals of these integers.
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
    """Return the rows with the columns ``decimals`` as 64-bit integers.

    Decimals of more than 18 digits do not fit into 64 bits and are not changed.
    """
    columns = []
    for field in frame.schema.fields:
        column = column_named(field.name)
        if field.name in decimals and (digits := _short_digits(field.dataType)):
            column = _unscaled(column, context).alias(field.name, metadata={_DIGITS: digits})
        columns.append(column)
    return frame.select(*columns)


def _short_digits(kind: spark_types.DataType) -> list[int] | None:
    if not isinstance(kind, spark_types.DecimalType) or kind.precision > COMPACT_DECIMAL_PRECISION:
        return None
    return [kind.precision, kind.scale]


def _unscaled(column: Column, context: SparkContext) -> Column:
    """Return the unscaled values of decimals as 64-bit integers.

    No SQL function returns them, so this uses Spark's internal expression.
    """
    from pyspark.sql.classic.column import Column as ClassicColumn

    jvm: Any = context._jvm
    given: Any = column
    made = jvm.org.apache.spark.sql.classic.ExpressionUtils
    unscaled = jvm.org.apache.spark.sql.catalyst.expressions.UnscaledValue
    return ClassicColumn(made.column(unscaled(made.expression(given._jc))))


def narrow_rows(frame: DataFrame) -> DataFrame | None:
    """Return ``frame``, but with a check that fails the job at a row whose texts have more than
    ``WIDEST_BYTES``.

    Return None if a column is nested, because its width is expensive to compute.
    """
    texts = []
    for field in frame.schema.fields:
        if isinstance(field.dataType, _TEXTS):
            texts.append(sql.octet_length(column_named(field.name)))
        elif not isinstance(field.dataType, _NARROW):
            return None
    if not texts:
        return frame
    size = sum((sql.coalesce(text, sql.lit(0)).cast("long") for text in texts), sql.lit(0))
    # The row number keeps Spark from moving this check to the computation of the texts, which would
    # then run twice.
    is_narrow = sql.when((size <= WIDEST_BYTES) | (sql.col(_NUMBER) < 0), sql.lit(True))
    refused = sql.raise_error(sql.lit(_TOO_WIDE)).cast("boolean")
    numbered = frame.withColumn(_NUMBER, sql.monotonically_increasing_id())
    return numbered.where(is_narrow.otherwise(refused)).drop(_NUMBER)


def is_for_width(failure: BaseException) -> bool:
    """Return True if ``narrow_rows`` has failed the job because of a wide row."""
    return _TOO_WIDE in str(failure)
