"""Every error of the library, split by what the caller does next.

    LakeError
    ├── InvalidRequestError        the call is wrong: fix it and call again
    │   └── UnsupportedError       the call is right, but this version does not do it
    ├── NotFoundError              the named database, table, snapshot or file does not exist
    │   └── SnapshotExpiredError   what was being read has expired: begin again on a newer snapshot
    ├── AlreadyExistsError         the name is taken
    ├── CommitConflictError        another writer was first: plan again and retry
    │   └── BucketsChangedError    keys may have other buckets by now: write the rows again
    ├── CommitOutcomeUnknownError  the answer was lost: look for the commit, then retry
    ├── CommitUndecidableError     snapshots that would tell have expired: look for the rows
    ├── UnavailableError           the storage did not answer: retry later
    │   └── LockUnavailableError   the lock was not to be had: nothing was written, retry later
    └── CorruptTableError          the table is damaged: stop and repair

A message says what was attempted, on what, what was found and what to try.
"""

from __future__ import annotations

from typing import Any, Protocol

__all__ = [
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
    "UnavailableError",
    "UnsupportedError",
]


class Reported(Protocol):
    """What an operation says of one table."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        ...


class LakeError(Exception):
    """Base of every error this library raises on purpose."""

    report: Reported | None = None
    """What was done all the same, where one of many things has failed; such as the report of a
    compaction, which goes on with the other buckets. None if it says nothing."""


class InvalidRequestError(LakeError):
    """The request cannot be right: change the call."""


class UnsupportedError(InvalidRequestError):
    """The request is legal, but this version of the library does not do it."""

    why: str | None = None
    """The reason alone, where it refuses several operations on a table."""
    advice: str | None = None
    """The part of such a message that says what to do."""


class NotFoundError(LakeError):
    """A database, table, snapshot or file named by the caller does not exist."""


class SnapshotExpiredError(NotFoundError):
    """What was being read has expired meanwhile: begin again on a newer snapshot."""


class AlreadyExistsError(LakeError):
    """The name is taken already."""


class CommitConflictError(LakeError):
    """Another writer won too often or changed the same files: plan again and retry."""


class BucketsChangedError(CommitConflictError):
    """Another writer may have given keys their buckets meanwhile: write the rows again."""


class CommitOutcomeUnknownError(LakeError):
    """Publication may or may not have happened: look for the commit before retrying."""


class CommitUndecidableError(LakeError):
    """Whether an earlier try was published cannot be told any more: look for its rows."""


class UnavailableError(LakeError):
    """The storage refused or did not answer: nothing is known to be wrong with the table."""

    nothing_was_written: bool = False
    """Whether that is certain of the file that was meant; otherwise it may be there by now."""


class LockUnavailableError(UnavailableError):
    """The lock of a table was not to be had, or not for long enough: nothing was written."""

    nothing_was_written = True


class CorruptTableError(LakeError):
    """A file of the table is missing, truncated or not what its format says."""
