# SPDX-License-Identifier: Apache-2.0
"""Finds consumers that have not moved for long, and so prevent snapshots or changelogs from
expiring.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, Protocol

from lakeformat.errors import CorruptTableError
from lakeformat.paimon.consumers.progress import FORWARDING
from lakeformat.paimon.consumers.table_consumers import files_of
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.changelog_directory import changelog_ids, read_changelog_if_present
from lakeformat.paimon.metadata.consumer import read_consumer
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot_if_present, snapshot_ids
from lakeformat.types.duration_text import duration

__all__ = ["Rules", "StalledConsumer", "find_stalled"]

_DAY = 24 * 60 * 60 * 1000
_LONG_FOR_A_STREAM = _DAY
"""The age at which the consumer of a stream into the table counts as stalled: one day.

A running stream into the table has a consumer only for the seconds in which it publishes a batch.
After a crash the consumer remains until the stream restarts.
"""
_LONG = 7 * _DAY
"""The age at which a reader counts as stalled: one week, because some readers run weekly."""


class Rules(Protocol):
    """The limits by which an expiry keeps snapshots or changelogs that no consumer needs."""

    @property
    def retain_max(self) -> int: ...

    @property
    def retain_min(self) -> int: ...

    @property
    def older_than(self) -> int: ...


@dataclass(frozen=True, slots=True)
class StalledConsumer:
    """A consumer that has not moved for long, and so prevents an expiry."""

    id: str
    next_snapshot: int | None
    """The id of the first snapshot that is kept for the consumer.

    None for a damaged file, for which all snapshots are kept.
    """
    unmoved_millis: int
    is_of_stream: bool = False
    """True if the consumer belongs to a stream that crashed while it published a batch to this
    table.
    """
    damage: str | None = None
    keeps: str = "snapshot"
    """``snapshot``, or ``changelog`` if only changelogs of expired snapshots are kept."""

    @property
    def finding(self) -> str:
        """The problem in one sentence, with the consumer's id."""
        if self.damage is not None:
            return f"nothing expires, because consumer {self.id!r} is damaged ({self.damage})"
        whose = " of a stream that crashed while publishing" if self.is_of_stream else ""
        return (
            f"consumer {self.id!r}{whose} has not moved for {duration(self.unmoved_millis)}, so "
            f"{self.keeps} {self.next_snapshot} and all later ones cannot expire"
        )

    def advice(self, table: str) -> str:
        """Return the advice: restart the reader, or run a command that deletes the consumer.

        The advice for a damaged consumer is to set it to a snapshot, or to delete its file.
        """
        name = shlex.quote(self.id)
        if self.damage is not None:
            return f"lake consumer set {table} {name} --next NUMBER, or delete the consumer's file"
        command = f"lake consumer reset {table} {name}"
        if self.is_of_stream:
            return f"restart the stream or, if it has ended for good, {command}"
        return f"restart its reader or, if the reader has ended for good, {command}"

    def advice_to_maintain(self, table: str) -> str:
        """Return the advice: restart the reader, or run a maintenance that deletes the consumer.

        The advice for a damaged consumer is to set it to a snapshot, or to delete its file.
        """
        if self.damage is not None:
            return self.advice(table)
        command = f"lake maintain {table} --expire-consumers '{duration(self.unmoved_millis)}'"
        if self.is_of_stream:
            return f"restart the stream or, if it has ended for good, {command}"
        return f"restart its reader or, if the reader has ended for good, {command}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {
            "consumer_id": self.id,
            "next_snapshot_id": self.next_snapshot,
            "unmoved_seconds": self.unmoved_millis / 1000,
            "is_of_stream": self.is_of_stream,
            "keeps": f"{self.keeps}s",
        }


