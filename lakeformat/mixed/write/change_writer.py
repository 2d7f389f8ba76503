# SPDX-License-Identifier: Apache-2.0
"""Writes changes to files of the change store: by partition, node and kind, with offsets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakeformat.environment import Environment
from lakeformat.iceberg.properties import int_property
from lakeformat.iceberg.write.given_rows import GivenRows
from lakeformat.iceberg.write.partitioned_rows import PartitionedRows
from lakeformat.iceberg.write.table_writer import TableWriter
from lakeformat.mixed.file_names import FileKind, FileName
from lakeformat.mixed.key_hash import hash_keys, require_hashable
from lakeformat.mixed.stores.file_offset import FILE_OFFSET
from lakeformat.mixed.stores.store_pair import LoadedPair
from lakeformat.mixed.tree_node import TreeNode, bucket_mask
from lakeformat.mixed.write.changes import ChangesOf
from lakeformat.rows.row_kinds import INSERT, Kinds
from lakeformat.types.arrow_memory import array_of

__all__ = ["ChangeWriter"]

_BUCKETS = "change.file-index.hash-bucket"
_DEFAULT_BUCKETS = 4
_OWN_SEQUENCE = 0
"""The transaction in the name of a file whose transaction is its sequence number."""


@dataclass(frozen=True, slots=True)
class _Place:
    """The last part of the key of rows in memory: a node and a kind."""

    node: TreeNode
    kind: FileKind

    def encode(self) -> bytes:
        return f"{self.node.id}-{self.kind}".encode()

    @classmethod
    def decode(cls, encoded: bytes) -> _Place:
        node, kind = encoded.decode().split("-")
        return cls(TreeNode.of_id(int(node)), FileKind(kind))


class ChangeWriter(TableWriter):
    """Writes the changes of one transaction; at the end call ``finish``, or ``discard`` after an
    error.
    """

    def __init__(self, pair: LoadedPair, environment: Environment, *, replaces: bool) -> None:
        """Start a writer; with ``replaces`` a stored row first deletes its key."""
        super().__init__(pair.change, environment, (FILE_OFFSET,), is_sorted=False)
        self._key = pair.key
        require_hashable(self._key)
        properties = pair.base.metadata.properties
        self._mask = bucket_mask(int_property(properties, _BUCKETS, _DEFAULT_BUCKETS), _BUCKETS)
        self._operation = self._operation.replace("-", "")
        self._of_table = GivenRows(pair.change.metadata.schema)
        self._changes = ChangesOf(pair.change.metadata, self._key, replaces=replaces)
        self._kind = FileKind.INSERT
        self._offset = 1
        self.changed_rows = 0
        """The number of rows that were given so far."""

    def change(self, batch: pa.RecordBatch, kinds: Kinds | None) -> None:
        """Add rows to store, or to delete if their kind is ``-U`` or ``-D``."""
        numbers = range(self.changed_rows, self.changed_rows + batch.num_rows)
        if kinds is None:
            kinds = np.full(len(numbers), INSERT, np.int8)
        rows = self._of_table(batch, numbers)
        made = self._changes(rows, kinds, numbers, self._offset)
        self.changed_rows, self._offset = numbers.stop, made.next_offset
        for kind, changed in (
            (FileKind.CHANGE_DELETE, made.deletes),
            (FileKind.INSERT, made.inserts),
        ):
            self._kind = kind
            self.write(changed)

    def _hold(self, part: PartitionedRows) -> None:
        """Hold the rows of one partition in memory, those of each node apart."""
        rows = part.rows
        columns = [rows.column(each.name).combine_chunks() for each in self._key]
        # The smallest type of numbers is the fastest one to sort.
        nodes = (hash_keys(self._key, columns) & self._mask).astype(np.min_scalar_type(self._mask))
        sizes = np.bincount(nodes)
        ends = np.cumsum(sizes)
        used = np.flatnonzero(sizes).tolist()
        if len(used) > 1:
            rows = rows.take(array_of(np.argsort(nodes, kind="stable")))
        for index in used:
            place = _Place(TreeNode(self._mask, index), self._kind)
            of_node = rows.slice(int(ends[index] - sizes[index]), int(sizes[index]))
            super()._hold(PartitionedRows((*part.key, place.encode()), part.partition, of_node))

    def _file_name(self, key: tuple[bytes | None, ...], count: int) -> str:
        assert key[-1] is not None
        place = _Place.decode(key[-1])
        return str(FileName(place.node, place.kind, _OWN_SEQUENCE, 0, 0, self._operation, count))
