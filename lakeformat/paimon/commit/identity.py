# SPDX-License-Identifier: Apache-2.0
"""The identity of a commit: the same identity publishes once, however often it is retried."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from lakeformat.errors import CommitUndecidableError, InvalidRequestError
from lakeformat.paimon.commit.publish import branch_changed, is_moved_branch
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.snapshot import CommitKind, Snapshot
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot_if_present
from lakeformat.tables.commit_id import (
    CLOCK_SKEW_MILLIS,
    CommitId,
    require_commit_id,
    require_past_first_try,
)

__all__ = ["EarlierCommits", "require_same", "takes_rows_out"]


class EarlierCommits:
    """Searches the snapshots of a table for one ``CommitId``."""

    def __init__(
        self,
        handle: TableHandle,
        commit: CommitId,
        kinds: Collection[CommitKind],
        *,
        is_new: bool = False,
    ) -> None:
        require_commit_id(commit)
        self._is_new = is_new
        """True if the identity was created for this call, so that no older snapshot can have
        it.
        """
        self._handle = handle
        self.commit = commit
        self._kinds = frozenset(kinds)
        self._checked = 0
        self._head: Snapshot | None = None
        require_past_first_try(commit, handle.environment.now_millis())

    def find(self, head: Snapshot | None) -> Snapshot | None:
        """Return the snapshot that the commit published earlier, or None.

        Search the snapshots up to ``head``. Snapshots that an earlier call has searched are
        searched again only after a rollback. Pass as ``head`` the snapshot on which the commit
        builds: if another attempt publishes after the search, it takes the next snapshot number,
        so that this commit cannot be published twice.

        Raise InvalidRequestError if the commit is not found, but the same user has published a
        greater identifier. Raise CommitUndecidableError if the identity has ``first_try_millis``,
        and a snapshot that may be the commit has expired. Raise CommitOutcomeUnknownError if the
        commit is found on a branch that is renamed or deleted meanwhile.
        """
        if self._is_new:
            self._is_new, self._checked = False, head.id if head else 0
        if head is not None and self._is_replaced(head):
            self._checked = 0
        newer: Snapshot | None = None
        for snapshot in self._from(head):
            if snapshot.commit_user != self.commit.user or snapshot.commit_kind not in self._kinds:
                continue
            if snapshot.commit_identifier == self.commit.identifier:
                if is_moved_branch(self._handle):  # the new name may lack this snapshot
                    raise branch_changed(self._handle, self.commit)
                return snapshot
            if snapshot.commit_identifier < self.commit.identifier:
                break
            newer = snapshot
        if newer is not None:
            raise self._out_of_order(newer)
        self._checked, self._head = head.id if head else 0, head
        return None

    def _is_replaced(self, head: Snapshot) -> bool:
        """Return True if ``head`` shows that a rollback replaced the newest snapshot of the last
        search.
        """
        if self._head is None or head.id > self._head.id:
            return False
        return head.identity != self._head.identity

    def _from(self, head: Snapshot | None) -> Iterator[Snapshot]:
        """Yield the snapshots that were not searched yet, newest first.

        Stop at a snapshot that is older than the first attempt, or at an expired one. Raise
        CommitUndecidableError instead if the identity has ``first_try_millis``, and the expired
        snapshot may be the commit.
        """
        snapshot, number = head, head.id if head else 0
        is_before = False
        while snapshot is not None and number > self._checked:
            if self._is_older(snapshot):
                return
            yield snapshot
            is_before = is_before or snapshot.identity == self.commit.first_try_head
            number -= 1
            if number <= self._checked:
                return
            snapshot = read_snapshot_if_present(self._handle.storage, self._handle.layout, number)
            if snapshot is None and self.commit.first_try_millis is not None and not is_before:
                raise self._undecidable(number)

    def _is_older(self, snapshot: Snapshot) -> bool:
        since = self.commit.first_try_millis
        return since is not None and snapshot.time_millis < since - CLOCK_SKEW_MILLIS

    def _undecidable(self, expired: int) -> CommitUndecidableError:
        return CommitUndecidableError(
            f"{self.commit} is not in the snapshots of {self._handle.uri}, but snapshot {expired} "
            "and older ones have expired since its first attempt: the snapshot of this commit may "
            "be one of them. Nothing was published now. Check if the rows of the commit are in the "
            "table; if they are missing, commit them with another user in the CommitId. Keep "
            "snapshots longer than retries take ('snapshot.time-retained')"
        )

    def _out_of_order(self, newer: Snapshot) -> InvalidRequestError:
        return InvalidRequestError(
            f"{self.commit} arrived after commit {newer.commit_identifier} of the same user "
            f"(snapshot {newer.id} of {self._handle.uri}), so it is unknown if it was published: "
            "the identifiers of a user must ascend. Use a separate user for each run"
        )


def require_same(
    handle: TableHandle, found: Snapshot, kind: CommitKind, operation: str | None
) -> None:
    """Raise InvalidRequestError if the earlier commit ``found`` has another kind or operation."""
    if (found.commit_kind, found.operation) != (kind, operation):
        before, now = _shown(found.commit_kind, found.operation), _shown(kind, operation)
        raise InvalidRequestError(
            f"CommitId({found.commit_user!r}, {found.commit_identifier}) was published before, in "
            f"snapshot {found.id} of {handle.uri}, as {before}; this commit is {now}. A CommitId "
            "identifies one commit. Nothing was published now: use another CommitId"
        )


def _shown(kind: CommitKind, operation: str | None) -> str:
    return f"{kind} ({operation})" if operation else str(kind)


def takes_rows_out(handle: TableHandle, commit: CommitId) -> bool:
    """Return True if the commit replaces an earlier commit whose files it must delete.

    Return False for a table with a primary key: there the new rows replace the old ones by key.
    """
    return commit.replaces is not None and not handle.schema.primary_keys
