"""Between which snapshots changes are asked for, and where they are found."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias

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
from lakeformat.paimon.read.time_travel import newest_at, to_millis
from lakeformat.types.type_rules import is_whole_number

__all__ = [
    "ChangeMode",
    "Window",
    "WindowEnd",
    "find_window",
    "read_change",
]

WindowEnd: TypeAlias = int | str | datetime
"""The number of a snapshot, the name of a tag, or a time (in UTC unless it says a zone)."""


class ChangeMode(StrEnum):
    """Where changes are found."""

    AUTO = "auto"
    """Two tags are compared; else the changelog, or the delta where the table keeps none."""
    DELTA = "delta"
    CHANGELOG = "changelog"
    DIFF = "diff"


@dataclass(frozen=True, slots=True)
class Window:
    """The snapshots after one and up to another, the latter included."""

    mode: ChangeMode
    after: int
    upto: int
    before_state: Snapshot | None = None
    """For a comparison the state before; None is the table without rows."""
    after_state: Snapshot | None = None

    @property
    def snapshot_ids(self) -> range:
        """The snapshots whose changes count."""
        return range(self.after + 1, self.upto + 1)


def find_window(handle: TableHandle, after: WindowEnd, upto: WindowEnd | None, mode: str) -> Window:
    """Resolve both ends; an error names the earliest and the latest that can be had."""
    chosen = _mode(handle, after, upto, mode)
    ends = _Ends(handle, chosen)
    if chosen is ChangeMode.DIFF:
        return ends.states(after, upto)
    first, last = ends.start(after), ends.end(upto)
    ends.check(first, last)
    return Window(chosen, first, last)


def read_change(handle: TableHandle, snapshot_id: int) -> Snapshot:
    """A snapshot that is read for its changes: it may live on as a changelog alone."""
    found = read_snapshot_if_present(handle.storage, handle.layout, snapshot_id)
    if found is not None:
        return found
    if snapshot_id in changelog_ids(handle.storage, handle.layout):
        return read_changelog(handle.storage, handle.layout, snapshot_id)
    return read_snapshot(handle.storage, handle.layout, snapshot_id)  # which says what there is


def _mode(handle: TableHandle, after: WindowEnd, upto: WindowEnd | None, mode: str) -> ChangeMode:
    if mode not in [*ChangeMode]:
        raise InvalidRequestError(f"mode is one of {', '.join(ChangeMode)}, got {mode!r}")
    chosen = ChangeMode(mode)
    has_changelog = changelog_producer(handle) != NO_PRODUCER
    if chosen is ChangeMode.AUTO:
        if isinstance(after, str) and isinstance(upto, str):
            chosen = ChangeMode.DIFF
        else:
            chosen = ChangeMode.CHANGELOG if has_changelog else ChangeMode.DELTA
    if chosen is ChangeMode.DIFF and not handle.schema.primary_keys:
        raise InvalidRequestError(
            f"{handle.uri} has no primary key to compare rows by, and names of files say nothing "
            "of rows that were compacted: mode='delta' gives the rows that were added between two "
            "snapshots or tags; rows that were deleted or updated are seen by scanning both"
        )
    if chosen is ChangeMode.CHANGELOG and not has_changelog:
        other = ", or mode='diff', where two states differ" if handle.schema.primary_keys else ""
        raise InvalidRequestError(
            f"{handle.uri} keeps no changelog: its option 'changelog-producer' is 'none'. Use "
            f"mode='delta', the rows as they were written{other}"
        )
    return chosen


class _Ends:
    """The snapshots a table has, and what the ends of a window mean among them."""

    def __init__(self, handle: TableHandle, mode: ChangeMode) -> None:
        self._handle = handle
        self._mode = mode
        ids = snapshot_ids(handle.storage, handle.layout)
        self._latest = ids[-1] if ids else 0
        if mode is ChangeMode.CHANGELOG or changelog_producer(handle) == NO_PRODUCER:
            ids = [*changelog_ids(handle.storage, handle.layout), *ids]
        self._earliest = min(ids, default=1)

    def start(self, after: WindowEnd) -> int:
        """A time before the table's life means all of it that is left."""
        found = self._resolve("after", after)
        return self._earliest - 1 if found is None else found

    def end(self, upto: WindowEnd | None) -> int:
        found = self._latest if upto is None else self._resolve("upto", upto)
        return self._earliest - 1 if found is None else found

    def check(self, first: int, last: int) -> None:
        if last < first <= self._latest:
            raise InvalidRequestError(
                f"changes after {first} and up to {last} of {self._handle.uri} are asked for: "
                "the end is before the start"
            )
        if first < self._earliest - 1 or max(first, last) > self._latest:
            raise NotFoundError(
                f"changes after {first} and up to {last} of {self._handle.uri} are asked for, "
                f"{self._there()}"
            )

    def states(self, after: WindowEnd, upto: WindowEnd | None) -> Window:
        """Both states; one of a tag is there although its snapshot has expired."""
        before, now = self._state("after", after), self._state("upto", upto)
        first, last = (0 if state is None else state.id for state in (before, now))
        if last < first:
            self.check(first, last)
        return Window(self._mode, first, last, before, now)

    def _state(self, name: str, end: WindowEnd | None) -> Snapshot | None:
        handle = self._handle
        if isinstance(end, str):
            return read_tag(handle.storage, handle.layout, end).snapshot
        found = self._latest if end is None else self._resolve(name, end)
        if found is None and self._earliest > 1:
            raise NotFoundError(
                f"what {handle.uri} was at {end} is not known any more: {self._there()}"
            )
        return read_snapshot(handle.storage, handle.layout, found) if found else None

    def _resolve(self, name: str, end: WindowEnd) -> int | None:
        """The number of a snapshot; None for a time before the first."""
        if isinstance(end, str):
            return read_tag(self._handle.storage, self._handle.layout, end).snapshot.id
        if isinstance(end, datetime):
            found = newest_at(self._handle, to_millis(end))
            return None if found is None else found.id
        if not is_whole_number(end) or end < 0:
            raise InvalidRequestError(
                f"{name} is the number of a snapshot, the name of a tag or a datetime, got {end!r}"
            )
        return end

    def _there(self) -> str:
        if not self._latest:
            return "and it has no snapshot yet"
        return (
            f"and it has those of snapshots {self._earliest} to {self._latest}: "
            f"the earliest start is after {self._earliest - 1}"
        )
