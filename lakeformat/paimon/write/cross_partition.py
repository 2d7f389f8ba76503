# SPDX-License-Identifier: Apache-2.0
"""Finds the buckets of rows in tables whose keys may move to another partition.

If a key is already in another partition, the merge engine decides. ``deduplicate`` deletes the row
there and writes the new row to the new partition. ``partial-update`` and ``aggregation`` keep the
key in the old partition and ignore the partition of the new row. ``first-row`` drops the new row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakeformat.paimon.binary_row import decode_columns, encode_columns
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.partition import partition_fields
from lakeformat.paimon.write.assign import PartitionNumbers, Place, Places
from lakeformat.paimon.write.dynamic_buckets import room_of
from lakeformat.paimon.write.held_rows import HeldRows
from lakeformat.paimon.write.key_places import NOWHERE, FindKeys, KeyPlaces
from lakeformat.rows.groups import Positions
from lakeformat.rows.row_kinds import DELETE, Kinds

__all__ = ["CrossPartitionRows"]


@dataclass(frozen=True, slots=True)
class _Piece:
    """Rows with their kinds, the numbers of their keys, and the number of each row's partition."""

    rows: pa.RecordBatch
    kinds: Kinds
    keys: Positions
    partitions: Positions


class CrossPartitionRows:
    """Holds the rows of one write until their keys are looked up, then finds the bucket of each
    row.

    Memory holds the distinct keys of each batch, and four bytes per row; the rows themselves may be
    on disk.
    """

    def __init__(self, handle: TableHandle, partitions: PartitionNumbers, find: FindKeys) -> None:
        schema = handle.schema
        by_name = {field.name: field for field in schema.fields}
        self._handle = handle
        self._partitions = partitions
        self._find = find
        self._keys = [schema.column_names.index(name) for name in schema.primary_keys]
        self._types = [by_name[name].type for name in schema.primary_keys]
        self._moved = [schema.column_names.index(name) for name in schema.partition_keys]
        self._moved_types = [field.type for field in partition_fields(schema)]
        self._held = HeldRows(handle.options)
        self._met: list[pa.DictionaryArray] = []
        self._places: KeyPlaces | None = None

    def add(self, rows: pa.RecordBatch, kinds: Kinds, partitions: Places) -> None:
        """Add rows; ``partitions`` has the number of each row's own partition."""
        keys = encode_columns([rows.column(each) for each in self._keys], self._types)
        self._met.append(keys.cast(pa.large_binary()).dictionary_encode())
        # The table may have columns with these names, so readers use the last two columns by
        # position.
        held = rows.append_column("kind", pa.array(kinds))
        self._held.add(held.append_column("partition", pa.array(partitions)))

    def settle(self) -> Iterator[tuple[pa.RecordBatch, Kinds, Places]]:
        """Yield all rows with their kinds and the place numbers of their buckets.

        Rows of kind DELETE are added for keys that move to another partition. ``first-row`` drops
        rows whose key is in another partition.
        """
        if not self._met:
            return
        met = pa.chunked_array(self._met).unify_dictionaries()
        keys = np.concatenate([chunk.indices.to_numpy() for chunk in met.chunks])
        found = self._find(met.chunk(0).dictionary)
        self._met = []
        self._places = places = KeyPlaces.of(self._partitions, room_of(self._handle), found)
        schema, start = self._handle.schema.arrow_schema(), 0
        for batch in self._held:
            of_rows = keys[start : start + batch.num_rows].astype(np.int64)
            start += batch.num_rows
            *columns, kinds, partitions = batch.columns
            rows = pa.RecordBatch.from_arrays(columns, schema=schema)
            piece = _Piece(rows, kinds.to_numpy(), of_rows, partitions.to_numpy())
            settled = self._settled(piece, places)
            if settled[0].num_rows:
                yield settled
        self._held.clear()

    def place(self, number: int) -> Place:
        """Return the partition and bucket of a place number."""
        assert self._places is not None
        return self._places.place(number)

    def clear(self) -> None:
        """Drop all rows, including those on disk."""
        self._met = []
        self._held.clear()

    def _settled(self, piece: _Piece, places: KeyPlaces) -> tuple[pa.RecordBatch, Kinds, Places]:
        engine = self._handle.options.merge_engine
        if engine == "deduplicate":
            return self._moving(piece, places)
        partitions, at = _keep_first_place(piece, places)
        is_elsewhere = partitions != piece.partitions
        if engine == "first-row":
            keep = ~is_elsewhere
            return piece.rows.filter(pa.array(keep)), piece.kinds[keep], at[keep]
        rows = self._in_partitions(piece.rows, partitions) if is_elsewhere.any() else piece.rows
        return rows, piece.kinds, at

    def _moving(self, piece: _Piece, places: KeyPlaces) -> tuple[pa.RecordBatch, Kinds, Places]:
        """Return the rows, each in its own partition, with their kinds and places.

        If a row moves its key to another partition, a DELETE row in the old partition precedes it.
        """
        moves = _moves(piece, places)
        left = np.flatnonzero(moves.left_partition != NOWHERE)
        if not len(left):
            return piece.rows, piece.kinds, moves.places
        left_partition = moves.left_partition[left]
        places.leave(piece.keys[left], left_partition, moves.left_place[left])
        deletes = self._in_partitions(piece.rows.take(pa.array(left)), left_partition)
        # Each deletion comes right before the row that made the key move.
        order = np.argsort(
            np.concatenate([2 * np.arange(len(piece.keys)) + 1, 2 * left]), kind="stable"
        )
        both = pa.Table.from_batches([piece.rows, deletes]).take(pa.array(order))
        kinds = np.concatenate([piece.kinds, np.full(len(left), DELETE, np.int8)])[order]
        at = np.concatenate([moves.places, moves.left_place[left]])[order]
        [rows] = both.combine_chunks().to_batches()
        return rows, kinds, at

    def _in_partitions(self, rows: pa.RecordBatch, partitions: Positions) -> pa.RecordBatch:
        there, each = np.unique(partitions, return_inverse=True)
        framed = pa.array([self._partitions.row(int(n)) for n in there], pa.large_binary())
        for position, values in zip(
            self._moved, decode_columns(framed, self._moved_types), strict=True
        ):
            field = rows.schema.field(position)
            taken = values.cast(field.type).take(pa.array(each))
            rows = rows.set_column(position, field, taken)
        return rows


