# SPDX-License-Identifier: Apache-2.0
"""The window of snapshots whose changes are read, and the source of these changes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from lakeformat.errors import InvalidRequestError, NotFoundError
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.changelog_directory import changelog_ids, read_changelog
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import (
    read_snapshot,
    read_snapshot_if_present,
    snapshot_ids,
)
from lakeformat.paimon.metadata.tag import read_tag
from lakeformat.paimon.read.changes.files import NO_PRODUCER, changelog_producer
from lakeformat.paimon.read.time_travel import newest_at
from lakeformat.paimon.snapshot_positions import number_of_kept
from lakeformat.tables.arguments import WindowEnd
from lakeformat.tables.moment import to_millis
from lakeformat.tables.position import Position
from lakeformat.types.type_rules import is_whole_number

__all__ = [
    "ChangeMode",
    "SnapshotWindow",
    "find_window",
    "read_change",
]


class ChangeMode(StrEnum):
    """The source of changes: new data files, changelog files, or a comparison of two snapshots."""

    AUTO = "auto"
    """If both ends are tags, ``diff``; otherwise ``changelog``, or ``delta`` if the table has no
    changelog.
    """
    DELTA = "delta"
    CHANGELOG = "changelog"
    DIFF = "diff"


@dataclass(frozen=True, slots=True)
class SnapshotWindow:
    """The snapshots from ``after + 1`` to ``upto``, both inclusive."""

    mode: ChangeMode
    after: int
    upto: int
    before_state: Snapshot | None = None
    """With ``diff``, the earlier snapshot; None for the table before its first commit."""
    after_state: Snapshot | None = None

    @property
    def snapshot_ids(self) -> range:
        """The ids of the snapshots in the window, oldest first."""
        return range(self.after + 1, self.upto + 1)


def find_window(
    handle: TableHandle, after: WindowEnd, upto: WindowEnd | None, mode: str
) -> SnapshotWindow:
    """Return the window between two ends; ``upto=None`` is the newest snapshot.

    Raise NotFoundError, which names the available snapshots, if changes in the window have expired
    or do not exist yet. Raise InvalidRequestError if the window ends before it starts, or if the
    table does not have changes of this mode.
    """
    after, upto = _parsed(after), None if upto is None else _parsed(upto)
    chosen = _mode(handle, after, upto, mode)
    ends = _Ends(handle, chosen)
    if chosen is ChangeMode.DIFF:
        return ends.states(after, upto)
    first, last = ends.start(after), ends.end(upto)
    ends.check(first, last)
    return SnapshotWindow(chosen, first, last)


def read_change(handle: TableHandle, snapshot_id: int) -> Snapshot:
    """Return a snapshot or, if it has expired, its long-lived changelog.

    Raise NotFoundError if both have expired.
    """
    found = read_snapshot_if_present(handle.storage, handle.layout, snapshot_id)
    if found is not None:
        return found
    if snapshot_id in changelog_ids(handle.storage, handle.layout):
        return read_changelog(handle.storage, handle.layout, snapshot_id)
    return read_snapshot(
        handle.storage, handle.layout, snapshot_id
    )  # raises an error with the existing snapshots


def _parsed(end: WindowEnd) -> WindowEnd:
    """Return the position that ``end`` describes if it is a str with a slash, otherwise ``end``.

    The name of a tag has no slash.
    """
    return Position.parse(end) if isinstance(end, str) and "/" in end else end


def _mode(handle: TableHandle, after: WindowEnd, upto: WindowEnd | None, mode: str) -> ChangeMode:
    if mode not in [*ChangeMode]:
        raise InvalidRequestError(f"mode must be one of {', '.join(ChangeMode)}, got {mode!r}")
    chosen = ChangeMode(mode)
    has_changelog = changelog_producer(handle) != NO_PRODUCER
    if chosen is ChangeMode.AUTO:
        if isinstance(after, str) and isinstance(upto, str):
            chosen = ChangeMode.DIFF
        else:
            chosen = ChangeMode.CHANGELOG if has_changelog else ChangeMode.DELTA
    if chosen is ChangeMode.DIFF and not handle.schema.primary_keys:
        raise InvalidRequestError(
            f"mode='diff' compares rows by primary key, and {handle.uri} has none. This mode is "
            "the default between two tags. Use mode='delta' for the rows added between two "
            "snapshots or tags; to find deleted or updated rows, scan both snapshots"
        )
    if chosen is ChangeMode.CHANGELOG and not has_changelog:
        other = ", or mode='diff' to compare two states" if handle.schema.primary_keys else ""
        raise InvalidRequestError(
            f"{handle.uri} keeps no changelog: its option 'changelog-producer' is 'none'. Use "
            f"mode='delta' for the rows as they were written{other}"
        )
    return chosen


class _Ends:
    """Resolves the two ends of a window to snapshots."""

    def __init__(self, handle: TableHandle, mode: ChangeMode) -> None:
        self._handle = handle
        self._mode = mode
        ids = snapshot_ids(handle.storage, handle.layout)
        self._latest = ids[-1] if ids else 0
        if mode is ChangeMode.CHANGELOG or changelog_producer(handle) == NO_PRODUCER:
            ids = [*changelog_ids(handle.storage, handle.layout), *ids]
        self._earliest = min(ids, default=1)

    def start(self, after: WindowEnd) -> int:
        """Return the snapshot id after which the window starts.

        A time before the first snapshot means the earliest possible start.
        """
        found = self._resolve("after", after)
        return self._earliest - 1 if found is None else found

    def end(self, upto: WindowEnd | None) -> int:
        found = self._latest if upto is None else self._resolve("upto", upto)
        return self._earliest - 1 if found is None else found

    def check(self, first: int, last: int) -> None:
        if last < first <= self._latest:
            raise InvalidRequestError(
                f"the window of changes of {self._handle.uri} ends before it starts: "
                f"'after' is snapshot {first} and 'upto' is snapshot {last}. Swap the two arguments"
            )
        if first < self._earliest - 1 or max(first, last) > self._latest:
            upto = "" if last < first else f" up to snapshot {last}"
            raise NotFoundError(
                f"the changes after snapshot {first}{upto} of {self._handle.uri} "
                f"are not available: {self._there()}"
            )

    def states(self, after: WindowEnd, upto: WindowEnd | None) -> SnapshotWindow:
        """Return the window between the two states that a comparison reads.

        The window can start or end at a tag even if the tag's snapshot has expired. Raise
        InvalidRequestError if the window ends before it starts.
        """
        before, now = self._state("after", after), self._state("upto", upto)
        first, last = (0 if state is None else state.id for state in (before, now))
        if last < first:
            self.check(first, last)
        return SnapshotWindow(self._mode, first, last, before, now)

    def _state(self, name: str, end: WindowEnd | None) -> Snapshot | None:
        handle = self._handle
        if isinstance(end, str):
            return read_tag(handle.storage, handle.layout, end).snapshot
        found = self._latest if end is None else self._resolve(name, end)
        if found is None and self._earliest > 1:
            raise NotFoundError(
                f"the state of {handle.uri} at {end} has expired: choose a later time; snapshots() "
                "lists the snapshots that are left"
            )
        return read_snapshot(handle.storage, handle.layout, found) if found else None

    def _resolve(self, name: str, end: WindowEnd) -> int | None:
        """Return the snapshot id that ``end`` means; None for a time before the first snapshot.

        ``name`` is the name of the argument, for errors. Raise NotFoundError for an unknown tag,
        and for a position whose snapshot a rollback has removed. Raise InvalidRequestError for any
        other value that is not valid.
        """
        if isinstance(end, str):
            return read_tag(self._handle.storage, self._handle.layout, end).snapshot.id
        if isinstance(end, datetime):
            found = newest_at(self._handle, to_millis(end))
            return None if found is None else found.id
        if isinstance(end, Position):
            return number_of_kept(self._handle, name, end)
        if not is_whole_number(end) or end < 0:
            raise InvalidRequestError(
                f"{name!r} must be a snapshot number, a tag name, a datetime or a position, "
                f"got {end!r}"
            )
        return end

    def _there(self) -> str:
        if not self._latest:
            return "the table has no snapshot yet"
        some = f"snapshots {self._earliest} to {self._latest}"
        if self._earliest == self._latest:
            some = f"snapshot {self._latest}"
        return (
            f"the table has the changes of {some}, so 'after' must be at least "
            f"{self._earliest - 1} and 'upto' at most {self._latest}"
        )