def find_stalled(
    handle: TableHandle,
    *,
    snapshots: Rules | None,
    changelogs: Rules | None,
    without: Collection[str] = (),
    unmoved_for: int | None = None,
) -> tuple[StalledConsumer, ...]:
    """Return the consumers that have not moved for long, and that prevent an expiry.

    Two kinds of consumers are returned after one day without a move: consumers of a stream into
    the table, and consumers with a damaged file. Any other consumer is a reader. A reader is
    returned after ``unmoved_for`` milliseconds, or after one day if that is longer.
    ``unmoved_for=None`` is one week for a table without the option ``consumer.expiration-time``.
    For a table with this option, ``unmoved_for=None`` returns no readers: an expiry deletes them.

    ``snapshots`` and ``changelogs`` are the rules by which snapshots and changelogs would expire.
    Pass ``snapshots=None`` if consumers keep only changelogs, and ``changelogs=None`` if changelogs
    never expire.
    """
    now = handle.environment.now_millis()
    long = unmoved_for
    if long is None and handle.options.consumer_expiration_time_millis is None:
        long = _LONG
    old = {
        name: now - modified
        for name, modified in files_of(handle).modified()
        if now - modified >= _LONG_FOR_A_STREAM and name not in {FORWARDING, *without}
    }
    if not old:
        return ()
    held = _KeptSnapshots(handle, snapshots, changelogs)
    found = []
    for name, unmoved in old.items():
        state = _state_of(handle, name, unmoved)
        if state is None:
            continue
        is_reader = not state.is_of_stream and state.damage is None
        if is_reader and (long is None or unmoved < long):
            continue
        if state.next_snapshot is not None:
            keeps = held.by(state.next_snapshot)
            if keeps is None:
                continue
            state = replace(state, keeps=keeps)
        found.append(state)
    return tuple(found)


def _state_of(handle: TableHandle, name: str, unmoved: int) -> StalledConsumer | None:
    storage, layout = handle.storage, handle.layout
    is_of_stream = storage.exists(layout.stream(name))
    try:
        consumer = read_consumer(storage, layout, name, handle.environment)
    except CorruptTableError as error:
        return StalledConsumer(name, None, unmoved, is_of_stream, damage=str(error))
    if consumer is None:
        return None
    return StalledConsumer(name, consumer.next_snapshot, unmoved, is_of_stream)


class _KeptSnapshots:
    """Decides if a consumer prevents an expiry of snapshots or changelogs.

    The directories of snapshots and changelogs are listed once for all consumers.
    """

    def __init__(
        self, handle: TableHandle, snapshots: Rules | None, changelogs: Rules | None
    ) -> None:
        self._handle = handle
        self._rules = snapshots
        self._rules_of_changelogs = changelogs
        self._snapshots = snapshot_ids(handle.storage, handle.layout)
        self._changelogs = changelog_ids(handle.storage, handle.layout)

    def by(self, number: int) -> str | None:
        """Return ``snapshot`` or ``changelog``: the kind of file that would expire if no consumer
        needed it.

        ``number`` is the next snapshot of the consumer. Return None if neither would expire, or if
        the changes of the next snapshot have expired already.
        """
        if number < min([*self._changelogs, *self._snapshots], default=0):
            return None  # The changes that the consumer would read next have expired.
        if self._rules is not None and self._keeps_snapshots(number, self._rules):
            return "snapshot"
        rules = self._rules_of_changelogs
        is_kept = rules is not None and self._keeps_changelogs(number, rules)
        return "changelog" if is_kept else None

    def _keeps_snapshots(self, number: int, rules: Rules) -> bool:
        """Return True if the oldest snapshot that is kept for the consumer would otherwise expire.

        The age of a snapshot counts from the commit of the next snapshot.
        """
        kept = [each for each in self._snapshots if each >= number]
        if len(kept) <= rules.retain_min:
            return False
        if len(kept) > rules.retain_max:
            return True
        storage, layout = self._handle.storage, self._handle.layout
        follower = read_snapshot_if_present(storage, layout, kept[1])
        return follower is not None and follower.time_millis < rules.older_than

    def _keeps_changelogs(self, number: int, rules: Rules) -> bool:
        """Return True if the oldest changelog that is kept for the consumer would otherwise expire.

        The age of a changelog counts from its own commit. The newest changelog never expires.
        """
        kept = [each for each in self._changelogs if each >= number]
        newest = self._snapshots[-1] if self._snapshots else 0
        if len(kept) < 2 or kept[0] > newest - rules.retain_min:
            return False
        if kept[0] <= newest - rules.retain_max:
            return True
        storage, layout = self._handle.storage, self._handle.layout
        oldest = read_changelog_if_present(storage, layout, kept[0])
        return oldest is not None and oldest.time_millis < rules.older_than
