# SPDX-License-Identifier: Apache-2.0
"""The live data files of both stores with their partition, node, kind and transaction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lakeformat.errors import CorruptTableError
from lakeformat.iceberg.read.data_file import FileSplit
from lakeformat.iceberg.read.file_splits import plan_splits
from lakeformat.iceberg.read.plan import FilePlan, TableState, plan_files
from lakeformat.mixed.file_names import FileKind, name_columns
from lakeformat.mixed.stores.partition_path import partition_paths, partition_values
from lakeformat.mixed.tree_node import ROOT, TreeNode

__all__ = ["StoreFile", "base_files", "change_files", "has_foreign_files"]

_OF_CHANGES = (FileKind.INSERT, FileKind.CHANGE_DELETE)


@dataclass(frozen=True, slots=True)
class StoreFile:
    """A live data file of one store."""

    split: FileSplit
    """The file, with the delete files of Iceberg that apply to it."""
    partition: str
    """The path of the partition; empty in a table without partitions."""
    values: str
    """The values of the partition; different for a null and the text ``null``."""
    node: TreeNode
    kind: FileKind
    transaction: int
    """The id of the transaction that wrote the rows."""

    @property
    def path(self) -> str:
        """The URI of the file."""
        return self.split.file.path

    @property
    def in_change(self) -> bool:
        """True if the file is in the change store."""
        return self.kind is not FileKind.BASE

    @property
    def sequence(self) -> int:
        """The sequence number of the file in its store."""
        return self.split.file.sequence_number


def base_files(state: TableState, plan: FilePlan) -> Iterator[StoreFile]:
    """Yield the data files of the base store.

    The name of a file may have no node (hash bucket of keys), for example if the file was in the
    table before it became a Mixed table. Such a file can have rows of every node. It counts as
    older than every change.
    """
    for split, of, parts in _named(state, plan):
        if parts is None:
            yield StoreFile(split, *of, ROOT, FileKind.BASE, 0)
        else:
            node = TreeNode.of_id(parts["node"])
            yield StoreFile(split, *of, node, FileKind.BASE, parts["transaction"])


def change_files(state: TableState, plan: FilePlan) -> Iterator[StoreFile]:
    """Yield the data files of the change store.

    Raise ``CorruptTableError`` for a file name that Amoro does not write.
    """
    found = [*_named(state, plan)]
    if foreign := [split for split, _, parts in found if _is_foreign(parts)]:
        raise _foreign(state, min(foreign, key=lambda each: each.file.sequence_number))
    for split, of, parts in found:
        assert parts is not None
        transaction = parts["transaction"] or split.file.sequence_number
        node = TreeNode.of_id(parts["node"])
        yield StoreFile(split, *of, node, FileKind(parts["kind"]), transaction)


def has_foreign_files(state: TableState) -> bool:
    """Return True if the change store has a file with a name that Amoro does not write."""
    return any(_is_foreign(parts) for _, _, parts in _named(state, plan_files(state)))


def _is_foreign(parts: dict[str, Any] | None) -> bool:
    return parts is None or parts["kind"] not in _OF_CHANGES


def _foreign(state: TableState, split: FileSplit) -> CorruptTableError:
    head = None if state.snapshot is None else state.snapshot.snapshot_id
    number, store = split.file.sequence_number, state.places.argument
    added = [e for e in state.metadata.ancestry(head) if e.sequence_number == number]
    if added and (before := added[0].parent_id) is not None:
        repair = (
            f"Remove it with `lake rollback {store} --snapshot {before}`, then write its rows, and "
            "those of later commits, to the Mixed table"
        )
    else:
        repair = "No earlier snapshot is left to roll back to: restore the store from a backup"
    return CorruptTableError(
        f"{split.file.path} is a file of the change store {state.places.uri}, but its name does "
        "not contain the kind and the node of its changes: a program that does not know Mixed "
        f"tables has added it. {repair}"
    )


def _named(
    state: TableState, plan: FilePlan
) -> Iterator[tuple[FileSplit, tuple[str, str], dict[str, Any] | None]]:
    """Yield each file of a plan, the path and the values of its partition, and the parts of its
    name.

    The parts are None if the name is not one that Amoro writes.
    """
    partitions: dict[str, tuple[str, str]] = {}
    for entries in plan.entries:
        paths = entries.column("file_path").to_pylist()
        of = zip(partition_paths(state.metadata, entries), partition_values(entries), strict=True)
        partitions.update(zip(paths, of, strict=True))
    splits = plan_splits(state, plan)
    names = name_columns(pa.array([each.file.path for each in splits], pa.string()))
    for split, parts in zip(splits, names.to_pylist(), strict=True):
        yield split, partitions[split.file.path], parts
