# SPDX-License-Identifier: Apache-2.0
"""Writes rows to files of a store of a Mixed table: by partition, node and kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakeformat.environment import Environment
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.read.equality_keys import comparable
from lakeformat.iceberg.types import Field
from lakeformat.iceberg.write.partitioned_rows import PartitionedRows
from lakeformat.iceberg.write.table_writer import TableWriter
from lakeformat.mixed.file_names import FileKind, FileName
from lakeformat.mixed.key_hash import hash_keys, require_hashable
from lakeformat.mixed.tree_node import ROOT, TreeNode, bucket_mask
from lakeformat.types.arrow_memory import array_of

__all__ = ["NodeWriter"]


@dataclass(frozen=True, slots=True)
class _NodeAndKind:
    """A node and a kind: the last part of the key by which rows are held in memory."""

    node: TreeNode
    kind: FileKind

    def encode(self) -> bytes:
        return f"{self.node.id}-{self.kind}".encode()

    @classmethod
    def decode(cls, encoded: bytes) -> _NodeAndKind:
        node, kind = encoded.decode().split("-")
        return cls(TreeNode.of_id(int(node)), FileKind(kind))


@dataclass(slots=True)
class _Nodes:
    """The rows of a record batch, grouped by the node of their key."""

    key: Sequence[pa.Array]
    """The key columns, in a form in which -0.0 differs from 0.0, as in the hashes."""
    order: NDArray[np.int64]
    """The positions of the rows, sorted by node; rows of the same node keep their order."""
    sizes: NDArray[np.int64]
    """The number of rows of each node."""
    _known: list[tuple[pa.ChunkedArray, pa.ChunkedArray]] = field(default_factory=list)
    """The columns of the last call of ``together``, each with its copy in the order of nodes."""

    @classmethod
    def of(cls, fields: Sequence[Field], key: Sequence[pa.Array], mask: int) -> _Nodes:
        # The smallest type of numbers is the fastest one to sort.
        nodes = (hash_keys(fields, key) & mask).astype(np.min_scalar_type(mask))
        return cls([*map(comparable, key)], np.argsort(nodes, kind="stable"), np.bincount(nodes))

    def are_of(self, key: Sequence[pa.Array]) -> bool:
        """Return True if the rows have these keys."""
        return all(map(pa.Array.equals, self.key, map(comparable, key)))

    def together(self, rows: pa.Table) -> pa.Table:
        """Return the rows in the order of their nodes.

        Columns with only nulls are not copied. A column that the previous call has copied is used
        again: the deletes and the inserts of an upsert share the columns of keys and offsets.
        """
        order, columns = array_of(self.order), []
        for column in rows.columns:
            if column.null_count == len(column):
                columns.append(column)
                continue
            shared = (grouped for given, grouped in self._known if _is_same(given, column))
            columns.append(next(shared, None) or column.take(order))
        self._known = [*zip(rows.columns, columns, strict=True)]
        return pa.Table.from_arrays(columns, schema=rows.schema)


class NodeWriter(TableWriter):
    """Writes the rows of one transaction; at the end call ``finish``, or ``discard`` after an
    error.
    """

    def __init__(
        self,
        loaded: LoadedMetadata,
        environment: Environment,
        key: Sequence[Field],
        buckets: int,
        *,
        option: str,
        kind: FileKind,
        transaction: int,
        within: TreeNode = ROOT,
        is_decoded: bool = False,
        more: tuple[Field, ...] = (),
    ) -> None:
        """Start a writer for ``buckets`` nodes; the table property ``option`` sets this number.

        All rows belong to the tree node ``within``. If one of the writer's nodes contains
        ``within``, that node gets all rows, and no key is hashed. ``is_decoded`` means that the
        rows come from data files. ``more`` are columns in addition to those of the table.
        """
        super().__init__(loaded, environment, more, is_sorted=False, is_decoded=is_decoded)
        require_hashable(key)
        self._key = tuple(key)
        self._mask = bucket_mask(buckets, option)
        self._within = within
        self._kind = kind
        self._transaction = transaction
        self._last: _Nodes | None = None
        self._operation = self._operation.replace("-", "")

    def _hold(self, part: PartitionedRows) -> None:
        if self._within.mask >= self._mask:
            self._hold_node(part, self._within.index & self._mask, part.rows)
            return
        rows = part.rows
        columns = [rows.column(each.name).combine_chunks() for each in self._key]
        found = self._last
        # The deletes of an upsert have the keys of its inserts, which are hashed once.
        if found is None or not found.are_of(columns):
            found = self._last = _Nodes.of(self._key, columns, self._mask)
        ends = np.cumsum(found.sizes)
        used = np.flatnonzero(found.sizes).tolist()
        if len(used) > 1:
            rows = found.together(rows)
        for index in used:
            of_node = rows.slice(int(ends[index] - found.sizes[index]), int(found.sizes[index]))
            self._hold_node(part, index, of_node)

    def _hold_node(self, part: PartitionedRows, index: int, rows: pa.Table) -> None:
        place = _NodeAndKind(TreeNode(self._mask, index), self._kind)
        super()._hold(PartitionedRows((*part.key, place.encode()), part.partition, rows))

    def _file_name(self, key: tuple[bytes | None, ...], count: int) -> str:
        assert key[-1] is not None
        place = _NodeAndKind.decode(key[-1])
        return str(
            FileName(place.node, place.kind, self._transaction, 0, 0, self._operation, count)
        )


def _is_same(left: pa.ChunkedArray, right: pa.ChunkedArray) -> bool:
    if left.type != right.type or left.num_chunks != right.num_chunks:
        return False
    return all(map(_has_same_memory, left.chunks, right.chunks))


def _has_same_memory(left: pa.Array, right: pa.Array) -> bool:
    if pa.types.is_nested(left.type) or (left.offset, len(left)) != (right.offset, len(right)):
        return False
    addresses = ([each and each.address for each in array.buffers()] for array in (left, right))
    return next(addresses) == next(addresses)
