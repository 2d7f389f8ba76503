"""Consumers that keep snapshots from expiring, and have not moved for long."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from lakeformat.consumers.progress import FORWARDING
from lakeformat.consumers.table_consumers import consumer_files
from lakeformat.duration_text import duration
from lakeformat.errors import CorruptTableError
from lakeformat.handle import TableHandle
from lakeformat.metadata.consumer import read_consumer
from lakeformat.metadata.snapshot_directory import read_snapshot_if_present, snapshot_ids

__all__ = ["StalledConsumer", "find_stalled"]

_DAY = 24 * 60 * 60 * 1000
_LONG_FOR_A_STREAM = _DAY
"""What a stream sets while it publishes is there for seconds, or until it is started again."""
_LONG = 7 * _DAY
"""Readers may come once a week."""


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

    @property
    def finding(self) -> str:
        """What is wrong."""
        if self.damage is not None:
            return f"nothing expires, for consumer {self.id!r} is damaged ({self.damage})"
        whose = " of a stream that died while it published" if self.is_of_stream else ""
        return (
            f"consumer {self.id!r}{whose} has not moved for {duration(self.unmoved_millis)}, and "
            f"keeps snapshot {self.next_snapshot} and all after it from expiring"
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

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "consumer_id": self.id,
            "next_snapshot_id": self.next_snapshot,
            "unmoved_seconds": self.unmoved_millis / 1000,
            "is_of_stream": self.is_of_stream,
        }


def find_stalled(
    handle: TableHandle,
    *,
    retain_max: int,
    retain_min: int,
    older_than: int,
    without: Collection[str] = (),
) -> tuple[StalledConsumer, ...]:
    """Those without which a snapshot would expire by these rules.

    A fast-forward that was interrupted is none of them: it needs its snapshots to go on.
    """
    now = handle.environment.now_millis()
    old = {
        name: now - modified
        for name, modified in consumer_files(handle)
        if now - modified >= _LONG_FOR_A_STREAM and name not in {FORWARDING, *without}
    }
    if not old:
        return ()
    ids = snapshot_ids(handle.storage, handle.layout)
    found = []
    for name, unmoved in old.items():
        state = _state_of(handle, name, unmoved)
        if state is None:
            continue
        if unmoved < _LONG and not state.is_of_stream and state.damage is None:
            continue
        if state.next_snapshot is not None:
            kept = [number for number in ids if number >= state.next_snapshot]
            if not kept or state.next_snapshot < ids[0]:
                continue  # it has read all there is, or fell behind
            if not _would_expire(handle, kept, retain_max, retain_min, older_than):
                continue
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


def _would_expire(
    handle: TableHandle, kept: Sequence[int], retain_max: int, retain_min: int, older_than: int
) -> bool:
    """Whether the oldest of these would; it was the table until the next one came."""
    if len(kept) <= retain_min:
        return False
    if len(kept) > retain_max:
        return True
    follower = read_snapshot_if_present(handle.storage, handle.layout, kept[1])
    return follower is not None and follower.time_millis < older_than
