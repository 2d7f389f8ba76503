# SPDX-License-Identifier: Apache-2.0
"""Recognises a repeated rollback: rollbacks with the same commit identity are done only once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lakeformat.errors import CommitUndecidableError, CorruptTableError, InvalidRequestError
from lakeformat.paimon.commit.deltas import delta_of
from lakeformat.paimon.commit.identity import EarlierCommits
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.fence import KEPT_MILLIS, create_fence, read_fence, write_fence
from lakeformat.paimon.metadata.record_file import fault_of
from lakeformat.paimon.metadata.snapshot import CommitKind, Snapshot
from lakeformat.tables.commit_id import CommitId
from lakeformat.tables.reference_reports import RollbackReport

__all__ = ["EarlierReturns", "StartedCut", "find_cut", "properties_of"]

_TARGET = "lake.rollback.target"
_PROTECTION = "lake.rollback.protection-tag"
_DONE = "-done"


@dataclass(frozen=True, slots=True)
class EarlierReturns:
    """Finds the snapshot that an earlier attempt of a rollback has published.

    Each snapshot is read only once.
    """

    handle: TableHandle
    commits: EarlierCommits
    snapshot: int | None
    """The number of the target snapshot, if the caller gave a number."""

    @classmethod
    def of(cls, handle: TableHandle, commit: CommitId, snapshot: int | None) -> EarlierReturns:
        """Return a search for ``commit`` among commits of every kind."""
        return cls(handle, EarlierCommits(handle, commit, tuple(CommitKind)), snapshot)

    def find(self, head: Snapshot | None) -> RollbackReport | None:
        """Search the snapshots up to ``head`` for an earlier attempt of the rollback.

        Return the report of the attempt; None if there is none. Raise InvalidRequestError if a
        commit with this identity is not a rollback, or is a rollback to another snapshot.
        """
        found = self.commits.find(head)
        if found is None:
            return None
        said = found.properties or {}
        if found.commit_kind is not CommitKind.OVERWRITE or _TARGET not in said:
            raise _other(
                self.handle, self.commits.commit, f"snapshot {found.id}, which is not a rollback"
            )
        target = int(said[_TARGET])
        _require_same_target(self.handle, self.commits.commit, target, self.snapshot)
        delta = delta_of(self.handle, found)
        added = len(delta.filter(~delta.is_delete))
        return RollbackReport(
            table=self.handle.uri,
            target=target,
            snapshot_id=found.id,
            as_latest=True,
            added_files=added,
            deleted_files=len(delta) - added,
            protection_tag=said.get(_PROTECTION),
            dry_run=False,
            replayed=True,
            reason=f"this rollback to snapshot {target} was published before, as snapshot "
            f"{found.id}; nothing was done",
        )


def properties_of(
    target: Snapshot, commit: CommitId | None, protection: str | None
) -> Mapping[str, str] | None:
    """Return the properties of the new snapshot, which are those of the target.

    The properties that identify an earlier rollback are left out. With ``commit``, the properties
    that identify this rollback are added. ``protection`` is the tag that keeps the restored files.
    Return None if the target has no properties and none are added.
    """
    kept = {
        key: value
        for key, value in (target.properties or {}).items()
        if key not in (_TARGET, _PROTECTION)
    }
    if commit is not None:
        kept[_TARGET] = str(target.id)
        kept |= {} if protection is None else {_PROTECTION: protection}
    return kept or (None if target.properties is None else {})


@dataclass(frozen=True, slots=True)
class StartedCut:
    """The progress of earlier attempts of a rollback that deletes newer snapshots.

    It is stored in fences: files that name the snapshots to be deleted.
    """

    handle: TableHandle
    commit: CommitId
    target: int | None = None
    """The id of the target snapshot of the first attempt; None if there was no attempt."""
    removed: frozenset[str] = frozenset()
    """``Snapshot.identity`` of each snapshot that the first attempt has deleted, or was about to
    delete.
    """
    done: RollbackReport | None = None
    """The report of an attempt that has finished; None if none has."""

    @property
    def fence(self) -> str:
        """The name of the fence of the first attempt, derived from the commit identity."""
        said = json.dumps([self.commit.user, self.commit.identifier])
        return f"rollback-{hashlib.blake2b(said.encode(), digest_size=16).hexdigest()}"

    @property
    def is_begun(self) -> bool:
        """True if an earlier attempt may have deleted a snapshot."""
        return self.target is not None

    def is_cut(self, first_after: Snapshot | None) -> bool:
        """Return True if an earlier attempt has deleted every snapshot that it planned to delete.

        ``first_after`` is the snapshot with the next number after the target; None if no snapshot
        has this number. A rollback deletes this snapshot last. So if it does not exist, or if a
        later commit has taken its number, every planned snapshot is deleted.
        """
        if not self.is_begun:
            return False
        return first_after is None or first_after.identity not in self.removed

    def fence_off(self, target: int, removed: Sequence[Snapshot]) -> str:
        """Write a fence with the snapshots ``removed``, before they are deleted; return its name.

        If an earlier attempt has written a fence, it is not changed, and the new fence gets another
        name.
        """
        storage, layout = self.handle.storage, self.handle.layout
        if create_fence(storage, layout, self.fence, removed, self._note(target)):
            return self.fence
        unique = self.handle.environment.new_id()
        write_fence(storage, layout, unique, removed)
        return unique

    def finish(self, report: RollbackReport) -> None:
        """Store the report of the finished rollback, which a repetition then returns."""
        note = {**self._note(report.target), "report": report.to_dict()}
        name = f"{self.fence}{_DONE}"
        create_fence(self.handle.storage, self.handle.layout, name, (), note)

    def _note(self, target: int) -> dict[str, Any]:
        return {
            "user": self.commit.user,
            "identifier": self.commit.identifier,
            "target": target,
        }


def find_cut(handle: TableHandle, commit: CommitId, snapshot: int | None) -> StartedCut:
    """Return the progress of earlier attempts, from the fences that the attempts wrote.

    Raise InvalidRequestError if the earlier attempts had another target than ``snapshot``. Raise
    CommitUndecidableError if there is no fence, but ``commit`` is so old that its fences may have
    been deleted. Raise CorruptTableError if a fence is damaged.
    """
    first = StartedCut(handle, commit)
    begun, done = (
        read_fence(handle.storage, handle.layout, name)
        for name in (first.fence, f"{first.fence}{_DONE}")
    )
    found = done or begun
    if found is None or found.note is None:
        _require_young(handle, commit)
        return first
    target = found.note["target"]
    _require_same_target(handle, commit, target, snapshot)
    removed = frozenset() if begun is None else begun.removed
    try:
        report = None if done is None or done.note is None else _repeated(done.note["report"])
    except (AttributeError, KeyError, TypeError) as reason:
        path = handle.layout.fence(f"{first.fence}{_DONE}")
        raise CorruptTableError(
            f"{handle.storage.uri(path)} does not hold the report of a rollback: "
            f"{fault_of(reason)}; restore the file from a backup"
        ) from None
    return StartedCut(handle, commit, target, removed, report)


def _require_young(handle: TableHandle, commit: CommitId) -> None:
    """Raise CommitUndecidableError if the fence of the first attempt may have expired."""
    first, now = commit.first_try_millis, handle.environment.now_millis()
    if first is not None and first < now - KEPT_MILLIS:
        raise CommitUndecidableError(
            f"the first attempt of {commit}, a rollback of {handle.uri}, began more than "
            f"{KEPT_MILLIS // 86_400_000} days ago. Its record may have been deleted, so "
            "it is unknown if the rollback was done. This call changed nothing. Check the newest "
            "snapshot; if a rollback is still needed, pass another CommitId"
        )


def _repeated(said: Mapping[str, Any]) -> RollbackReport:
    members: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in said.items()
    }
    reason = f"this rollback was done before ({said['reason']}); nothing was done now"
    return replace(RollbackReport(**members), replayed=True, reason=reason)


def _require_same_target(
    handle: TableHandle, commit: CommitId, before: int, now: int | None
) -> None:
    if now not in (None, before):
        raise _other(handle, commit, f"a rollback to snapshot {before}, not to {now}")


def _other(handle: TableHandle, commit: CommitId, what: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"{commit} of {handle.uri} is {what}. Nothing was changed: pass another CommitId for this "
        "rollback, because a CommitId names only one commit"
    )
