# SPDX-License-Identifier: Apache-2.0
"""Commits the rows of a repeated run, and removes the rows that the run committed before.

Each attempt looks for the earlier commit again. So it notices what happened after the previous
attempt: a rollback of the earlier commit, or a late commit of the earlier run.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.errors import InvalidRequestError
from lakeformat.iceberg.choice import snapshot_text
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
from lakeformat.iceberg.partition_spec import PartitionSpec
from lakeformat.iceberg.read.entry_columns import is_unpartitioned, scopes
from lakeformat.iceberg.write.file_changes import ChangedFiles
from lakeformat.iceberg.write.file_choice import FilesNamed
from lakeformat.iceberg.write.followed_files import FollowedFiles, files_of
from lakeformat.iceberg.write.publish import Base, FileChange
from lakeformat.tables.commit_id import CommitId, delete_first

__all__ = [
    "Redo",
    "files_replaced",
    "find_earlier",
    "find_replaced",
    "has_newer_deletes",
    "refusal",
]

_CHANGES_ROWS = ("append", "overwrite", "delete")


@dataclass(frozen=True, slots=True)
class Redo:
    """Adds new files, and removes the files of the earlier commit."""

    handle: TableHandle
    commit: CommitId
    added: Sequence[pa.Table]

    def __call__(self, base: Base) -> FileChange | None:
        """Return the change for the newest snapshot; None if nothing changes.

        Raise ``InvalidRequestError`` if the earlier rows cannot be removed.
        """
        paths = find_replaced(base.loaded, self.handle.branch, self.commit, self.handle.uri)
        choice = None if paths is None else FilesNamed(pa.array(sorted(paths), pa.string()))
        return ChangedFiles(self.added, choice, variant=paths)(base)


def find_replaced(
    loaded: LoadedMetadata, branch: str, commit: CommitId, uri: str
) -> frozenset[str] | None:
    """Return the URIs of the files with the rows that ``commit`` replaces.

    Return None if a rollback has already removed these rows. Raise ``InvalidRequestError`` in the
    cases of ``find_earlier``, if rows of the earlier commit are now in files with other rows, or if
    some of these rows were deleted.
    """
    reference = loaded.metadata.references.get(branch)
    history = [*loaded.metadata.ancestry(None if reference is None else reference.snapshot_id)]
    earlier = find_earlier(loaded, history, commit, uri)
    if earlier is None:
        return None
    refused = partial(refusal, commit, uri, advice=delete_first(loaded.places.argument))
    followed = FollowedFiles(loaded, files_of(loaded, earlier))
    manifests = read_manifest_list(loaded.places, history[0])
    own = _live_files(loaded, manifests, followed.paths)
    if sum(map(len, own)) != len(followed.paths):
        if earlier not in history:
            raise refused(
                "files of the earlier commit were rewritten or removed by snapshots that have "
                "expired"
            )
        if mixing := followed.through(history[: history.index(earlier)]):
            raise refused(
                f"{snapshot_text(mixing)} has rewritten or removed files of the earlier commit"
            )
        own = _live_files(loaded, manifests, followed.paths)
    if has_newer_deletes(loaded, manifests, own):
        raise refused("rows of the earlier commit were deleted or updated")
    return followed.paths


def find_earlier(
    loaded: LoadedMetadata, history: Sequence[Snapshot], commit: CommitId, uri: str
) -> Snapshot | None:
    """Return the snapshot whose rows ``commit`` replaces; None if it was rolled back.

    It is the newest snapshot of the same user with a lower identifier than ``commit``; this may be
    a later snapshot than ``commit.replaces``. ``history`` has the snapshots of the branch, newest
    first. If ``history`` has no such snapshot, raise ``InvalidRequestError`` if the snapshot may
    have expired, or if ``commit.replaces`` is not an earlier commit of this user.
    """
    assert commit.replaces is not None
    earlier = earlier_of_user(history, commit, _CHANGES_ROWS)
    if earlier is not None:
        return earlier
    kept = loaded.metadata.snapshot(commit.replaces)
    is_of_user = kept is not None and earlier_of_user([kept], commit, _CHANGES_ROWS) is not None
    has_all = not history or history[-1].parent_id is None
    if kept in history or not (has_all or kept is None or is_of_user):
        earlier_one = f"by the user {commit.user!r} with an identifier below {commit.identifier}"
        why = f"that snapshot is not a commit of rows {earlier_one}"
        raise refusal(commit, uri, why, "Pass the user and the snapshot of the earlier run")
    if has_all:
        return None
    if kept is None:
        advice = delete_first(loaded.places.argument)
        raise refusal(commit, uri, "this snapshot, or a later one, has expired", advice)
    # A tag may keep the snapshot longer than the later ones that lead to it.
    return kept if _age(kept) < _age(history[-1]) else None


def files_replaced(loaded: LoadedMetadata, head: Snapshot, snapshot_id: int) -> frozenset[str]:
    """Return the URIs of the data files that a commit removes to replace ``snapshot_id``.

    The result is empty if this snapshot does not exist.
    """
    earlier = loaded.metadata.snapshot(snapshot_id)
    if earlier is None:
        return frozenset()
    history = [*loaded.metadata.ancestry(head.snapshot_id)]
    followed = FollowedFiles(loaded, files_of(loaded, earlier))
    if earlier in history:
        followed.through(history[: history.index(earlier)])
    return followed.paths


def has_newer_deletes(loaded: LoadedMetadata, manifests: pa.Table, own: Sequence[pa.Table]) -> bool:
    """Return True if a delete file in ``manifests`` may apply to one of the data files ``own``."""
    oldest = [pc.min(each["sequence_number"]).as_py() for each in own if len(each)]
    if not oldest:
        return False
    is_delete = pc.not_equal(manifests["content"], DATA)
    for spec_id, entries in _live(loaded, manifests.filter(is_delete)):
        newer = entries.filter(pc.greater_equal(entries["sequence_number"], min(oldest)))
        if _may_apply(newer, loaded.metadata.spec_of(spec_id), own):
            return True
    return False


def refusal(commit: CommitId, uri: str, why: str, advice: str) -> InvalidRequestError:
    """Return the error that the earlier rows cannot be replaced, with the reason and the advice."""
    return InvalidRequestError(
        f"{commit} cannot take the place of snapshot {commit.replaces} of {uri}: {why}. Nothing "
        f"was published. {advice}"
    )


def _age(snapshot: Snapshot) -> tuple[int, int]:
    """Return the sequence number and the time of a snapshot, which order a history.

    In version 1 all sequence numbers are 0, so only the times ascend.
    """
    return snapshot.sequence_number, snapshot.timestamp_ms


def _live_files(loaded: LoadedMetadata, manifests: pa.Table, paths: Set[str]) -> list[pa.Table]:
    data = manifests.filter(pc.equal(manifests["content"], DATA))
    known = pa.array(sorted(paths), pa.string())
    return [
        entries.filter(pc.is_in(entries["file_path"], known)) for _, entries in _live(loaded, data)
    ]


def _live(loaded: LoadedMetadata, manifests: pa.Table) -> list[tuple[int, pa.Table]]:
    found = read_entries(loaded.places, loaded.metadata, manifests, ())
    return [(spec_id, live_entries(entries)) for spec_id, entries in found.items()]


def _may_apply(deletes: pa.Table, spec: PartitionSpec, own: Sequence[pa.Table]) -> bool:
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
