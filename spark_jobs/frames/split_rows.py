"""Rows of files to the tasks that write them, in pieces that Spark passes on unseen.

A task reads files, says of each row which task writes it, and packs the rows of one task as Arrow
bytes. So Spark shuffles a few large values and converts no row; the order of the rows is kept.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

import lakeformat as lake
from lakeformat.write.assign import Assigner, PartitionNumbers, Place, rows_by_place
from lakeformat.write.conform import Conformer
from lakeformat.write.row_kinds import RowKinds
from spark_jobs.frames.parts import to_send
from spark_jobs.frames.routing import as_routed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["read_pieces", "split_rows"]

_PIECE_DDL = "task int, source int, piece int, rows binary, refused string"
_PIECE = pa.schema(
    [
        ("task", pa.int32()),
        ("source", pa.int32()),
        ("piece", pa.int32()),
        ("rows", pa.binary()),
        ("refused", pa.string()),
    ]
)
_HELD_BYTES = 16 << 20
"""So much a task holds before it sends pieces on: more makes them larger, and moves more than the
processor caches. At four times as much the workers were measured to take a third more time."""

Reader = Callable[[lake.Table, Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def split_rows(
    frame: DataFrame, table: lake.Table, read_rows: Reader, tasks: int, kinds: str | None = None
) -> DataFrame:
    """Pieces of what ``read_rows`` makes of each partition, where they are written, in order.

    The column ``kinds`` says what each row does; it goes with the rows.
    """
    work = partial(_split, to_send(table), read_rows, tasks, kinds)
    pieces = frame.mapInArrow(work, _PIECE_DDL)
    # Sorting moves references to pieces, of which there are few, and no row.
    return pieces.repartitionById(tasks, "task").sortWithinPartitions("source", "piece")


def read_pieces(table: lake.Table, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of the pieces a task has got; what their reader has refused is refused here."""
    for batch in batches:
        for piece in batch.to_pylist():
            if piece["refused"] is not None:
                raise lake.InvalidRequestError(piece["refused"])
            yield from pa.ipc.open_stream(piece["rows"])


def _split(
    sent: bytes,
    read_rows: Reader,
    tasks: int,
    kinds: str | None,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Runs in a Spark task. A refusal is an answer, since trying again cannot help."""
    from pyspark import TaskContext

    context = TaskContext.get()
    splitter = _Splitter(pickle.loads(sent), tasks, 0 if context is None else context.partitionId())
    try:
        splitter.take_kinds(kinds)
        for batch in read_rows(splitter.table, batches):
            yield from splitter.add(batch)
    except lake.InvalidRequestError as reason:
        yield splitter.refusal(str(reason))
        return
    yield from splitter.pieces()


class _Splitter:
    """Holds rows until there are enough to make pieces of."""

    def __init__(self, table: lake.Table, tasks: int, source: int) -> None:
        self.table = table
        self._conform = Conformer(table.schema.fields)
        schema = as_routed(table.schema, tasks)
        self._assign = Assigner(schema, PartitionNumbers(schema, None))
        self._tasks = tasks
        self._source = source
        self._piece = 0
        self._rows = 0
        self._sent = 0
        self._held: list[pa.RecordBatch] = []
        self._bytes = 0
        self._kinds: tuple[str, RowKinds] | None = None

    def take_kinds(self, column: str | None) -> None:
        """Keep a column that says what each row does."""
        if column is not None:
            self._kinds = (column, RowKinds(self.table.schema, column))

    def add(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Take rows in, and give pieces once there are many."""
        rows = self._conformed(batch)
        self._rows += rows.num_rows
        self._held.append(rows)
        self._bytes += rows.nbytes
        if self._bytes >= _HELD_BYTES:
            yield from self.pieces()

    def _conformed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if self._kinds is None:
            return self._conform(batch, self._rows)
        name, kinds = self._kinds
        batch, said = kinds.split(batch)
        rows = self._conform(batch, self._rows)
        return rows if name in rows.schema.names else rows.append_column(name, said)

    def pieces(self) -> Iterator[pa.RecordBatch]:
        """All rows there are, by task."""
        held, self._held, self._bytes = self._held, [], 0
        first, self._sent = self._sent, self._rows
        if first == self._rows:
            return
        rows = pa.Table.from_batches(held).combine_chunks().to_batches()[0]
        places = self._assign(rows, range(first, self._rows))
        task_of = {int(place): self._task_of(int(place)) for place in np.unique(places)}
        known = np.array([task_of.get(place, 0) for place in range(max(task_of) + 1)], np.int64)
        by_task = rows_by_place(known[places])
        moved = rows.take(pa.array(by_task.order))
        start = 0
        for task, positions in by_task:
            yield self._packed(task, moved.slice(start, len(positions)))
            start += len(positions)

    def refusal(self, reason: str) -> pa.RecordBatch:
        return self._message(0, None, reason)

    def _task_of(self, number: int) -> int:
        """The same of a place in every task."""
        place: Place = self._assign.place(number)
        return (zlib.crc32(place.partition) + place.bucket) % self._tasks

    def _packed(self, task: int, rows: pa.RecordBatch) -> pa.RecordBatch:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as stream:
            stream.write_batch(rows)
        return self._message(task, sink.getvalue().to_pybytes(), None)

    def _message(self, task: int, rows: bytes | None, refused: str | None) -> pa.RecordBatch:
        piece, self._piece = self._piece, self._piece + 1
        values = (task, self._source, piece, rows, refused)
        arrays = [
            pa.array([value], field.type) for value, field in zip(values, _PIECE, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=_PIECE)
