"""What a snapshot led to goes once it has expired: whoever is still reading it meets no damage."""

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
    "head_of",
    "is_overtaken",
    "rewriting_if_overtaken",
    "telling_of_expiry",
]

_TRIES = 10
"""So often what reads the newest snapshot begins again."""

_LOOKS_AFTER = (0.1, 0.2, 0.4, 0.8, 1.6)
"""Seconds between one look and the next for a snapshot whose files go first."""

T = TypeVar("T")


@contextmanager
def telling_of_expiry(
    handle: TableHandle, *snapshots: Snapshot | None, changes: bool = False
) -> Iterator[None]:
    """Around what reads certain snapshots, or their ``changes``: if one has expired, it says so."""
    try:
        yield
    except CorruptTableError as missing:
        read = [snapshot for snapshot in snapshots if snapshot is not None]
        if (expired := _expired_of(handle, read, changes)) is None and _is_of_a_missing_file(
            missing
        ):
            expired = _expired_soon(handle, read, changes)
        if expired is None:
            raise
        raise SnapshotExpiredError(
            f"snapshot {expired.id} of {handle.uri} has expired while it was read, and its files "
            "with it: read a newer one, and tag what is read for long. This was met first: "
            f"{missing}"
        ) from missing


@contextmanager
def rewriting_if_overtaken(handle: TableHandle, base: Snapshot | None) -> Iterator[None]:
    """Around what asks a snapshot for the buckets of keys: a newer one has to be asked then."""
    try:
        yield
    except (CorruptTableError, SnapshotExpiredError) as missing:
        if base is None or not is_overtaken(handle, base.id):
            raise
        raise BucketsChangedError(
            f"snapshot {base.id} of {handle.uri}, which says in which buckets keys are, is not the "
            "newest any more and has expired while it was read. Nothing was published: write the "
            f"rows again. This was met first: {missing}"
        ) from missing


def again_if_overtaken(handle: TableHandle, work: Callable[[], T]) -> T:
    """What reads the newest snapshot, as often as a newer one takes it away meanwhile."""
    for tries_left in reversed(range(_TRIES)):
        newest = latest_snapshot_id(handle.storage, handle.layout)
        try:
            return work()
        except (CorruptTableError, NotFoundError) as missing:
            if not is_overtaken(handle, newest):
                raise
            if not tries_left:
                raise SnapshotExpiredError(
                    f"the newest snapshot of {handle.uri} expired {_TRIES} times in a row while "
                    "it was read: let snapshots live longer ('snapshot.time-retained'), and "
                    f"repeat it. The last: {missing}"
                ) from missing
    raise AssertionError("the last try returns or raises")


def head_of(handle: TableHandle) -> Callable[[], int | None]:
    """Return a function that looks up the number of the newest snapshot."""
    return lambda: latest_snapshot_id(handle.storage, handle.layout)


def is_overtaken(handle: TableHandle, newest: int | None) -> bool:
    """Whether another snapshot is the newest by now."""
    return latest_snapshot_id(handle.storage, handle.layout) != newest


def _expired_of(handle: TableHandle, read: Sequence[Snapshot], changes: bool) -> Snapshot | None:
    return next((each for each in read if not _is_kept(handle, each, changes)), None)


def _expired_soon(handle: TableHandle, read: Sequence[Snapshot], changes: bool) -> Snapshot | None:
    """Other engines remove the files of a snapshot first, and itself last: look again for a while.

    The newest snapshot is never expired, so of that a file that is gone is damage at once.
    """
    for seconds in _LOOKS_AFTER:
        newest = latest_snapshot_id(handle.storage, handle.layout)
        if all(snapshot.id == newest for snapshot in read):
            return None
        handle.environment.sleep_seconds(seconds)
        if (expired := _expired_of(handle, read, changes)) is not None:
            return expired
    return None


def _is_of_a_missing_file(error: BaseException | None) -> bool:
    """Whether a file was not found; one that is there and damaged stays so."""
    while error is not None and not isinstance(error, NotFoundError):
        error = error.__cause__ or error.__context__
    return error is not None


def _is_kept(handle: TableHandle, snapshot: Snapshot, changes: bool) -> bool:
    """Whether something leads to its rows still, or to its changes; also if that cannot be told."""
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
