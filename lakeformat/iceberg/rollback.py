# SPDX-License-Identifier: Apache-2.0
"""Moves a branch back to an earlier snapshot of its history, for ``table.rollback``.

Nothing is deleted: the newer snapshots are kept until they expire. A branch or tag at a newer
snapshot keeps it for longer.
"""

from __future__ import annotations

from dataclasses import replace

from lakeformat.errors import (
    InvalidRequestError,
    LakeError,
    NotFoundError,
    UnsupportedError,
)
from lakeformat.iceberg.branch_history import BranchHistory, history_of, no_snapshot
from lakeformat.iceberg.choice import newest_at, snapshot_id_of, snapshot_text
from lakeformat.iceberg.commit.commit import commit_metadata
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.snapshot import TAG, Snapshot
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.metadata.updates import set_reference
from lakeformat.iceberg.references.origin import find_reference
from lakeformat.tables.commit_id import CommitId, require_commit_id, require_past_first_try
from lakeformat.tables.moment import Moment, moment_text, to_millis
from lakeformat.tables.position import MAIN_BRANCH
from lakeformat.tables.reference_reports import RollbackReport
from lakeformat.tables.rollback_request import RollbackRequest
from lakeformat.types.count_text import counted

__all__ = ["rollback"]


def rollback(handle: TableHandle, request: RollbackRequest) -> RollbackReport:
    """Move the branch back to an earlier snapshot of its history; a dry run only reports it.

    A retry with the same commit identity changes nothing if an earlier attempt moved the branch.
    Give exactly one of snapshot, tag and time. Otherwise, and if the snapshot is not in the history
    of the branch, raise ``InvalidRequestError``. Raise ``NotFoundError`` if the snapshot or tag
    does not exist, and ``UnsupportedError`` for an argument that only Paimon tables accept.
    """
    _refuse_foreign_arguments(request)
    asked = {"snapshot": request.snapshot, "tag": request.tag, "as_of": request.as_of}
    given = [f"{name}=" for name, value in asked.items() if value is not None]
    if len(given) != 1:
        raise InvalidRequestError(
            "a rollback needs exactly one of snapshot=, tag= and as_of=; got "
            f"{' and '.join(given) or 'nothing'}"
        )
    commit = request.commit
    if commit is not None:
        require_commit_id(commit)
        require_past_first_try(commit, handle.environment.now_millis())
    seen: list[tuple[Snapshot, list[Snapshot], bool]] = []

    def change(loaded: LoadedMetadata) -> TableMetadata | None:
        target, newer = _target(handle, loaded, request)
        is_repeated = commit is not None and _has_returned(
            loaded.metadata, handle.branch, target, newer, commit
        )
        seen.append((target, newer, is_repeated))
        if is_repeated or not newer:
            return None
        head = loaded.metadata.references.get(handle.branch)
        assert head is not None
        moved = replace(head, snapshot_id=target.snapshot_id)
        return set_reference(loaded.metadata, moved, handle.environment.now_millis())

    if request.dry_run:
        change(handle.load())
    else:
        commit_metadata(handle, change)
    return _report(handle, *seen[-1], dry_run=request.dry_run)


def _refuse_foreign_arguments(request: RollbackRequest) -> None:
    if request.watermark is not None:
        raise UnsupportedError("Iceberg tables have no watermarks: pass as_of or snapshot instead")
    if not request.as_latest or request.force:
        raise UnsupportedError(
            "a rollback of an Iceberg table moves the branch and deletes nothing: leave out "
            "as_latest=False (--cut-history) and force=True. To delete snapshots that no branch or "
            "tag needs, use expire_snapshots"
        )


def _target(
    handle: TableHandle, loaded: LoadedMetadata, request: RollbackRequest
) -> tuple[Snapshot, list[Snapshot]]:
    """Return the snapshot to which the branch moves back, and the newer snapshots of the branch.

    Raise ``NotFoundError`` if there is no such snapshot, and ``InvalidRequestError`` if it is not
    in the history of the branch.
    """
    metadata, table = loaded.metadata, handle.uri
    history = history_of(metadata, handle.branch, table)
    kept = [each.snapshot for each in history.snapshots]
    if request.as_of is not None:
        found = _existing_at(metadata, history, request.as_of)
    elif request.tag is not None:
        found = find_reference(metadata, request.tag, TAG, table).snapshot_id
    else:
        assert request.snapshot is not None
        found = snapshot_id_of(loaded, history, request.snapshot)
    places = [place for place, each in enumerate(kept) if each.snapshot_id == found]
    if not places:
        raise _outside(loaded, history, found)
    return kept[places[0]], kept[places[0] + 1 :]


