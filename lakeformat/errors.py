# SPDX-License-Identifier: Apache-2.0
"""The errors of the library, split by what the caller does next.

    LakeError
    ├── InvalidRequestError        the call is wrong: fix it and call again
    │   └── UnsupportedError       the call is right, but this version does not do it
    ├── NotFoundError              the named table, snapshot, branch or other object does not exist
    │   └── SnapshotExpiredError   what was being read has expired: begin again on a newer snapshot
    ├── AlreadyExistsError         the name is taken
    ├── CommitConflictError        another writer was first: plan again and retry
    │   ├── BucketsChangedError    keys may have other buckets by now: write the rows again
    │   └── TableReplacedError     an Iceberg or Mixed table was created again: open the new one
    ├── CommitOutcomeUnknownError  the answer was lost: look for the commit, then retry
    ├── CommitUndecidableError     a retry cannot prove the outcome: look for the change
    ├── UnavailableError           the storage did not answer: retry later
    │   ├── AccessDeniedError      this user lacks a permission: grant it, then retry
    │   └── LockUnavailableError   the lock is not held: nothing was published, retry later
    └── CorruptTableError          the table is damaged: stop and repair

A message names what failed, with names and values, why it failed, and what to do next.
"""

from __future__ import annotations

from typing import Any, Protocol

__all__ = [
    "AccessDeniedError",
    "AlreadyExistsError",
    "BucketsChangedError",
    "CommitConflictError",
    "CommitOutcomeUnknownError",
    "CommitUndecidableError",
    "CorruptTableError",
    "InvalidRequestError",
    "LakeError",
    "LockUnavailableError",
    "NotFoundError",
    "Reported",
    "SnapshotExpiredError",
    "TableReplacedError",
    "UnavailableError",
    "UnsupportedError",
]


class Reported(Protocol):
    """The report of an operation on one table."""

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values, ready for JSON."""
        ...


class LakeError(Exception):
    """The base of the errors of this library."""

    report: Reported | None = None
    """The report of the part of the work that succeeded, such as some buckets of a compaction. None
    if the operation reports nothing.
    """


class InvalidRequestError(LakeError):
    """The request is wrong: change the call."""


class UnsupportedError(InvalidRequestError):
    """The request is valid, but this version of the library does not support it."""

    why: str | None = None
    """The reason alone, for a message about several unsupported operations on one table.

    None if the error has only the whole message.
    """
    advice: str | None = None
    """The next step alone, for a message about several unsupported operations on one table.

    None if the error has only the whole message.
    """
    lacks: str | None = None
    """The reason without the table's location, set only if the table's format lacks the operation.

    A run over many tables then skips the table.
    """


class NotFoundError(LakeError):
    """An object named by the caller, such as a table, a snapshot, a branch or a file, does not
    exist.
    """


class SnapshotExpiredError(NotFoundError):
    """The snapshot expired while it was read: begin again on a newer snapshot."""


class AlreadyExistsError(LakeError):
    """The name is already taken."""


class CommitConflictError(LakeError):
    """Another writer committed first, or changed files that this commit needs: plan again and
    retry.
    """

    is_final: bool = False
    """True if a new plan on the newest snapshot cannot succeed: compute the change again."""
    attempts: int = 1
    """The number of attempts to publish the change, including the one that found the conflict."""


class BucketsChangedError(CommitConflictError):
    """Another writer may have moved keys to other buckets: write the rows again."""


class TableReplacedError(CommitConflictError):
    """An Iceberg or Mixed table was dropped and created again: to change the new table, open it and
    repeat the change. For a Paimon table ``NotFoundError`` is raised.
    """

    is_final = True


class CommitOutcomeUnknownError(LakeError):
    """The snapshot may or may not be published: look for the commit before you retry."""


class CommitUndecidableError(LakeError):
    """A retry cannot prove if the first attempt committed: look for the change in the table."""


class UnavailableError(LakeError):
    """The storage or the catalog did not answer, or refused the request.

    This error does not mean that the table is damaged.
    """

    nothing_was_written: bool = False
    """True if a failed write certainly created no file; False if the file may exist."""


class AccessDeniedError(UnavailableError):
    """The storage or the catalog refuses this user: grant the permission, then retry."""


class LockUnavailableError(UnavailableError):
    """The lock of the table could not be taken or was lost: nothing was published."""

    nothing_was_written = True


class CorruptTableError(LakeError):
    """A file of the table is missing, truncated or not in its format."""
