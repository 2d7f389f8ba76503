# SPDX-License-Identifier: Apache-2.0
"""Sends rows to the tasks that write them, packed in pieces that Spark does not unpack.

A packing task reads files or gets rows, finds the writing task of each row, and packs all rows for
one task as Arrow bytes. So Spark moves a few pieces instead of rows, and the order of the rows is
kept.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

import lakeformat as lake
from lakeformat.paimon.write.assign import Assigner, PartitionNumbers, Place, Places, rows_by_place
from lakeformat.paimon.write.checked_rows import CheckedRows
from lakeformat.paimon.write.passthrough_columns import decimals_as_numbers, texts_as_numbers
from lakeformat.rows.groups import Positions
from lakeformat.rows.key_words import column_words
from lakeformat.rows.repeated_values import with_dictionaries
from lakeformat.rows.take_rows import take_rows
from lakeformat.rows.word_order import sort_roughly
from lakeformat.types.row_numbers import rows_count_from
from spark_jobs.frames.jvm_batches import in_tasks
from spark_jobs.frames.parts import to_send
from spark_jobs.frames.pieces import PIECES_DDL, Packed, PieceWriter, piece, rows_of_pieces
from spark_jobs.frames.routing import Routing, as_routed, crosses_partitions
from spark_jobs.frames.worker import prepare_worker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["read_pieces", "split_rows"]

_HELD_BYTES = 16 << 20
"""The bytes of rows that a task holds before it sends pieces. Larger pieces do not fit into the
processor's cache: with four times as many bytes, the workers took a third more time.
"""
_MOST_BYTES = 1 << 30
"""Batches that together have more bytes are not combined, because Arrow's offsets of texts have 32
bits.
"""

Reader = Callable[[lake.Table, Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def split_rows(
    frame: DataFrame,
    table: lake.Table,
    read_rows: Reader,
    tasks: int,
    directory: str | None,
    kinds: str | None,
    routing: Routing,
) -> DataFrame:
    """Return a DataFrame of pieces with the rows that ``read_rows`` returns for ``frame``.

    Each piece is in the task that writes its rows, as ``routing`` determines; ``tasks`` is the
    number of these tasks. The order of the rows is kept. The bytes of the pieces are in files of
    ``directory``; if it is None, the pieces contain the bytes. The column ``kinds`` is kept with
    the rows.
    """
    work = partial(_split, to_send(table), read_rows, tasks, directory, kinds, routing)
    pieces = in_tasks(frame, work, PIECES_DDL)
    # Spark sorts only the few references to pieces, not the rows.
    return pieces.repartitionById(tasks, "task").sortWithinPartitions("source", "piece")


def read_pieces(table: lake.Table, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the pieces that a writing task gets.

    Raise ``InvalidRequestError`` if a packing task has refused its rows.
    """
    for batch in batches:
        yield from rows_of_pieces(batch)


