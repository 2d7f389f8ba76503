"""Who commits, and which of its commits this is: the same identity twice publishes once."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from lakeformat.errors import CommitUndecidableError, InvalidRequestError
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.snapshot import CommitKind, Snapshot
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot_if_present
from lakeformat.types.type_rules import is_text, is_whole_number

__all__ = [
    "BATCH_IDENTIFIER",
    "CLOCK_SKEW_MILLIS",
    "CommitId",
    "EarlierCommits",
    "require_commit_id",
    "require_same",
]

BATCH_IDENTIFIER = 2**63 - 1
"""What a commit carries that nobody will ever repeat."""

_MILLIS = range(10**11, 10**14)
"""Moments from 1973 to 5138: what is outside counts seconds, microseconds or nanoseconds."""

CLOCK_SKEW_MILLIS = 10 * 60 * 1000
"""How far the clocks of two committers may be apart."""


@dataclass(frozen=True, slots=True)
class CommitId:
    """The identity of one commit.

    ``user`` names one run of one job; ``identifier`` counts the commits inside it and only
    ever grows. Retry with the same pair: if the first try did publish, nothing happens twice.

    ``first_try_millis`` says when the first try began. Snapshots from before then are not looked
    at; and if snapshots since then have expired, a commit that is not found among the others is
    refused with ``CommitUndecidableError``: it may have been published and expired with them.
    Without it the whole history is searched, and what has expired counts as never published.

    ``first_try_head`` is the ``identity`` of the snapshot that was the newest when the first try
    began. As long as that one is there, what has expired before it decides nothing.
    """

    user: str
    identifier: int
    first_try_millis: int | None = field(default=None, compare=False)
    first_try_head: str | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if not is_text(self.user) or not self.user:
            raise InvalidRequestError(
                f"a CommitId's user is the name of the run that commits, got {self.user!r}"
            )
        if not is_whole_number(self.identifier) or not 0 <= self.identifier <= BATCH_IDENTIFIER:
            raise InvalidRequestError(
                f"a CommitId's identifier is a whole number from 0 to {BATCH_IDENTIFIER}, "
                f"got {self.identifier!r}"
            )
        first = self.first_try_millis
        if first is not None and (not is_whole_number(first) or first not in _MILLIS):
            raise InvalidRequestError(
                "a CommitId's first_try_millis is when its first try began, in epoch milliseconds, "
                f"got {first!r}"
            )
        if self.first_try_head is not None and not is_text(self.first_try_head):
            raise InvalidRequestError(
                "a CommitId's first_try_head is the identity of a snapshot, "
                f"got {self.first_try_head!r}"
            )

    def __str__(self) -> str:
        return f"CommitId({self.user!r}, {self.identifier})"


def require_commit_id(commit: object) -> None:
    """Refuse an argument that is no CommitId, even where the caller annotates it as one."""
    if not isinstance(commit, CommitId):
        raise InvalidRequestError(
            f"commit is a CommitId, got {commit!r}: write CommitId('run-7', 0)"
        )


class EarlierCommits:
    """Looks for one commit among the snapshots of a table, reading each of them once."""

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
        """Whether nobody can have used the identity before."""
        self._handle = handle
        self.commit = commit
        self._kinds = frozenset(kinds)
        self._checked = 0
        self._head: Snapshot | None = None
        first = commit.first_try_millis
        if first is not None and first > handle.environment.now_millis() + CLOCK_SKEW_MILLIS:
            raise InvalidRequestError(
                f"{commit} says that its first try began at {first}, which is still to come: pass "
                "the moment at which the first try of this run began"
            )

    def find(self, head: Snapshot | None) -> Snapshot | None:
        """The snapshot in which the commit was published, up to ``head`` and not seen before.

        Whoever builds on ``head`` calls this with the same ``head``: then no twin with the same
        identity can have published in between.
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
                return snapshot
            if snapshot.commit_identifier < self.commit.identifier:
                break
            newer = snapshot
        if newer is not None:
            raise self._out_of_order(newer)
        self._checked, self._head = head.id if head else 0, head
        return None

    def _is_replaced(self, head: Snapshot) -> bool:
        """Return True if a rollback put another snapshot where the last head was, or below it."""
        if self._head is None or head.id > self._head.id:
            return False
        return head.identity != self._head.identity

    def _from(self, head: Snapshot | None) -> Iterator[Snapshot]:
        """Snapshots not seen yet, newest first, as far back as the commit can be."""
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
        """Whether a snapshot is from before the first try, whichever clock is wrong."""
        since = self.commit.first_try_millis
        return since is not None and snapshot.time_millis < since - CLOCK_SKEW_MILLIS

    def _undecidable(self, expired: int) -> CommitUndecidableError:
        return CommitUndecidableError(
            f"{self.commit} of {self._handle.uri} is not in its snapshots, but snapshot {expired} "
            "and older have expired since its first try, which may have been published among "
            "them. Nothing was published now; look for its rows, and if they are missing commit "
            "under another user. Keep snapshots ('snapshot.time-retained') for longer than retries "
            "take"
        )

    def _out_of_order(self, newer: Snapshot) -> InvalidRequestError:
        return InvalidRequestError(
            f"{self.commit} comes after commit {newer.commit_identifier} of the same user "
            f"(snapshot {newer.id} of {self._handle.uri}), and snapshots do not show whether it "
            "was published: identifiers of one user only ever grow. Give each run a user of its own"
        )


def require_same(
    handle: TableHandle, found: Snapshot, kind: CommitKind, operation: str | None
) -> None:
    """Refuse one identity for two different commits."""
    if (found.commit_kind, found.operation) != (kind, operation):
        before, now = _shown(found.commit_kind, found.operation), _shown(kind, operation)
        raise InvalidRequestError(
            f"CommitId({found.commit_user!r}, {found.commit_identifier}) was published before, as "
            f"snapshot {found.id} of {handle.uri}, and as {before}; now it comes as {now}. One "
            "identity names one commit: nothing was published now; give this one another"
        )


def _shown(kind: CommitKind, operation: str | None) -> str:
    return f"{kind} ({operation})" if operation else str(kind)