def _existing_at(metadata: TableMetadata, history: BranchHistory, as_of: Moment) -> int:
    millis = to_millis(as_of)
    found = newest_at(metadata, history, millis)
    if found is not None:
        return found
    raise NotFoundError(
        f"{history.beginning.table} has no snapshot of {moment_text(millis)} or before: the table "
        "was empty then, or those snapshots have expired. Choose a later time"
    )


def _outside(loaded: LoadedMetadata, history: BranchHistory, found: int) -> LakeError:
    table, branch = loaded.places.uri, history.branch
    if loaded.metadata.snapshot(found) is None:
        return no_snapshot(table, found)
    return InvalidRequestError(
        f"snapshot {found} of {table} is not in the history of branch {branch!r}: it belongs to "
        "another branch, was rolled back, or a snapshot between it and the head has expired. So a "
        "rollback to it could add rows that the branch never had. To read that snapshot, scan the "
        f"table with snapshot={found}. To undo a rollback of main, create a branch from that "
        "snapshot, and pass the branch to branches.fast_forward (`lake branch fast-forward`)"
    )


def _has_returned(
    metadata: TableMetadata, branch: str, target: Snapshot, newer: list[Snapshot], commit: CommitId
) -> bool:
    """Return True if the branch was at the target after the first attempt of this rollback began.

    ``commit.first_try_head`` is the snapshot that was the newest when that attempt began.

    For main, return True if the snapshot log shows a move to the target after that attempt began.
    If the log has ``commit.first_try_head``, ignore the entries before it.

    Other branches have no log. For them, return True if ``newer`` is not empty, all its snapshots
    were committed after that attempt began, and ``commit.first_try_head`` is not among them.

    Return False if the time of the first attempt is unknown.
    """
    since = commit.first_try_millis
    if since is None:
        return False
    if branch != MAIN_BRANCH:
        is_left = all(str(each.snapshot_id) != commit.first_try_head for each in newer)
        return bool(newer) and is_left and newer[0].timestamp_ms > since
    log = metadata.snapshot_log
    heads = (n for n, each in enumerate(log) if str(each.snapshot_id) == commit.first_try_head)
    return any(
        entry.snapshot_id == target.snapshot_id
        and entry.timestamp_ms >= since
        # Not the entry that the commit of the target made.
        and entry.timestamp_ms != target.timestamp_ms
        for entry in log[next(heads, 0) :]
    )


def _report(
    handle: TableHandle,
    target: Snapshot,
    newer: list[Snapshot],
    is_repeated: bool,
    *,
    dry_run: bool,
) -> RollbackReport:
    number, branch, shown = target.snapshot_id, handle.branch, snapshot_text(target)
    left = counted(len(newer), "newer snapshot is", "newer snapshots are")
    if is_repeated and branch != MAIN_BRANCH:
        them = "it" if len(newer) == 1 else "them"
        reason = (
            f"branch {branch!r} was at {shown} after the first attempt of this rollback began, so "
            f"this attempt changes nothing; {left} kept, because later commits made {them}. To "
            "roll back again, use a new CommitId"
        )
    elif is_repeated:
        reason = (
            f"an earlier attempt of this rollback moved branch {branch!r} to {shown}; "
            "no action needed"
        )
    elif not newer:
        reason = f"branch {branch!r} is at {shown} already; no action needed"
    else:
        verb = "would return" if dry_run else "returned"
        expires = "it expires" if len(newer) == 1 else "they expire"
        reason = f"branch {branch!r} {verb} to {shown}; {left} kept until {expires}"
    return RollbackReport(
        table=handle.uri,
        target=number,
        snapshot_id=number,
        as_latest=True,
        replayed=is_repeated,
        dry_run=dry_run,
        reason=reason,
    )