def _split(
    sent: bytes,
    read_rows: Reader,
    tasks: int,
    directory: str | None,
    kinds: str | None,
    routing: Routing,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one partition of the input as pieces, in a Spark task. ``sent`` is the
    pickled table.

    An error about the rows is stored in a piece, because Spark would run a failed task again with
    the same result.
    """
    from pyspark import TaskContext

    prepare_worker()
    context = TaskContext.get()
    source = 0 if context is None else context.partitionId()
    table: lake.Table = pickle.loads(sent)
    adds = isinstance(table.schema, lake.TableSchema)
    splitter = _Splitter(routing, tasks, source, PieceWriter(directory), kinds, adds=adds)
    try:
        for batch in read_rows(table, batches):
            yield from splitter.add(batch)
        yield from splitter.rest()
    except lake.InvalidRequestError as reason:
        yield splitter.refusal(reason)


class _Splitter:
    """Divides rows into pieces, one for each writing task.

    Rows are held in memory until they have ``_HELD_BYTES``.
    """

    def __init__(
        self,
        routing: Routing,
        tasks: int,
        source: int,
        writer: PieceWriter,
        kinds: str | None,
        *,
        adds: bool,
    ) -> None:
        """Divide rows into pieces for ``tasks`` writing tasks.

        If ``adds`` is True, all columns that the rows lack are added. If it is False, only those of
        the key and the partition are added, and the writer adds the remaining ones. ``adds`` is
        False for Iceberg and Mixed tables, because only their writers know the write defaults.
        """
        schema = routing.schema
        texts = texts_as_numbers(schema)
        encoded = texts | decimals_as_numbers(schema)
        self._checked = CheckedRows(schema, kinds, first_row=0, encoded=encoded)
        self._spelled_out = {*schema.column_names} - texts
        routed_by = {*schema.primary_keys, *schema.partition_keys}
        self._added = {*schema.column_names} if adds else routed_by
        by_bucket = as_routed(schema, tasks)
        numbers = PartitionNumbers(by_bucket, None)
        self._assign = Assigner(by_bucket, numbers, routing.function)
        # Keys that move between partitions have one order in all partitions.
        keyed = () if crosses_partitions(schema) else schema.key_fields
        self._keys = tuple(field.name for field in keyed)
        self._tasks = tasks
        self._source = source
        self._writer = writer
        self._piece = 0
        self._rows = 0
        self._sent = 0
        self._held: list[pa.RecordBatch] = []
        self._bytes = 0

    def add(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Hold the rows of a batch, and yield pieces of all held rows if they have ``_HELD_BYTES``.

        If the batch has a different schema or too many bytes, yield pieces of the earlier rows
        first.
        """
        with rows_count_from(0):
            rows = self._checked.add(batch)
        kept = {*batch.schema.names, *self._added}
        rows = rows.select([name for name in rows.schema.names if name in kept])
        # Text may be dictionary-encoded in one file and not in another; the same with decimals.
        fits = self._bytes + rows.nbytes <= _MOST_BYTES
        if self._held and not (fits and rows.schema.equals(self._held[0].schema)):
            yield from self._pieces()
        self._rows += rows.num_rows
        self._held.append(rows)
        self._bytes += rows.nbytes
        if self._bytes >= _HELD_BYTES:
            yield from self._pieces()

    def rest(self) -> Iterator[pa.RecordBatch]:
        """Yield pieces of the rows that are still held, and close the writer of the pieces.

        Call it once, at the end.
        """
        last = [*self._pieces()]
        self._writer.close()
        yield from last

    def refusal(self, reason: lake.InvalidRequestError) -> pa.RecordBatch:
        self._writer.close()
        return self._message(0, Packed(), pickle.dumps(reason))

    def _pieces(self) -> Iterator[pa.RecordBatch]:
        """Yield all held rows as pieces, one for each writing task that gets rows."""
        held, self._held, self._bytes = self._held, [], 0
        first, self._sent = self._sent, self._rows
        if first == self._rows:
            return
        rows = with_dictionaries(pa.Table.from_batches(held).combine_chunks(), self._spelled_out)
        places = self._assign(rows.to_batches()[0], range(first, self._rows))
        task_of = np.zeros(places.max() + 1, np.int64)
        for place in np.flatnonzero(np.bincount(places)):
            task_of[place] = self._task_of(int(place))
        moved = take_rows(rows, self._order(rows, places, task_of))
        start = 0
        for task, count in enumerate(np.bincount(task_of[places])):
            if count:
                yield self._message(task, self._writer.pack(moved.slice(start, int(count))))
            start += int(count)

    def _order(self, rows: pa.Table, places: Places, task_of: Positions) -> Positions:
        """Return the positions of the rows sorted by writing task and, if the table has a key, by
        bucket and key.

        The writer sorts the rows again, which is faster if they are nearly in order.
        """
        if not self._keys:
            return rows_by_place(task_of[places]).order
        rank = np.empty(len(task_of), np.uint64)
        rank[np.argsort(task_of, kind="stable")] = np.arange(len(task_of), dtype=np.uint64)
        by_key = chain.from_iterable(column_words(rows[key]) for key in self._keys)
        return sort_roughly(chain([lambda _: rank[places]], by_key), rows.num_rows)

    def _task_of(self, number: int) -> int:
        """Return the writing task for a partition and a bucket; ``number`` is their place number.

        All packing tasks find the same writing task for a bucket of a partition.
        """
        place: Place = self._assign.place(number)
        return (zlib.crc32(place.partition) + place.bucket) % self._tasks

    def _message(self, task: int, packed: Packed, refused: bytes | None = None) -> pa.RecordBatch:
        number, self._piece = self._piece, self._piece + 1
        return piece(task, self._source, number, packed, refused)
