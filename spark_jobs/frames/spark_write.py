# SPDX-License-Identifier: Apache-2.0
"""Writes the rows of a DataFrame in Spark tasks, and returns their messages for the commit."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
from pyspark.accumulators import Accumulator, AccumulatorParam

import lakeformat as lake
from lakeformat.catalog.row_schema import row_schema
from lakeformat.paimon.options.kinds import POSTPONE_BUCKET
from lakeformat.paimon.write.passthrough_columns import decimals_as_numbers
from lakeformat.tables.arguments import Conflict, Overwritten
from lakeformat.tables.divided_writes import BegunBatch
from lakeformat.tables.position import AnyPosition
from lakeformat.types.closest import closest
from spark_jobs.frames.conditions import column_named
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
    Routing,
    has_ordered_rows,
    keyed_rows,
    routed,
    routing_of,
    typed_for_routing,
    writers_of,
)
from spark_jobs.frames.split_rows import read_pieces, split_rows
from spark_jobs.frames.worker import prepare_worker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = [
    "Order",
    "RowReader",
    "begun",
    "in_order",
    "require_one_writer",
    "write_changes",
    "write_in_task",
    "write_in_tasks",
    "write_rows",
]

_log = logging.getLogger(__name__)

RowReader: TypeAlias = "Callable[[lake.Table, Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]"
"""A function that returns the rows that a task must write, from the batches that the task gets from
Spark.
"""

Order: TypeAlias = Mapping[str, Any]
"""Further arguments of the writers: ``read_snapshot`` and ``conflict`` of the commit,
``upsert_by``, or the ``transaction`` of a batch.
"""

# A task returns one row per message, or the reason its rows cannot be written.
_ANSWER = pa.schema([("message", pa.binary()), ("refused", pa.binary())])
_ANSWER_DDL = "message binary, refused binary"


def in_order(
    table: lake.Table,
    read_snapshot: AnyPosition | str | None,
    conflict: Conflict | None,
    upsert_by: Sequence[str] | None,
    batch: BegunBatch | None = None,
) -> Order | None:
    """Return further arguments for the writers of a table; None if there are none.

    These are the transaction number of ``batch`` and, in a table with unique keys, ``upsert_by``.
    If neither applies, the arguments are ``read_snapshot`` and ``conflict``. If the format does not
    support ``read_snapshot``, return None: the commit will raise ``UnsupportedError``.
    """
    given: dict[str, Any] = {} if batch is None else {"transaction": batch.transaction}
    if upsert_by is not None and table.has_unique_keys:
        given["upsert_by"] = [*upsert_by]
    if given:
        return given
    if read_snapshot is None or "read_snapshot" in table.refused_arguments.get("write", {}):
        return None
    return {"read_snapshot": str(read_snapshot), "conflict": conflict}


@contextmanager
def begun(
    table: lake.Table,
    overwrite: Overwritten | None,
    conflict: Conflict | None,
    *,
    where: str | None = None,
) -> Iterator[BegunBatch | None]:
    """Begin the batch of a write to a Mixed table, yield it, and end it after the block.

    Yield None if the write needs no batch. ``where`` is a condition on the rows to overwrite, in
    place of ``overwrite``.
    """
    begin: Callable[..., BegunBatch | None] = table.begin_write
    condition = table.given_arguments("write", where=where)
    batch = begin(None if condition else overwrite, conflict, **condition)
    with nullcontext() if batch is None else batch:
        yield batch


def write_rows(
    frame: DataFrame,
    table: lake.Table,
    *,
    kinds: str | None = None,
    overwrite: Overwritten | None = None,
    order: Order | None = None,
) -> list[lake.CommitMessage]:
    """Write the rows of a DataFrame, each bucket in one task; return the messages to commit.

    ``order`` has further arguments of the writers, from ``in_order``. On one machine, with a fixed
    number of buckets, the tasks exchange rows in files, which costs less than Spark's shuffle.
    Otherwise Spark shuffles the rows. Raise ``InvalidRequestError`` for columns that do not fit the
    table.
    """
    session, read_rows = frame.sparkSession, None
    routing = routing_of(table, overwrites=overwrite is not None)
    schema = routing.schema
    if is_one_machine(session) and schema.table_options.bucket > 0:
        frame, read_rows = typed_for_routing(frame, schema), _as_they_come
    else:
        frame = routed(frame, routing)
    require_fitting(frame.schema, schema, kinds)
    write = partial(
        write_in_tasks, read_rows=read_rows, kinds=kinds, overwrite=overwrite, order=order
    )
    if (narrow := counted_by_rows(frame, decimals_as_numbers(schema))) is not None:
        try:
            return write(narrow, table)
        except Exception as reason:
            if not is_for_width(reason):
                raise
            _log.warning(
                "%s: a row has texts of more than %d KiB, so the write starts again, in batches "
                "limited by bytes. To limit them by bytes from the start, set "
                "spark.sql.execution.arrow.maxBytesPerBatch, for example to Spark's default, 64m",
                table.location,
                WIDEST_BYTES >> 10,
            )
    return write(frame, table)


def write_changes(
    frame: DataFrame,
    table: lake.Table,
    kinds: str,
    key: Sequence[str],
    sequence: Sequence[str],
    order: Order | None = None,
) -> list[lake.CommitMessage]:
    """Write rows that upsert or delete by ``key``, and return the messages to commit.

    ``kinds`` is the column with the kinds of rows. One task writes all rows of a key, in the order
    of the columns ``sequence``, which are written only if the table has them. Raise
    ``InvalidRequestError`` if a named column is missing in the rows.
    """
    for name in (kinds, *key, *sequence):
        if name not in frame.columns:
            raise lake.InvalidRequestError(
                f"one of 'kinds', 'upsert_by' and 'sequence_by' names column {name!r}, which the "
                "rows do not have; their columns are "
                f"{', '.join(frame.columns)}{closest(name, frame.columns)}"
            )
    columns = row_schema(table).column_names
    left_out = {*sequence} - {kinds, *columns}
    written = [name for name in frame.columns if name not in left_out]
    keyed = keyed_rows(table, written, key)
    kept = [*map(column_named, written)]
    require_fitting(frame.select(*kept).schema, keyed.schema, kinds)
    if keyed.function is None:
        of_one_key = frame.repartition(*map(column_named, key))
    else:
        of_one_key = routed(frame, keyed)
    ordered = of_one_key.sortWithinPartitions(*map(column_named, sequence)).select(*kept)
    return write_in_tasks(ordered, table, kinds=kinds, keyed=keyed, order=order)


def _as_they_come(table: lake.Table, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return batches


def write_in_tasks(
    frame: DataFrame,
    table: lake.Table,
    read_rows: RowReader | None = None,
    *,
    kinds: str | None = None,
    overwrite: Overwritten | None = None,
    keyed: Routing | None = None,
    order: Order | None = None,
) -> list[lake.CommitMessage]:
    """Write the rows of ``frame`` in Spark's tasks, and return the messages to commit.

    In a table with a primary key or buckets, exactly one task must get all rows of a bucket. With
    ``read_rows``, this function distributes the rows in this way. Without it, the caller must have
    distributed ``frame`` already. If several tasks have written rows of the same bucket, delete the
    written files and raise ``UnsupportedError``; for a Mixed table, the commit raises it. If an
    attempt of a task fails, it deletes its files; if it is killed, they remain as orphans.

    ``keyed`` is the routing of rows that change a table by key, from ``keyed_rows``. ``order`` has
    further arguments of the writers, such as ``read_snapshot``, from ``in_order``.
    """
    routing = keyed or routing_of(table, overwrites=overwrite is not None)
    key = None if keyed is None else keyed.schema.primary_keys
    with ExitStack() as until_written:
        if read_rows is not None and has_ordered_rows(routing.schema):
            tasks = writers_of(routing.schema, tasks_at_once(frame.sparkSession))
            directory = until_written.enter_context(shared_directory(frame.sparkSession))
            frame = split_rows(frame, table, read_rows, tasks, directory, kinds, routing)
            read_rows = read_pieces
        work = partial(_write_partition, to_send(table), read_rows, kinds, overwrite, key, order)
        messages = _messages_of(frame, table, work)
    require_one_writer(table, messages)
    return messages


def _messages_of(
    frame: DataFrame, table: lake.Table, work: Callable[..., Iterator[pa.RecordBatch]]
) -> list[lake.CommitMessage]:
    """Run ``work`` on the rows of ``frame`` in tasks, and return the commit messages of the tasks.

    If a task fails or refuses its rows, delete the files of the tasks that have finished, and raise
    the error of that task. With Spark Connect, files may remain as orphans.
    """
    context = classic_context(frame.sparkSession)
    written = None if context is None else context.accumulator([], _Messages())
    try:
        answers = in_tasks(frame, partial(work, written), _ANSWER_DDL).collect()
    except Exception:
        if written is not None:  # the files of tasks that have finished
            _abort(table, [table.read_message(each) for each in written.value])
        raise
    messages = [
        table.read_message(bytes(answer.message))
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
    """Raise ``UnsupportedError`` if several tasks have written rows of the same bucket.

    The sequence numbers of these rows would collide. Before the error is raised, the files of all
    messages are deleted.
    """
    if not has_ordered_rows(row_schema(table)) or table.writer_buckets() is not None:
        return  # or the commit of the table checks it
    seen: set[tuple[bytes, int]] = set()
    for message in messages:
        place = (message.partition, message.bucket)
        if message.bucket == POSTPONE_BUCKET:
            continue  # its rows are numbered later, when they get their bucket
        if place in seen:
            _abort(table, messages)
            raise lake.UnsupportedError(
                f"several tasks have rows of bucket {message.bucket} of {table.location}, so the "
                "sequence numbers of these rows would collide: write the result of "
                "spark_jobs.by_bucket(rows, table), which routes these rows to one task, or use "
                "spark_jobs.write_table. Nothing was written"
            )
        seen.add(place)


class _Messages(AccumulatorParam[list[bytes]]):
    """Collects the messages of finished tasks in the driver, even if their job fails."""

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
    upsert_by: Sequence[str] | None = None,
    order: Order | None = None,
) -> list[lake.CommitMessage] | lake.LakeError:
    """Write the rows of one task; return its messages, or the error that a retry would repeat.

    An ``InvalidRequestError``, or a ``NotFoundError`` of ``new_writer``, is returned instead of
    raised, because Spark would run the task again with the same result. Other errors are raised.
    ``upsert_by`` names the columns of the key by which a row replaces a stored row; ``order`` maps
    the names of further arguments of the writer to their values.
    """
    by_key: dict[str, Any] = {} if upsert_by is None else {"upsert_by": upsert_by}
    try:
        writer = table.new_writer(overwrite=overwrite, **{**(order or {}), **by_key})
    except (
        lake.InvalidRequestError,
        lake.NotFoundError,
    ) as reason:  # also if the table was dropped
        return reason
    try:
        with writer:
            if read_rows is not None:
                rows = read_rows(table, rows)
            # The packing task checked the pieces; its refusals are raised here.
            writer.write(rows, kinds, checked=read_rows is read_pieces)
            return writer.prepare()
    except lake.InvalidRequestError as reason:
        return reason


def _write_partition(
    sent: bytes,
    read_rows: RowReader | None,
    kinds: str | None,
    overwrite: Overwritten | None,
    upsert_by: Sequence[str] | None,
    order: Order | None,
    written: Accumulator[list[bytes]] | None,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    first = next(batches, None)
    if first is None:
        return
    table: lake.Table = pickle.loads(sent)
    prepare_worker()
    rows: Iterator[pa.RecordBatch] = chain([first], batches)
    answer = write_in_task(table, rows, kinds, overwrite, read_rows, upsert_by, order)
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
