# SPDX-License-Identifier: Apache-2.0
"""Finds the partition and bucket into which each row is written.

If the keys of a table may move to another partition, the bucket of a row is known only after all
rows have arrived. In other tables, it is known when the row arrives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, TypeAlias

import pyarrow as pa

from lakeformat.paimon.handle import TableHandle, crosses_partitions, has_hash_index
from lakeformat.paimon.metadata.commit_message import CommitMessage
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.write.assign import Assigner, PartitionNumbers, Place, Places
from lakeformat.paimon.write.sequences import SequenceNumbers
from lakeformat.rows.groups import Positions
from lakeformat.rows.row_kinds import Kinds

if TYPE_CHECKING:
    from lakeformat.paimon.write.dynamic_buckets import DynamicAssigner
    from lakeformat.paimon.write.key_places import FoundKeys

__all__ = ["FindExistingKeys", "Placed", "Placement", "placement_of"]

Placed: TypeAlias = tuple[pa.RecordBatch, Kinds, Places]
"""Rows, their kinds, and their place numbers."""
FindExistingKeys: TypeAlias = "Callable[[TableHandle, Snapshot | None, pa.Array], FoundKeys]"
"""A function that looks up distinct keys, given as framed binary rows, in a snapshot of a table."""
MessageOf: TypeAlias = Callable[[Place], CommitMessage]


class Placement(Protocol):
    """Finds the place of each row: the bucket of a partition to which it is written."""

    def take(
        self, rows: pa.RecordBatch, kinds: Kinds, numbers: Sequence[int] | Positions
    ) -> Iterable[Placed]:
        """Yield those rows whose bucket is known now.

        Errors name a row by its number in ``numbers``.
        """
        ...

    def rest(self) -> Iterable[Placed]:
        """Yield the rows whose bucket is known only after all rows have arrived."""
        ...

    def place(self, number: int) -> Place:
        """Return the partition and bucket of a place number."""
        ...

    def with_index_changes(
        self, messages: list[CommitMessage], empty: MessageOf
    ) -> list[CommitMessage]:
        """Return the messages, each with the new index files of its bucket.

        Only tables with a hash index have such files; this method writes them. If a bucket has new
        index files but no message, ``empty`` makes a message.
        """
        ...

    def abort(self) -> None:
        """Delete the written index files, and drop the buffered rows."""
        ...


def placement_of(
    handle: TableHandle,
    base: Snapshot | None,
    partitions: PartitionNumbers,
    sequences: SequenceNumbers,
    find_keys: FindExistingKeys,
) -> Placement:
    """Return the ``Placement`` that the bucket mode of the table needs.

    ``base`` is the snapshot whose keys are known; without one, as in an overwrite, no key is known.
    """
    if crosses_partitions(handle):
        return _Crossing(handle, base, partitions, find_keys)
    if has_hash_index(handle):
        from lakeformat.paimon.write.dynamic_buckets import DynamicAssigner
        from lakeformat.paimon.write.hash_index import HashIndex

        index = HashIndex(handle, base)
        return _ByIndex(DynamicAssigner(handle, partitions, index, sequences))
    return _ByFunction(Assigner(handle.schema, partitions))


class _AtOnce:
    def __init__(self, assign: Assigner | DynamicAssigner) -> None:
        self._place_rows = assign
        self.place = assign.place

    def take(
        self, rows: pa.RecordBatch, kinds: Kinds, numbers: Sequence[int] | Positions
    ) -> Iterable[Placed]:
        yield rows, kinds, self._place_rows(rows, numbers)

    def rest(self) -> Iterable[Placed]:
        return ()


class _ByFunction(_AtOnce):
    def with_index_changes(
        self, messages: list[CommitMessage], empty: MessageOf
    ) -> list[CommitMessage]:
        return messages

    def abort(self) -> None:
        pass


class _ByIndex(_AtOnce):
    def __init__(self, assign: DynamicAssigner) -> None:
        super().__init__(assign)
        self._assign = assign
        self.abort = assign.abort

    def with_index_changes(
        self, messages: list[CommitMessage], empty: MessageOf
    ) -> list[CommitMessage]:
        from lakeformat.paimon.write.hash_index import IndexChange

        changes = self._assign.finish()
        of = {Place(message.partition, message.bucket): message for message in messages}
        for place in changes:  # after a merge, a new key may have no row
            of.setdefault(place, empty(place))
        none = IndexChange()
        return [
            replace(
                message,
                assigned_by=self._assign.read_by(place),
                new_index_files=changes.get(place, none).new,
                deleted_index_files=changes.get(place, none).replaced,
            )
            for place, message in of.items()
        ]


class _Crossing:
    """Finds the bucket of each row after all rows have arrived: keys are looked up all at once."""

    def __init__(
        self,
        handle: TableHandle,
        base: Snapshot | None,
        partitions: PartitionNumbers,
        find_keys: FindExistingKeys,
    ) -> None:
        from lakeformat.paimon.write.cross_partition import CrossPartitionRows

        def find(keys: pa.Array) -> FoundKeys:
            return find_keys(handle, base, keys)

        self._rows = CrossPartitionRows(handle, partitions, find)
        self._partitions = partitions
        self._name = f"writer {handle.environment.new_id()}"
        self.place = self._rows.place
        self.abort = self._rows.clear

    def take(
        self, rows: pa.RecordBatch, kinds: Kinds, numbers: Sequence[int] | Positions
    ) -> Iterable[Placed]:
        self._rows.add(rows, kinds, self._partitions(rows, numbers))
        return ()

    def rest(self) -> Iterator[Placed]:
        return self._rows.settle()

    def with_index_changes(
        self, messages: list[CommitMessage], empty: MessageOf
    ) -> list[CommitMessage]:
        return [replace(message, assigned_by=self._name) for message in messages]
