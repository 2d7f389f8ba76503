# SPDX-License-Identifier: Apache-2.0
"""Writes rows to files of a store of a Mixed table: by partition, node and kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lakeformat.environment import Environment
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.types import Field
from lakeformat.iceberg.write.partitioned_rows import PartitionedRows
from lakeformat.iceberg.write.table_writer import TableWriter
from lakeformat.mixed.file_names import FileKind, FileName
from lakeformat.mixed.key_hash import hash_keys, require_hashable
from lakeformat.mixed.tree_node import TreeNode, bucket_mask
from lakeformat.types.arrow_memory import array_of

__all__ = ["NodeWriter"]


@dataclass(frozen=True, slots=True)
class _NodeAndKind:
    """The last part of the key of rows in memory: a node and a kind."""

    node: TreeNode
    kind: FileKind

    def encode(self) -> bytes:
        return f"{self.node.id}-{self.kind}".encode()

    @classmethod
    def decode(cls, encoded: bytes) -> _NodeAndKind:
        node, kind = encoded.decode().split("-")
        return cls(TreeNode.of_id(int(node)), FileKind(kind))


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
        more: tuple[Field, ...] = (),
    ) -> None:
        """Start a writer for a number of nodes, which the table property ``option`` has; ``more``
        are columns beside those of the table.
        """
        super().__init__(loaded, environment, more, is_sorted=False)
        require_hashable(key)
        self._key = tuple(key)
        self._mask = bucket_mask(buckets, option)
        self._kind = kind
        self._transaction = transaction
        self._operation = self._operation.replace("-", "")

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
            place = _NodeAndKind(TreeNode(self._mask, index), self._kind)
            of_node = rows.slice(int(ends[index] - sizes[index]), int(sizes[index]))
            super()._hold(PartitionedRows((*part.key, place.encode()), part.partition, of_node))

    def _file_name(self, key: tuple[bytes | None, ...], count: int) -> str:
        assert key[-1] is not None
        place = _NodeAndKind.decode(key[-1])
        return str(
            FileName(place.node, place.kind, self._transaction, 0, 0, self._operation, count)
        )
