"""Consumers that keep snapshots or changelogs from expiring, and have not moved for long."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, Protocol

from lakeformat.errors import CorruptTableError
from lakeformat.paimon.consumers.progress import FORWARDING
from lakeformat.paimon.consumers.table_consumers import consumer_files
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.changelog_directory import changelog_ids, read_changelog_if_present
from lakeformat.paimon.metadata.consumer import read_consumer
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot_if_present, snapshot_ids
from lakeformat.types.duration_text import duration

__all__ = ["Rules", "StalledConsumer", "find_stalled"]

_DAY = 24 * 60 * 60 * 1000
_LONG_FOR_A_STREAM = _DAY
"""What a stream sets while it publishes is there for seconds, or until it is started again."""
_LONG = 7 * _DAY
"""Readers may come once a week."""


class Rules(Protocol):
    """What expires: of numbers and times, where no consumer keeps it."""

    @property
    def retain_max(self) -> int: ...

    @property
    def retain_min(self) -> int: ...

    @property
    def older_than(self) -> int: ...


@dataclass(frozen=True, slots=True)
class StalledConsumer:
    """A consumer that keeps what would expire otherwise, though nobody seems to read."""

    id: str
    next_snapshot: int | None
    """It and all after it are kept; None where the file is damaged, so that nothing expires."""
    unmoved_millis: int
    is_of_stream: bool = False
    """Whether a stream into the table has set it, and died while it published a batch."""
    damage: str | None = None
    keeps: str = "snapshot"
    """Whether snapshots are kept, or ``changelog``: those alone that outlive their snapshots."""

    @property
    def finding(self) -> str:
        """What is wrong."""
        if self.damage is not None:
            return f"nothing expires, for consumer {self.id!r} is damaged ({self.damage})"
        whose = " of a stream that died while it published" if self.is_of_stream else ""
        return (
            f"consumer {self.id!r}{whose} has not moved for {duration(self.unmoved_millis)}, and "
            f"keeps {self.keeps} {self.next_snapshot} and all after it from expiring"
        )

    def advice(self, table: str) -> str:
        """What to do, with the command."""
        name = shlex.quote(self.id)
        if self.damage is not None:
            return f"lake consumer set {table} {name} --next NUMBER, or delete the file"
        command = f"lake consumer reset {table} {name}"
        if self.is_of_stream:
            return f"start the stream again or, if it will not come back, {command}"
        return f"let its reader go on or, if there is none any more, {command}"

    def advice_to_maintain(self, table: str) -> str:
        """Name the maintenance that deletes the consumer, and what it has kept, in one run."""
        if self.damage is not None:
            return self.advice(table)
        command = f"lake maintain {table} --expire-consumers '{duration(self.unmoved_millis)}'"
        reader = "the stream" if self.is_of_stream else "its reader"
        return f"start {reader} again or, if it has ended, {command}"

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
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
    """The consumers without which a snapshot or changelog would expire by these rules.

    Those that have not moved for ``unmoved_for`` milliseconds; a consumer of a stream and a damaged
    file after a day. The default is a week, and never where the table sets
    ``consumer.expiration-time``: that says how long a reader may rest.

    ``snapshots`` is None where consumers keep changelogs alone, and ``changelogs`` where nothing
    expires these. A fast-forward that was interrupted is none of them: it needs its snapshots.
    """
    now = handle.environment.now_millis()
    long = unmoved_for
    if long is None and handle.options.consumer_expiration_time_millis is None:
        long = _LONG
    old = {
        name: now - modified
        for name, modified in consumer_files(handle)
        if now - modified >= _LONG_FOR_A_STREAM and name not in {FORWARDING, *without}
    }
    if not old:
        return ()
    held = _Held(handle, snapshots, changelogs)
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


class _Held:
    """What would expire but for a consumer; directories are listed once for all of them."""

    def __init__(
        self, handle: TableHandle, snapshots: Rules | None, changelogs: Rules | None
    ) -> None:
        self._handle = handle
        self._rules = snapshots
        self._rules_of_changelogs = changelogs
        self._snapshots = snapshot_ids(handle.storage, handle.layout)
        self._changelogs = changelog_ids(handle.storage, handle.layout)

    def by(self, number: int) -> str | None:
        """``snapshot`` or ``changelog``; None where one that reads this next keeps nothing."""
        if number < min([*self._changelogs, *self._snapshots], default=0):
            return None  # it fell behind
        if self._rules is not None and self._keeps_snapshots(number, self._rules):
            return "snapshot"
        rules = self._rules_of_changelogs
        is_kept = rules is not None and self._keeps_changelogs(number, rules)
        return "changelog" if is_kept else None

    def _keeps_snapshots(self, number: int, rules: Rules) -> bool:
        """Whether the oldest would expire; it was the table until the next one came."""
        kept = [each for each in self._snapshots if each >= number]
        if len(kept) <= rules.retain_min:
            return False
        if len(kept) > rules.retain_max:
            return True
        storage, layout = self._handle.storage, self._handle.layout
        follower = read_snapshot_if_present(storage, layout, kept[1])
        return follower is not None and follower.time_millis < rules.older_than

    def _keeps_changelogs(self, number: int, rules: Rules) -> bool:
        """Whether the oldest changelog would expire, by its own time; the newest stays anyhow."""
        kept = [each for each in self._changelogs if each >= number]
        newest = self._snapshots[-1] if self._snapshots else 0
        if len(kept) < 2 or kept[0] > newest - rules.retain_min:
            return False
        if kept[0] <= newest - rules.retain_max:
            return True
        storage, layout = self._handle.storage, self._handle.layout
        oldest = read_changelog_if_present(storage, layout, kept[0])
        return oldest is not None and oldest.time_millis < rules.older_than
