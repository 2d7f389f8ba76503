"""Writes the rows of a DataFrame in Spark tasks; the driver gets messages and commits them."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
from pyspark.accumulators import Accumulator, AccumulatorParam

import lakeformat as lake
from lakeformat.paimon.layout import POSTPONE_BUCKET
from lakeformat.paimon.table import Overwritten
from lakeformat.paimon.write.passthrough_columns import decimals_as_numbers
from spark_jobs.frames.fitting import require_fitting
from spark_jobs.frames.jvm_batches import (
    WIDEST_BYTES,
    counted_by_rows,
    in_tasks,
    is_for_width,
)
from spark_jobs.frames.parts import classic_context, tasks_at_once, to_send
from spark_jobs.frames.pieces import is_one_machine, shared_directory
from spark_jobs.frames.routing import (
    has_ordered_rows,
    routed,
    typed_for_routing,
    writers_of,
)
from spark_jobs.frames.split_rows import read_pieces, split_rows
from spark_jobs.frames.worker import prepare_worker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["RowReader", "require_one_writer", "write_in_task", "write_in_tasks", "write_rows"]

_log = logging.getLogger(__name__)

RowReader: TypeAlias = "Callable[[lake.Table, Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]"
"""From what a task is given to the rows it writes."""

# A task answers with one row per message, or with why its rows can never be written.
_ANSWER = pa.schema([("message", pa.binary()), ("refused", pa.binary())])
_ANSWER_DDL = "message binary, refused binary"


def write_rows(
    frame: DataFrame,
    table: lake.Table,
    *,
    kinds: str | None = None,
    overwrite: Overwritten | None = None,
) -> list[lake.CommitMessage]:
    """Write the rows of a DataFrame where their writers are.

    Tasks on one machine get rows of each other by files. That spares the JVM a shuffle of rows;
    between machines a shuffle of bytes would be no cheaper.
    """
    session, read_rows = frame.sparkSession, None
    if is_one_machine(session) and table.schema.table_options.bucket > 0:
        frame, read_rows = typed_for_routing(frame, table.schema), _as_they_come
    else:
        frame = routed(frame, table.schema)
    require_fitting(frame.schema, table.schema, kinds)
    write = partial(write_in_tasks, read_rows=read_rows, kinds=kinds, overwrite=overwrite)
    if (narrow := counted_by_rows(frame, decimals_as_numbers(table.schema))) is not None:
        try:
            return write(narrow, table)
        except Exception as reason:
            if not is_for_width(reason):
                raise
            _log.warning(
                "%s: a row has texts of more than %d KiB, so all are written once more in batches "
                "that Spark counts by bytes. Setting spark.sql.execution.arrow.maxBytesPerBatch "
                "does so from the start: 64m is what Spark takes by itself",
                table.location,
                WIDEST_BYTES >> 10,
            )
    return write(frame, table)


def _as_they_come(table: lake.Table, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return batches


def write_in_tasks(
    frame: DataFrame,
    table: lake.Table,
    read_rows: RowReader | None = None,
    *,
    kinds: str | None = None,
    overwrite: Overwritten | None = None,
) -> list[lake.CommitMessage]:
    """Write every partition of ``frame``; nothing is visible until the messages are committed.

    Of a table with buckets one task writes all rows of one: what ``read_rows`` makes is brought
    there; other rows come so, or the write is refused and its files removed. An attempt that
    fails removes its files; one that is killed leaves them as orphans.
    """
    with ExitStack() as until_written:
        if read_rows is not None and has_ordered_rows(table.schema):
            tasks = writers_of(table.schema, tasks_at_once(frame.sparkSession))
            directory = until_written.enter_context(shared_directory(frame.sparkSession))
            frame = split_rows(frame, table, read_rows, tasks, directory, kinds)
            read_rows = read_pieces
        work = partial(_write_partition, to_send(table), read_rows, kinds, overwrite)
        messages = _messages_of(frame, table, work)
    require_one_writer(table, messages)
    return messages


def _messages_of(
    frame: DataFrame, table: lake.Table, work: Callable[..., Iterator[pa.RecordBatch]]
) -> list[lake.CommitMessage]:
    """Run the tasks. What those have written that ended goes if one of them fails."""
    context = classic_context(frame.sparkSession)
    written = None if context is None else context.accumulator([], _Messages())
    try:
        answers = in_tasks(frame, partial(work, written), _ANSWER_DDL).collect()
    except Exception:
        if written is not None:  # what other tasks had finished by then
            _abort(table, [lake.CommitMessage.from_bytes(each) for each in written.value])
        raise
    messages = [
        lake.CommitMessage.from_bytes(bytes(answer.message))
        for answer in answers
        if answer.message is not None
    ]
    refusals = [bytes(answer.refused) for answer in answers if answer.refused is not None]
    if refusals:
        _abort(table, messages)
        refused: lake.LakeError = pickle.loads(refusals[0])
        raise refused
    return messages


def require_one_writer(table: lake.Table, messages: Sequence[lake.CommitMessage]) -> None:
    """Refuse, and remove, what several tasks wrote into one bucket: they number rows alike."""
    if not has_ordered_rows(table.schema):
        return
    seen: set[tuple[bytes, int]] = set()
    for message in messages:
        place = (message.partition, message.bucket)
        if message.bucket == POSTPONE_BUCKET:
            continue  # its rows are numbered when they get their bucket
        if place in seen:
            _abort(table, messages)
            raise lake.UnsupportedError(
                f"several tasks have rows of bucket {message.bucket} of {table.location}, and one "
                "writer has to number them: write spark_jobs.by_bucket(rows, table), which brings "
                "them together, or use spark_jobs.write_table. Nothing was written"
            )
        seen.add(place)


class _Messages(AccumulatorParam[list[bytes]]):
    """Gathers what tasks have written, as far as they succeed, also where their job does not."""

    def zero(self, value: list[bytes]) -> list[bytes]:
        return []

    def addInPlace(self, value1: list[bytes], value2: list[bytes]) -> list[bytes]:
        return [*value1, *value2]


def _abort(table: lake.Table, messages: Sequence[lake.CommitMessage]) -> None:
    if messages:
        table.abort(messages)


def write_in_task(
    table: lake.Table,
    rows: Iterator[pa.RecordBatch],
    kinds: str | None,
    overwrite: Overwritten | None,
    read_rows: RowReader | None = None,
) -> list[lake.CommitMessage] | lake.LakeError:
    """What one task has written; or why it never can, an answer since another try cannot help."""
    try:
        writer = table.new_writer(overwrite=overwrite)
    except (lake.InvalidRequestError, lake.NotFoundError) as reason:  # also: the table is gone
        return reason
    try:
        with writer:
            if read_rows is not None:
                rows = read_rows(table, rows)
            # Pieces were looked at where they were made, and fail no later than here.
            writer.write(rows, kinds, checked=read_rows is read_pieces)
            return writer.prepare()
    except lake.InvalidRequestError as reason:
        return reason


def _write_partition(
    sent: bytes,
    read_rows: RowReader | None,
    kinds: str | None,
    overwrite: Overwritten | None,
    written: Accumulator[list[bytes]] | None,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Runs in a Spark task."""
    first = next(batches, None)
    if first is None:
        return
    table: lake.Table = pickle.loads(sent)
    prepare_worker()
    rows: Iterator[pa.RecordBatch] = chain([first], batches)
    answer = write_in_task(table, rows, kinds, overwrite, read_rows)
    if isinstance(answer, lake.LakeError):
        yield _answer(None, pickle.dumps(answer))
        return
    sent_back = [message.to_bytes() for message in answer]
    if written is not None:
        written.add(sent_back)
    for each in sent_back:
        yield _answer(each, None)


def _answer(message: bytes | None, refused: bytes | None) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.array([message], pa.binary()), pa.array([refused], pa.binary())], schema=_ANSWER
    )