@dataclass(frozen=True, slots=True)
class _Moves:
    """The place (partition and bucket) of each row, and the partition that its key left;
    ``NOWHERE`` if it left none.

    ``left_place`` has a meaning only for a key that left a partition.
    """

    places: Places
    left_partition: Positions
    left_place: Places


def _by_key(piece: _Piece) -> tuple[Positions, npt.NDArray[np.bool_]]:
    """Return the positions of rows sorted by key, and a mask of the first row of each key in this
    order.

    Rows of one key keep their order.
    """
    order = np.argsort(piece.keys, kind="stable")
    keys = piece.keys[order]
    return order, np.append(True, keys[1:] != keys[:-1])


def _moves(piece: _Piece, places: KeyPlaces) -> _Moves:
    order, is_first = _by_key(piece)
    keys, partitions = piece.keys[order], piece.partitions[order]
    before = np.where(is_first, places.partition_of[keys], np.roll(partitions, 1))
    comes = before != partitions
    new = np.sort(order[comes])  # keys are numbered in the order of their rows
    place = np.full(len(order), NOWHERE, np.int64)
    place[new] = places.come(
        piece.keys[new], piece.partitions[new], repeats=bool((comes & ~is_first).any())
    )
    at = place[order]
    stays = is_first & ~comes
    at[stays] = places.place_of[keys[stays]]
    at = at[np.maximum.accumulate(np.where(is_first | comes, np.arange(len(order)), 0))]
    was = np.where(is_first, places.place_of[keys], np.roll(at, 1))
    is_last = np.append(is_first[1:], True)
    places.partition_of[keys[is_last]] = partitions[is_last]
    places.place_of[keys[is_last]] = at[is_last]
    has_left = comes & (before != NOWHERE)
    return _Moves(
        _unsorted(order, at),
        _unsorted(order, np.where(has_left, before, NOWHERE)),
        _unsorted(order, was),
    )


def _keep_first_place(piece: _Piece, places: KeyPlaces) -> tuple[Positions, Places]:
    """Return, for each row, the partition and the place in which its key was first written."""
    order, is_first = _by_key(piece)
    firsts = order[is_first]
    firsts = np.sort(firsts[places.partition_of[piece.keys[firsts]] == NOWHERE])
    keys = piece.keys[firsts]
    places.place_of[keys] = places.come(keys, piece.partitions[firsts], repeats=False)
    places.partition_of[keys] = piece.partitions[firsts]
    return places.partition_of[piece.keys], places.place_of[piece.keys]


def _unsorted(order: Positions, values: Positions) -> Positions:
    found = np.empty_like(values)
    found[order] = values
    return found
