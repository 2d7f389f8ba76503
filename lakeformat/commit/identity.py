"""Who commits, and which of its commits this is: the same identity twice publishes once."""

from __future__ import annotations

from dataclasses import dataclass

from lakeformat.errors import InvalidRequestError
from lakeformat.handle import TableHandle
from lakeformat.metadata.snapshot import CommitKind, Snapshot
from lakeformat.metadata.snapshot_directory import FIRST_SNAPSHOT_ID, read_snapshot_if_present

__all__ = ["CommitId", "find_commit"]

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
        if not self.user:
            raise InvalidRequestError("a CommitId needs a user: the name of the run that commits")
        if not 0 <= self.identifier <= BATCH_IDENTIFIER:
            raise InvalidRequestError(
                f"a CommitId's identifier is from 0 to {BATCH_IDENTIFIER}, got {self.identifier}"
            )


def find_commit(
    handle: TableHandle, commit: CommitId, kind: CommitKind, *, newest: int, oldest: int
) -> Snapshot | None:
    """The snapshot an identity has published already, looked for from ``newest`` backwards."""
    for snapshot_id in range(newest, max(oldest, FIRST_SNAPSHOT_ID) - 1, -1):
        snapshot = read_snapshot_if_present(handle.storage, handle.layout, snapshot_id)
        if snapshot is None:  # expired, and so is everything before it
            return None
        if snapshot.commit_user == commit.user and snapshot.commit_kind is kind:
            if snapshot.commit_identifier == commit.identifier:
                return snapshot
            if snapshot.commit_identifier < commit.identifier:
                return None
    return None
