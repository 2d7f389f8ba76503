# SPDX-License-Identifier: Apache-2.0
"""Finds the data files whose rows may differ between two snapshots.

These are files that only one snapshot has, and files to which the two snapshots apply different
deletes. If both snapshots have the same manifests of delete files, a manifest of data files is read
only if it is not in both snapshots.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.iceberg.metadata.manifest_list import MANIFEST_SCHEMA, read_manifest_list
from lakeformat.iceberg.read.data_file import DataFile, FileSplit
from lakeformat.iceberg.read.delete_index import DeleteIndex
from lakeformat.iceberg.read.file_splits import plan_splits
from lakeformat.iceberg.read.plan import (
    FilePlan,
    TableState,
    all_fields,
    plan_added_files,
    plan_files,
)
from lakeformat.rows.prune import Conjunction

__all__ = ["ChangedFile", "added_files", "changed_files"]

_DATA = 0
"""The value of ``content`` of manifests of data files, in a manifest list."""


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A data file with its deletes in the earlier and in the later snapshot."""

    before: FileSplit | None
    """None if only the later snapshot has the file."""
    after: FileSplit | None
    """None if only the earlier snapshot has the file."""

    @property
    def file(self) -> DataFile:
        """The data file itself."""
        split = self.before if self.after is None else self.after
        assert split is not None
        return split.file


def changed_files(
    before: TableState, after: TableState, conditions: Conjunction = ()
) -> list[ChangedFile]:
    """Return the changed data files that may have rows that meet the conditions.

    Files of the earlier snapshot come first.
    """
    mine, theirs = _manifests(before), _manifests(after)
    has_new_deletes = _has_new_deletes(mine, theirs)
    if not has_new_deletes:
        mine, theirs = _without_shared(mine, theirs), _without_shared(theirs, mine)
    old, new = plan_files(before, conditions, mine), plan_files(after, conditions, theirs)
    touched = _touched(before, old, after, new) if has_new_deletes else set()
    removed = _splits(before, _changed(old, new, touched))
    added = _splits(after, _changed(new, old, touched))
    pairs = [ChangedFile(split, added.pop(path, None)) for path, split in removed.items()]
    pairs += [ChangedFile(None, split) for split in added.values()]
    return [each for each in pairs if not _has_same_deletes(each)]


def added_files(state: TableState, conditions: Conjunction = ()) -> list[ChangedFile]:
    """Return the data files that an append added, without files that cannot meet ``conditions``."""
    assert state.snapshot is not None
    plan = plan_added_files(state, [state.snapshot], conditions)
    return [ChangedFile(None, split) for split in plan_splits(state, plan)]


def _manifests(state: TableState) -> pa.Table:
    if state.snapshot is None:
        return MANIFEST_SCHEMA.empty_table()
    return read_manifest_list(state.places, state.snapshot)


def _has_new_deletes(mine: pa.Table, theirs: pa.Table) -> bool:
    paths = [
        set(each.filter(_is_deletes(each)).column("manifest_path").to_pylist())
        for each in (mine, theirs)
    ]
    return paths[0] != paths[1]


def _without_shared(manifests: pa.Table, known: pa.Table) -> pa.Table:
    """Return ``manifests`` without each manifest of data files that is also in ``known``.

    All manifests of delete files are kept.
    """
    is_shared = pc.is_in(manifests.column("manifest_path"), known.column("manifest_path"))
    return manifests.filter(pc.or_(pc.invert(is_shared), _is_deletes(manifests)))


def _is_deletes(manifests: pa.Table) -> pa.ChunkedArray:
    return pc.not_equal(manifests.column("content"), _DATA)


def _touched(
    before: TableState, old: FilePlan, after: TableState, new: FilePlan
) -> set[str] | None:
    """Return the URIs of the data files to which a delete file of only one snapshot applies.

    None means that such a delete file may apply to any data file.
    """
    found: set[str] = set()
    for state, plan, other in ((before, old, new), (after, new, old)):
        index = DeleteIndex(all_fields(state.metadata))
        known = _column(map(_delete_ids, other.deletes))
        for table in plan.deletes:
            own = table.filter(pc.invert(pc.is_in(_delete_ids(table), known)))
            if own.num_rows:
                index.add(own, state.metadata.spec_of(own.column("spec_id")[0].as_py()))
        if index.data_files is None:
            return None
        found |= index.data_files
    return found


def _delete_ids(deletes: pa.Table) -> pa.ChunkedArray:
    """Return an id for each delete file: its path, and the offset of a deletion vector in it."""
    offsets = pc.fill_null(deletes.column("content_offset"), 0).cast(pa.string())
    return pc.binary_join_element_wise(deletes.column("file_path"), offsets, "@")


def _changed(plan: FilePlan, other: FilePlan, touched: set[str] | None) -> FilePlan:
    """Return ``plan`` with only the files that ``other`` lacks and the files in ``touched``.

    ``touched=None`` keeps all files.
    """
    if touched is None:
        return plan
    paths = _column(table.column("file_path") for table in other.entries)
    both = pa.array(sorted(touched), pa.string())
    entries = []
    for table in plan.entries:
        column = table.column("file_path")
        kept = pc.or_(pc.invert(pc.is_in(column, paths)), pc.is_in(column, both))
        entries.append(table.filter(kept))
    return replace(plan, entries=tuple(table for table in entries if table.num_rows))


def _column(columns: Iterable[pa.ChunkedArray]) -> pa.ChunkedArray:
    chunks = [chunk for column in columns for chunk in column.chunks]
    return pa.chunked_array(chunks, pa.string())


def _splits(state: TableState, plan: FilePlan) -> dict[str, FileSplit]:
    return {split.file.path: split for split in plan_splits(state, plan)}


def _has_same_deletes(changed: ChangedFile) -> bool:
    before, after = changed.before, changed.after
    if before is None or after is None:
        return False
    return _deletes(before) == _deletes(after)


def _deletes(split: FileSplit) -> tuple[int, set[tuple[str, int]]]:
    ids = {(each.path, each.content_offset) for each in split.deletes}
    return split.file.sequence_number, ids
