"""Rows of the JVM on their way to Python tasks, in batches that Spark counts by their rows alone.

To end a batch at so many bytes, Spark asks before each row how many every column has by then. That
takes several times as long as handing the rows over. A batch of narrow rows has few bytes anyhow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark.sql import functions as sql
from pyspark.sql import types as spark_types

from spark_jobs.frames.conditions import column_named

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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
    refused = sql.raise_error(sql.lit(_TOO_WIDE)).cast("boolean")
    return frame.where(sql.when(size <= WIDEST_BYTES, sql.lit(True)).otherwise(refused))


def is_for_width(failure: BaseException) -> bool:
    """Whether a job failed because of a row that was not narrow."""
    return _TOO_WIDE in str(failure)


@contextmanager
def counted_by_rows(session: SparkSession) -> Iterator[bool]:
    """Whether batches are counted so, in all of the session, until the block ends.

    Who has set Spark's limit of bytes keeps it. Of several blocks at a time the last one restores.
    """
    with _lock:
        before = _settings.pop(session, None) or _Settings(session)
        _settings[session] = before
        before.users += 1
    try:
        yield before.are_replaced
    finally:
        with _lock:
            before.users -= 1
            if not before.users:
                del _settings[session]
                before.restore(session)


class _Settings:
    """How a session counted rows before, and how many blocks want it otherwise."""

    def __init__(self, session: SparkSession) -> None:
        self.users = 0
        self.are_replaced = session.conf.get(_BYTES, None) is None
        self._rows = session.conf.get(_ROWS, None)
        if self.are_replaced:
            session.conf.set(_BYTES, _NO_LIMIT)
            session.conf.set(_ROWS, str(BATCH_ROWS))

    def restore(self, session: SparkSession) -> None:
        if not self.are_replaced:
            return
        session.conf.unset(_BYTES)
        if self._rows is None:
            session.conf.unset(_ROWS)
        else:
            session.conf.set(_ROWS, self._rows)


_lock = Lock()
_settings: WeakKeyDictionary[SparkSession, _Settings] = WeakKeyDictionary()
