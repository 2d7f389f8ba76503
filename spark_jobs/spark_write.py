"""Writes the rows of a DataFrame in Spark tasks; the driver gets messages and commits them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

import lakeformat as lake

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["RowReader", "write_in_tasks"]

RowReader: TypeAlias = "Callable[[lake.Table, Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]"
"""From what a task is given to the rows it writes."""

# A task answers with one row per message, or with why its rows can never be written.
_ANSWER = pa.schema([("message", pa.binary()), ("refused", pa.string())])
_ANSWER_DDL = "message binary, refused string"


def write_in_tasks(
    frame: DataFrame, table: lake.Table, read_rows: RowReader
) -> list[lake.CommitMessage]:
    """Write every partition of ``frame``; nothing is visible until the messages are committed.

    An attempt that fails removes its files; one that is killed leaves them as orphans.
    """
    if table.location.startswith("memory:"):
        raise lake.InvalidRequestError(
            f"{table.location} lives in the memory of this process, where Spark's tasks cannot "
            "write; use engine 'python' or another warehouse"
        )
    _require_independent_tasks(table)
    work = partial(_write_partition, table.location, read_rows)
    answers = frame.mapInArrow(work, _ANSWER_DDL).collect()
    for answer in answers:
        if answer.refused is not None:
            raise lake.InvalidRequestError(answer.refused)
    return [lake.CommitMessage.from_bytes(bytes(answer.message)) for answer in answers]


def _require_independent_tasks(table: lake.Table) -> None:
    """Tasks would number the rows of one bucket alike, so nobody could tell which is newer."""
    if table.schema.primary_keys or table.options.bucket > 0:
        raise lake.UnsupportedError(
            f"{table.location} has buckets, whose rows one writer has to number: Spark's tasks "
            "do not write it in this version; use engine 'python'"
        )


def _write_partition(
    location: str, read_rows: RowReader, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Runs in a Spark task. A refusal is an answer, since trying again cannot help."""
    table = lake.open_table(location)
    try:
        with table.new_writer() as writer:
            writer.write(read_rows(table, batches))
            messages = writer.prepare()
    except lake.InvalidRequestError as reason:
        yield _answer(None, str(reason))
        return
    for message in messages:
        yield _answer(message.to_bytes(), None)


def _answer(message: bytes | None, refused: str | None) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.array([message], pa.binary()), pa.array([refused], pa.string())], schema=_ANSWER
    )
