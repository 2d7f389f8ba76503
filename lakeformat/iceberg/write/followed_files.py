# SPDX-License-Identifier: Apache-2.0
"""Finds the data files that hold the rows of one commit, after compactions have rewritten them."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.manifest import ADDED, DATA, DELETED, read_entries
from lakeformat.iceberg.metadata.manifest_list import read_manifest_list
from lakeformat.iceberg.metadata.snapshot import Snapshot
from lakeformat.iceberg.read.entry_columns import scopes

__all__ = ["FollowedFiles", "files_of"]

_APPEND, _REPLACE = "append", "replace"


@dataclass(slots=True)
class FollowedFiles:
    """The URIs of the data files that hold the rows of one commit.

    If a compaction replaces only these files in a partition, its new files hold the same rows and
    replace them in ``paths``.
    """

    loaded: LoadedMetadata
    paths: frozenset[str]
    may_mix: bool = False
    """True to follow rows through a compaction that merged these files with other files, too."""

    def through(self, later: Sequence[Snapshot]) -> Snapshot | None:
        """Follow the rows through ``later``, the snapshots after the commit, newest first.

        If the rows can be followed, set ``paths`` to the files that hold them, and return None.
        Otherwise return the oldest snapshot that prevents following. Such a snapshot removes some
        of the files, and is either no compaction, or a compaction that drops rows. Without
        ``may_mix``, a compaction that merges the files with other files prevents following, too.
        """
        for snapshot in reversed(later):
            if snapshot.operation == _APPEND:
                continue
            entries = _own_entries(self.loaded, snapshot)
            deleted = [_with_status(each, DELETED) for each in entries]
            gone = [_named(each, self.paths) for each in deleted]
            if not _count(gone):
                continue
            if snapshot.operation != _REPLACE:
                return snapshot
            added = [_with_status(each, ADDED) for each in entries]
            if sum(len(each) > 0 for each in entries) == 1:
                # Rows keep their partition, because old and new files have the same spec.
                places = {place for each in gone for place in scopes(each)}
                deleted, added = _in(deleted, places), _in(added, places)
            is_mixed = _count(deleted) != _count(gone)
            if (is_mixed and not self.may_mix) or _rows(added) != _rows(deleted):
                return snapshot  # other rows were mixed in, or deleted ones were left out
            self.paths = (self.paths - _paths(gone)) | _paths(added)
        return None


def files_of(loaded: LoadedMetadata, snapshot: Snapshot) -> frozenset[str]:
    """Return the URIs of the data files that a snapshot added."""
    return _paths([_with_status(each, ADDED) for each in _own_entries(loaded, snapshot)])


def _own_entries(loaded: LoadedMetadata, snapshot: Snapshot) -> list[pa.Table]:
    """Return the entries of the data files that a snapshot added or removed, as one table for each
    spec.
    """
    manifests = read_manifest_list(loaded.places, snapshot)
    is_own = pc.equal(manifests["added_snapshot_id"], snapshot.snapshot_id)
    own = manifests.filter(pc.and_(is_own, pc.equal(manifests["content"], DATA)))
    found = read_entries(loaded.places, loaded.metadata, own, ()).values()
    changed = (each.filter(pc.equal(each["snapshot_id"], snapshot.snapshot_id)) for each in found)
    return [
        each.filter(pc.or_(pc.equal(each["status"], ADDED), pc.equal(each["status"], DELETED)))
        for each in changed
    ]


def _with_status(entries: pa.Table, status: int) -> pa.Table:
    return entries.filter(pc.equal(entries["status"], status)).combine_chunks()


def _named(entries: pa.Table, paths: Set[str]) -> pa.Table:
    known = pa.array(sorted(paths), pa.string())
    return entries.filter(pc.is_in(entries["file_path"], known)).combine_chunks()


def _in(tables: Sequence[pa.Table], places: Set[str]) -> list[pa.Table]:
    masks = ([place in places for place in scopes(each)] for each in tables)
    return [
        each.filter(pa.array(mask, pa.bool_())).combine_chunks()
        for each, mask in zip(tables, masks, strict=True)
    ]


def _paths(tables: Sequence[pa.Table]) -> frozenset[str]:
    return frozenset(path for each in tables for path in each["file_path"].to_pylist())


def _count(tables: Sequence[pa.Table]) -> int:
    return sum(map(len, tables))


def _rows(tables: Sequence[pa.Table]) -> int:
    return sum(pc.sum(each["record_count"]).as_py() or 0 for each in tables)
