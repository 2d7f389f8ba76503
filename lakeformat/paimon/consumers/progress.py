# SPDX-License-Identifier: Apache-2.0
"""The progress of a table's consumers, and the snapshots that are kept for them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.changelog_directory import changelog_ids
from lakeformat.paimon.metadata.consumer import Consumer, read_consumers
from lakeformat.paimon.metadata.snapshot_directory import snapshot_ids

__all__ = ["FORWARDING", "Guard", "Progress", "available_ids", "read_progress"]

FORWARDING = "fast-forward-of-main"
"""The id of the consumer that keeps a branch's snapshots while main is fast-forwarded to them."""


@dataclass(frozen=True, slots=True)
class Guard:
    """A consumer, and the id of the first snapshot that it has not read.

    This snapshot and all later ones are kept.
    """

    what: str
    """The name of the consumer in messages, such as ``consumer 'job'``."""
    next_snapshot: int


@dataclass(frozen=True, slots=True)
class Progress:
    """The consumer for which snapshots and changelogs are kept, and the stale consumers."""

    guard: Guard | None
    """The consumer that is furthest behind, without the stale ones; None if there is none."""
    stale: tuple[str, ...]
    """The ids of consumers whose next snapshot and changelog have expired; nothing is kept for
    them.
    """
    of_snapshots: Guard | None = None
    """The consumer of a fast-forward, or None.

    It needs snapshots; changelogs in place of expired snapshots are not enough.
    """


def read_progress(handle: TableHandle, *, without: Collection[str] = ()) -> Progress:
    """Return the consumer for which snapshots and changelogs are kept, and the stale consumers.

    Consumers with an id in ``without`` do not count. Raise CorruptTableError for a damaged consumer
    file.
    """
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
    """Return the ids of the snapshots whose changes can still be read, ascending.

    Expired snapshots that are kept as changelogs are among them.
    """
    storage, layout = handle.storage, handle.layout
    return sorted({*changelog_ids(storage, layout), *snapshot_ids(storage, layout)})
