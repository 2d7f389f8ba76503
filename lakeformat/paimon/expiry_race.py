# SPDX-License-Identifier: Apache-2.0
"""Detects snapshots that expired during a read: then a missing file is not reported as damage."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from lakeformat.errors import (
    BucketsChangedError,
    CorruptTableError,
    LakeError,
    NotFoundError,
    SnapshotExpiredError,
)
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.changelog_directory import changelog_ids
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import (
    latest_snapshot_id,
    read_snapshot_if_present,
)
from lakeformat.paimon.metadata.tag import read_tags

__all__ = [
    "again_if_overtaken",
    "explaining_expiry",
    "head_of",
    "is_of_missing_file",
    "is_overtaken",
    "rewriting_if_overtaken",
]

_TRIES = 10
"""The number of times that work on the newest snapshot is tried before SnapshotExpiredError."""

_LOOKS_AFTER = (0.1, 0.2, 0.4, 0.8, 1.6)
"""The pauses in seconds between checks for the expiry of a snapshot that lacks a file.

Other engines delete the files of an expired snapshot first, and the snapshot file last.
"""

T = TypeVar("T")


@contextmanager
def explaining_expiry(
    handle: TableHandle, *snapshots: Snapshot | None, changes: bool = False
) -> Iterator[None]:
    """Raise SnapshotExpiredError in place of CorruptTableError if one of the snapshots has expired.

    If none has expired, raise the CorruptTableError with the table's address in its message.

    Set ``changes`` if the caller reads only the changes of the snapshots: then a snapshot that is
    kept as a changelog counts as not expired.
    """
    try:
        yield
    except CorruptTableError as missing:
        read = [snapshot for snapshot in snapshots if snapshot is not None]
        if (expired := _expired_of(handle, read, changes)) is None and is_of_missing_file(missing):
            expired = _expired_soon(handle, read, changes)
        if expired is None:
            if handle.uri in str(missing):
                raise
            raise type(missing)(f"{handle.uri}: {missing}") from missing
        raise SnapshotExpiredError(
            f"snapshot {expired.id} of {handle.uri} has expired while it was read, and its files "
            "are deleted. Read a newer snapshot; for a long read, tag that snapshot first. "
            f"First error: {missing}"
        ) from missing


@contextmanager
def rewriting_if_overtaken(handle: TableHandle, base: Snapshot) -> Iterator[None]:
    """Raise BucketsChangedError in place of CorruptTableError or SnapshotExpiredError if ``base``
    is not the newest snapshot any more.

    The bucket of each key was read from ``base``; in a newer snapshot, a key may have another
    bucket. The caller must write the rows again.
    """
    try:
        yield
    except (CorruptTableError, SnapshotExpiredError) as missing:
        if not is_overtaken(handle, base.id):
            raise
        raise BucketsChangedError(
            f"the writer could not read snapshot {base.id} of {handle.uri}, from which it takes "
            "the bucket of each key; a newer snapshot exists. Nothing was published: write the "
            f"rows again. First error: {missing}"
        ) from missing


def again_if_overtaken(handle: TableHandle, work: Callable[[], T]) -> T:
    """Run ``work``, which reads the newest snapshot, and return its result.

    If ``work`` raises CorruptTableError or NotFoundError, and the newest snapshot has changed
    meanwhile, run it again. Raise SnapshotExpiredError if ten runs fail in this way.
    """
    for tries_left in reversed(range(_TRIES)):
        newest = latest_snapshot_id(handle.storage, handle.layout)
        try:
            return work()
        except (CorruptTableError, NotFoundError) as missing:
            if not is_overtaken(handle, newest):
                raise
            if not tries_left:
                raise SnapshotExpiredError(
                    f"{_TRIES} attempts to read the newest snapshot of {handle.uri} failed, and "
                    "during each of them a newer one was committed. Snapshots probably expire too "
                    "early: keep them longer ('snapshot.time-retained'), then run the operation "
                    f"again. Last error: {missing}"
                ) from missing
    raise AssertionError("the last try returns or raises")


def head_of(handle: TableHandle) -> Callable[[], int | None]:
    """Return a function that returns the id of the newest snapshot; None without a snapshot."""
    return lambda: latest_snapshot_id(handle.storage, handle.layout)


def is_overtaken(handle: TableHandle, newest: int | None) -> bool:
    """Return True if the newest snapshot is not the one with the id ``newest`` any more."""
    return latest_snapshot_id(handle.storage, handle.layout) != newest


def _expired_of(handle: TableHandle, read: Sequence[Snapshot], changes: bool) -> Snapshot | None:
    return next((each for each in read if not _is_kept(handle, each, changes)), None)


def _expired_soon(handle: TableHandle, read: Sequence[Snapshot], changes: bool) -> Snapshot | None:
    """Wait some seconds for one of the snapshots ``read`` to expire; return it, or None.

    Other engines delete the files of a snapshot before its snapshot file. With ``changes``, a
    snapshot that is kept as a changelog counts as not expired. The newest snapshot never expires:
    if ``read`` has only this snapshot, return None at once.
    """
    for seconds in _LOOKS_AFTER:
        newest = latest_snapshot_id(handle.storage, handle.layout)
        if all(snapshot.id == newest for snapshot in read):
            return None
        handle.environment.sleep_seconds(seconds)
        if (expired := _expired_of(handle, read, changes)) is not None:
            return expired
    return None


def is_of_missing_file(error: BaseException | None) -> bool:
    """Return True if the error, or one of the errors that caused it, is about a missing file."""
    while error is not None and not isinstance(error, NotFoundError):
        error = error.__cause__ or error.__context__
    return error is not None


def _is_kept(handle: TableHandle, snapshot: Snapshot, changes: bool) -> bool:
    """Return True if the snapshot or a tag of it exists, or if storage cannot answer.

    Return False if another snapshot has the same id. With ``changes``, look for a long-lived
    changelog of the snapshot instead of a tag.
    """
    storage, layout = handle.storage, handle.layout
    try:
        found = read_snapshot_if_present(storage, layout, snapshot.id)
        if found is not None:
            return found.identity == snapshot.identity
        if changes:
            return snapshot.id in changelog_ids(storage, layout)
        tags = read_tags(storage, layout)
        return any(tag.snapshot.identity == snapshot.identity for tag in tags)
    except LakeError:
        return True
