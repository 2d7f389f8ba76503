# SPDX-License-Identifier: Apache-2.0
"""Commits the rows of a repeated run, and removes those that the run committed before.

Each attempt looks for the earlier commit again. So it notices a rollback that happened since, and
an attempt of the earlier run that was published late.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.errors import InvalidRequestError
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.commit.identity import earlier_of_user
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.manifest import (
    DATA,
    EQUALITY_DELETES,
    live_entries,
    read_entries,
)
from lakeformat.iceberg.metadata.manifest_list import read_manifest_list
from lakeformat.iceberg.metadata.snapshot import Snapshot
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.partition_spec import PartitionSpec
from lakeformat.iceberg.read.entry_columns import is_unpartitioned, scopes
from lakeformat.iceberg.write.file_changes import ChangedFiles
from lakeformat.iceberg.write.publish import Base, FileChange
from lakeformat.tables.commit_id import DELETE_FIRST, CommitId

__all__ = ["Redo", "files_added_by", "find_replaced"]

_ADDS_ROWS = ("append", "overwrite")


@dataclass(frozen=True, slots=True)
class _FilesAddedBy:
    """Chooses the data files that one snapshot added."""

    snapshot_id: int

    def mask(self, metadata: TableMetadata, spec: PartitionSpec, entries: pa.Table) -> pa.Array:
        is_added = pc.equal(entries["snapshot_id"], self.snapshot_id)
        mask = pc.and_(is_added, pc.equal(entries["content"], DATA))
        return mask.combine_chunks() if isinstance(mask, pa.ChunkedArray) else mask


@dataclass(frozen=True, slots=True)
class Redo:
    """Adds new files, and removes those of the earlier commit."""

    handle: TableHandle
    commit: CommitId
    added: Sequence[pa.Table]

    def __call__(self, base: Base) -> FileChange | None:
        """Return the change for the newest snapshot; raise ``InvalidRequestError`` if the earlier
        rows cannot be removed.
        """
        choice = find_replaced(base.loaded, self.handle.branch, self.commit, self.handle.uri)
        return ChangedFiles(self.added, choice, variant=choice)(base)


def find_replaced(
    loaded: LoadedMetadata, branch: str, commit: CommitId, uri: str
) -> _FilesAddedBy | None:
    """Return the choice of files to remove; None if a rollback has already removed them.

    Raise ``InvalidRequestError`` if rows of the earlier commit are now in other files, or if some
    of them were deleted.
    """
    assert commit.replaces is not None
    metadata = loaded.metadata
    reference = metadata.references.get(branch)
    history = [*metadata.ancestry(None if reference is None else reference.snapshot_id)]
    earlier = earlier_of_user(history, commit, _ADDS_ROWS)
    if earlier is None:
        has_expired = bool(history) and history[-1].parent_id is not None
        if has_expired and metadata.snapshot(commit.replaces) is None:
            raise _refused(commit, uri, "this snapshot, or a later one, has expired")
        return None
    choice = _FilesAddedBy(earlier.snapshot_id)
    _require_whole(loaded, history[0], earlier, choice, commit, uri)
    return choice


def files_added_by(loaded: LoadedMetadata, head: Snapshot, snapshot_id: int) -> frozenset[str]:
    """Return the URIs of the live data files that a snapshot added and that ``head`` still has."""
    data = read_manifest_list(loaded.places, head)
    data = data.filter(pc.equal(data["content"], DATA))
    own = _chosen(loaded, data, _FilesAddedBy(snapshot_id))
    return frozenset(path for some in own for path in some["file_path"].to_pylist())


def _require_whole(
    loaded: LoadedMetadata,
    head: Snapshot,
    earlier: Snapshot,
    choice: _FilesAddedBy,
    commit: CommitId,
    uri: str,
) -> None:
    """Raise ``InvalidRequestError`` if a file of the earlier commit was rewritten, or if some of
    its rows were deleted.
    """
    manifests = read_manifest_list(loaded.places, head)
    is_data = pc.equal(manifests["content"], DATA)
    own = _chosen(loaded, manifests.filter(is_data), choice)
    count = earlier.summary.get("added-data-files", "0")
    if sum(map(len, own)) != int(count):
        raise _refused(commit, uri, "a later commit has rewritten or removed its files")
    deletes = _live(loaded, manifests.filter(pc.invert(is_data)))
    for spec_id, entries in deletes:
        spec = loaded.metadata.spec_of(spec_id)
        newer = entries.filter(
            pc.greater_equal(entries["sequence_number"], earlier.sequence_number)
        )
        if _may_apply(newer, spec, own):
            raise _refused(commit, uri, "rows of its files were deleted or updated")


def _chosen(loaded: LoadedMetadata, manifests: pa.Table, choice: _FilesAddedBy) -> list[pa.Table]:
    metadata = loaded.metadata
    return [
        entries.filter(choice.mask(metadata, metadata.spec_of(spec_id), entries))
        for spec_id, entries in _live(loaded, manifests)
    ]


def _live(loaded: LoadedMetadata, manifests: pa.Table) -> list[tuple[int, pa.Table]]:
    found = read_entries(loaded.places, loaded.metadata, manifests, ())
    return [(spec_id, live_entries(entries)) for spec_id, entries in found.items()]


def _may_apply(deletes: pa.Table, spec: PartitionSpec, own: Sequence[pa.Table]) -> bool:
    """Return True if one of the deletes may apply to one of the files."""
    paths = {path for some in own for path in some["file_path"].to_pylist()}
    places = {scope for some in own for scope in scopes(some.combine_chunks())}
    is_everywhere = is_unpartitioned(spec)
    rows = zip(
        deletes["content"].to_pylist(),
        deletes["referenced_data_file"].to_pylist(),
        scopes(deletes.combine_chunks()),
        strict=True,
    )
    for content, target, scope in rows:
        if target is not None:
            applies = target in paths
        else:
            applies = scope in places or (is_everywhere and content == EQUALITY_DELETES)
        if applies and paths:
            return True
    return False


def _refused(commit: CommitId, uri: str, why: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"{commit} cannot take the place of snapshot {commit.replaces} of {uri}: {why}. Nothing "
        f"was published. {DELETE_FIRST}"
    )
