# SPDX-License-Identifier: Apache-2.0
"""Rows that an update moves to another partition, and changes of other commits to the same keys.

A stream deletes the old row of a key only within the partition of its new row. So if a stream
changes a row that a batch moves, the table would have the key twice, once in each partition.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.errors import CommitConflictError
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.partition_type import partition_type
from lakeformat.iceberg.read.equality_keys import EqualityKeys
from lakeformat.iceberg.read.file_rows import file_rows_of
from lakeformat.iceberg.read.plan import TableState, plan_files
from lakeformat.iceberg.write.partitioned_rows import Splitter
from lakeformat.mixed.batch.begin import BegunBatch
from lakeformat.mixed.read.node_splits import NodeSplit
from lakeformat.mixed.read.store_files import StoreFile, change_files

__all__ = ["MovedRows"]


@dataclass(slots=True)
class MovedRows:
    """The keys of the rows that an update moves out of their partition, by split."""

    batch: BegunBatch
    _keys: list[tuple[NodeSplit, list[pa.Array]]] = field(default_factory=list, init=False)
    _checked: set[str] = field(default_factory=set, init=False)
    """The paths of files of other commits in which none of the keys was found."""

    def add(self, split: NodeSplit, old: pa.RecordBatch, new: pa.RecordBatch) -> None:
        """Record the keys of the rows of ``split`` that an update moves to another partition.

        ``old`` and ``new`` are the same rows before and after the update.
        """
        is_moved = _differs(self._partitions(old), self._partitions(new))
        if is_moved is None or not pc.any(is_moved).as_py():
            return
        moved = old.filter(is_moved)
        self._keys.append((split, [moved.column(each.name) for each in self.batch.state.key]))

    def require_unchanged(self, change: LoadedMetadata) -> None:
        """Raise ``CommitConflictError`` if another commit has changed the key of a moved row since
        the batch began.

        Changes outside of the old partition of the row are ignored.
        """
        if not self._keys:
            return
        metadata = change.metadata
        state = TableState(change.places, metadata, metadata.current_snapshot, metadata.schema)
        for file in change_files(state, plan_files(state)):
            if file.sequence <= self.batch.transaction or file.path in self._checked:
                continue
            if self._has_moved_key(state, file):
                raise CommitConflictError(
                    f"{self.batch} was not published: it moves rows out of the partition "
                    f"{file.partition!r}, and {file.path} has newer changes of some of these "
                    "rows. So the table would have these rows in their old and new partitions. "
                    "Repeat the update in a new batch, which reads the new rows; table.update() "
                    "begins a batch itself"
                )
            self._checked.add(file.path)

    def _has_moved_key(self, state: TableState, file: StoreFile) -> bool:
        left = [
            keys
            for split, keys in self._keys
            if split.partition == file.partition and split.node.may_share_keys(file.node)
        ]
        if not left:
            return False
        columns = [pa.concat_arrays(each) for each in zip(*left, strict=True)]
        moved = EqualityKeys(columns, np.zeros(len(columns[0]), np.int64))
        return any((moved.numbers(keys) >= 0).any() for keys in self._keys_of(state, file))

    def _keys_of(self, state: TableState, file: StoreFile) -> Iterator[list[pa.Array]]:
        stored, rows = file.split.file, file_rows_of(state.places, state.metadata.properties)
        for batch in rows.read(
            stored.path,
            stored.format,
            self.batch.state.key,
            row_count=stored.record_count,
            constants=dict(stored.constants),
        ):
            yield batch.columns

    def _partitions(self, rows: pa.RecordBatch) -> list[pa.Array]:
        metadata = self.batch.state.change.metadata
        spec = metadata.spec_of(metadata.default_spec_id)
        splitter = Splitter(spec, metadata.schema, partition_type(metadata, spec))
        return splitter.values(pa.Table.from_batches([rows]))


def _differs(old: list[pa.Array], new: list[pa.Array]) -> pa.Array | None:
    """Return a mask of the rows whose partition values differ; two nulls are equal.

    Return None if the table has no partition columns.
    """
    found = None
    for before, after in zip(old, new, strict=True):
        both_null = pc.and_(pc.is_null(before), pc.is_null(after))
        is_same = pc.or_(pc.fill_null(pc.equal(before, after), False), both_null)
        found = pc.invert(is_same) if found is None else pc.or_(found, pc.invert(is_same))
    return found
