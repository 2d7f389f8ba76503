"""How far the consumers of a table have come, and which of them keep snapshots."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.changelog_directory import changelog_ids
from lakeformat.paimon.metadata.consumer import Consumer, read_consumers
from lakeformat.paimon.metadata.snapshot_directory import snapshot_ids

__all__ = ["FORWARDING", "Guard", "Progress", "available_ids", "read_progress"]

FORWARDING = "fast-forward-of-main"
"""The consumer of a branch whose snapshots main is getting: those themselves must stay."""


@dataclass(frozen=True, slots=True)
class Guard:
    """Somebody who has not read a snapshot yet: it and all after it must stay."""

    what: str
    """How messages name it, such as ``consumer 'job'``."""
    next_snapshot: int


@dataclass(frozen=True, slots=True)
class Progress:
    """What the consumers of a table keep."""

    guard: Guard | None
    """The one that is furthest behind."""
    stale: tuple[str, ...]
    """Those whose next snapshot has expired with its changelog: nothing is kept for them."""
    of_snapshots: Guard | None = None
    """The one whose changes, told otherwise, are no substitute for the snapshots."""


def read_progress(handle: TableHandle, *, without: Collection[str] = ()) -> Progress:
    """Who is furthest behind; ``without`` are consumers that do not count any more."""
    found = [
        consumer
        for consumer in read_consumers(handle.storage, handle.layout, handle.environment)
        if consumer.id not in without
    ]
    if not found:
        return Progress(None, ())
    earliest = min(available_ids(handle), default=0)
    stale = tuple(consumer.id for consumer in found if consumer.next_snapshot < earliest)
    alive = [consumer for consumer in found if consumer.next_snapshot >= earliest]
    if not alive:
        return Progress(None, stale)
    last = min(alive, key=lambda consumer: (consumer.next_snapshot, consumer.id))
    forwarding = next((_guard(each) for each in alive if each.id == FORWARDING), None)
    return Progress(_guard(last), stale, forwarding)


def _guard(consumer: Consumer) -> Guard:
    return Guard(f"consumer {consumer.id!r}", consumer.next_snapshot)


def available_ids(handle: TableHandle) -> list[int]:
    """The snapshots whose changes can still be read, ascending."""
    storage, layout = handle.storage, handle.layout
    return sorted({*changelog_ids(storage, layout), *snapshot_ids(storage, layout)})
