"""Who commits, and which of its commits this is: the same identity twice publishes once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lakeformat.commit.checks import is_whole_number
from lakeformat.errors import InvalidRequestError
from lakeformat.handle import TableHandle
from lakeformat.metadata.snapshot import CommitKind, Snapshot
from lakeformat.metadata.snapshot_directory import read_snapshot_if_present
from lakeformat.type_rules import is_text

__all__ = ["BATCH_IDENTIFIER", "CommitId", "EarlierCommits"]

BATCH_IDENTIFIER = 2**63 - 1
"""What a commit carries that nobody will ever repeat."""


@dataclass(frozen=True, slots=True)
class CommitId:
    """The identity of one commit.

    ``user`` names one run of one job; ``identifier`` counts the commits inside it and only
    ever grows. Retry with the same pair: if the first try did publish, nothing happens twice.
    """

    user: str
    identifier: int

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


class EarlierCommits:
    """Looks for one commit among the snapshots of a table, reading each of them once."""

    def __init__(self, handle: TableHandle, commit: CommitId, kind: CommitKind) -> None:
        self._handle = handle
        self._commit = commit
        self._kind = kind
        self._checked = 0

    def skip(self, head: Snapshot | None) -> None:
        """Take it as known that the commit is not in ``head`` or before it."""
        self._checked = head.id if head else 0

    def find(self, head: Snapshot | None) -> Snapshot | None:
        """The snapshot in which the commit was published, up to ``head`` and not seen before.

        Whoever builds on ``head`` calls this with the same ``head``: then no twin with the same
        identity can have published in between.
        """
        newer: Snapshot | None = None
        for snapshot in self._from(head):
            if snapshot.commit_user != self._commit.user or snapshot.commit_kind is not self._kind:
                continue
            if snapshot.commit_identifier == self._commit.identifier:
                return snapshot
            if snapshot.commit_identifier < self._commit.identifier:
                break
            newer = snapshot
        if newer is not None:
            raise self._out_of_order(newer)
        self.skip(head)
        return None

    def _from(self, head: Snapshot | None) -> Iterator[Snapshot]:
        """Snapshots not seen yet, newest first, until one has expired."""
        snapshot, number = head, head.id if head else 0
        while snapshot is not None and number > self._checked:
            yield snapshot
            number -= 1
            if number <= self._checked:
                return
            snapshot = read_snapshot_if_present(self._handle.storage, self._handle.layout, number)

    def _out_of_order(self, newer: Snapshot) -> InvalidRequestError:
        return InvalidRequestError(
            f"{self._commit} comes after commit {newer.commit_identifier} of the same user "
            f"(snapshot {newer.id} of {self._handle.uri}), and snapshots do not show whether it "
            "was published: identifiers of one user only ever grow. Give each run a user of its own"
        )
