# SPDX-License-Identifier: Apache-2.0
"""Stores the identity of a commit in the summary of its snapshot, so that the commit is published
once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from lakeformat.environment import Environment
from lakeformat.errors import CommitUndecidableError, InvalidRequestError
from lakeformat.iceberg.metadata.snapshot import Snapshot
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.tables.commit_id import (
    CLOCK_SKEW_MILLIS,
    CommitId,
    require_commit_id,
    require_past_first_try,
)

__all__ = ["COMMIT_USER", "earlier_of_user", "find_commit", "identities", "identity_summary"]

COMMIT_USER = "lake.commit-user"
_IDENTIFIER = "lake.commit-identifier"


def identity_summary(commit: CommitId) -> dict[str, str]:
    """Return the entries of the summary that store the identity of a commit."""
    return {COMMIT_USER: commit.user, _IDENTIFIER: str(commit.identifier)}


def identities(snapshots: Iterable[Snapshot]) -> Iterator[tuple[str, int]]:
    """Yield the commit user and the commit identifier of each snapshot that has them."""
    for snapshot in snapshots:
        user, text = snapshot.summary.get(COMMIT_USER), snapshot.summary.get(_IDENTIFIER, "")
        if user is not None and _is_number(text):
            yield user, int(text)


def find_commit(
    metadata: TableMetadata, branch: str, commit: CommitId, environment: Environment
) -> Snapshot | None:
    """Return the snapshot of a commit in the history of a branch; None if it is not published.

    ``metadata`` must be the version on which the new commit builds. Then no other attempt with this
    identity can publish between this search and the commit. ``CommitUndecidableError`` means that
    snapshots since the first attempt have expired, and one of them may have been this commit.
    ``InvalidRequestError`` means that the user of ``commit`` already published a higher identifier.
    """
    require_commit_id(commit)
    require_past_first_try(commit, environment.now_millis())
    newer: Snapshot | None = None
    for snapshot in _since_first_try(metadata, branch, commit):
        if snapshot.summary.get(COMMIT_USER) != commit.user:
            continue
        identifier = _identifier(snapshot)
        if identifier == commit.identifier:
            return snapshot
        if identifier < commit.identifier:
            break
        newer = snapshot
    if newer is not None:
        raise InvalidRequestError(
            f"{commit} arrived after commit {newer.summary[_IDENTIFIER]} of the same user "
            f"(snapshot {newer.snapshot_id} of {metadata.location}), but the identifiers of a user "
            "must ascend. Nothing was published now. If the table does not have these rows from an "
            "earlier attempt, commit them with another user in the CommitId. Use a separate user "
            "for each run"
        )
    return None


def earlier_of_user(
    history: Iterable[Snapshot], commit: CommitId, operations: Collection[str]
) -> Snapshot | None:
    """Return the newest snapshot that the user of ``commit`` published with a lower identifier.

    Return None if there is none. ``history`` must be newest first. Only snapshots with one of the
    ``operations`` are considered.
    """
    for snapshot in history:
        is_of_user = snapshot.summary.get(COMMIT_USER) == commit.user
        is_wanted = is_of_user and snapshot.operation in operations
        if is_wanted and _identifier(snapshot) < commit.identifier:
            return snapshot
    return None


def _since_first_try(metadata: TableMetadata, branch: str, commit: CommitId) -> Iterator[Snapshot]:
    """Yield the snapshots of a branch that may be the snapshot of ``commit``, newest first.

    After the last one, raise ``CommitUndecidableError`` if more such snapshots may have expired.
    """
    head, heads = metadata.references.get(branch), _heads_of(commit)
    since, parent_id, is_before = commit.first_try_millis, None, False
    for snapshot in metadata.ancestry(None if head is None else head.snapshot_id):
        if since is not None and snapshot.timestamp_ms < since - CLOCK_SKEW_MILLIS:
            return
        yield snapshot
        parent_id = snapshot.parent_id
        # If only the head itself has expired, all snapshots since are there.
        is_before = is_before or not heads.isdisjoint({str(snapshot.snapshot_id), str(parent_id)})
    if parent_id is not None and since is not None and not is_before:
        raise CommitUndecidableError(
            f"{commit} is not in the snapshots of {metadata.location}, but snapshot {parent_id} "
            "and older ones have expired since its first attempt: its snapshot may be one of them. "
            "Nothing was published now. Check if its rows are in the table; if they are missing, "
            "commit them with another user in the CommitId. Keep snapshots longer than retries "
            "take ('history.expire.max-snapshot-age-ms'; in a Mixed table "
            "'change.data.ttl.minutes' and 'snapshot.keep.duration')"
        )


def _heads_of(commit: CommitId) -> set[str]:
    """Return the snapshot ids in ``first_try_head``; empty if the head is unknown.

    The head of a Mixed table names the snapshots of both stores, such as ``3-7``.
    """
    found = commit.first_try_head
    return set() if found is None else {found, *found.split("-")} - {""}


def _identifier(snapshot: Snapshot) -> int:
    text = snapshot.summary.get(_IDENTIFIER, "")
    if not _is_number(text):
        raise InvalidRequestError(
            f"the summary of snapshot {snapshot.snapshot_id} has {_IDENTIFIER!r} = {text!r}, which "
            "is not a number: another program wrote the snapshot. Use another user for the commit"
        )
    return int(text)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal()
