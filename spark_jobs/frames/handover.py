"""Rows of the JVM on their way to Python tasks, in batches that Spark counts by their rows alone.

To end a batch at so many bytes, Spark asks before each row how many every column has by then. That
takes several times as long as handing the rows over. A batch of narrow rows has few bytes anyhow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
from pyspark.sql import functions as sql
from pyspark.sql import types as spark_types

from spark_jobs.frames.conditions import column_named
from spark_jobs.frames.parts import classic_context

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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
    """What ``mapInArrow`` makes of rows whose columns have any names.

    Spark itself takes a dot in one for the field of a structure.
    """
    names = frame.columns
    if any("." in name or "`" in name for name in names):
        frame = frame.toDF(*(f"c{number}" for number in range(len(names))))
        work = partial(_named, work, names)
    return frame.mapInArrow(work, columns)


def _named(
    work: BatchWork, names: Sequence[str], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    return work(batch.rename_columns(names) for batch in batches)


def counted_by_rows(frame: DataFrame) -> DataFrame | None:
    """The same rows in batches counted by rows, of which a wide one ends the job.

    Settings belong to a session, which others use at the same time: so these rows get one of their
    own. None where somebody has set the limit of bytes, or nobody can tell how wide rows are.
    """
    session = frame.sparkSession
    context = classic_context(session)
    if context is None or session.conf.get(_BYTES, None) is not None:
        return None
    if (narrow := narrow_rows(frame)) is None:
        return None
    from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame

    own: Any = session._jsparkSession.cloneSession()
    own.conf().set(_BYTES, _NO_LIMIT)
    own.conf().set(_ROWS, str(BATCH_ROWS))
    jvm: Any = context._jvm
    plan: Any = narrow._jdf
    rows = jvm.org.apache.spark.sql.classic.Dataset.ofRows(own, plan.queryExecution().analyzed())
    return ClassicFrame(rows, session)


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
