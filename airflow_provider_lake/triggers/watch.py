# SPDX-License-Identifier: Apache-2.0
"""One poll loop for all watched tables of a connection.

The watchers of a triggerer join a ``Watch``. One loop checks all their tables together, and passes
each result to every watcher. A check costs one listing for each database.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from airflow_provider_lake.compat import in_thread
from airflow_provider_lake.hooks.lake import LakeHook

if TYPE_CHECKING:
    from lakeformat.catalog.heads import Head, Heads

__all__ = ["Tick", "Watch", "WatchKey", "open_ticks", "watch_of"]

_log = logging.getLogger(__name__)

WatchKey = tuple[str, str, float]
"""The values that all watchers in one loop share: ``"lake"``, connection id, and interval in
seconds.
"""


@dataclass(frozen=True, slots=True)
class Tick:
    """One check of all watched tables."""

    heads: Mapping[str, Head] = field(default_factory=dict)
    """Tables that are new to a watcher or have changed since the last check."""
    absent: frozenset[str] = frozenset()
    """Watched tables that do not exist."""


@dataclass(slots=True)
class Watch:
    """The tables watched in this process; used from one event loop only."""

    tables: Counter[str] = field(default_factory=Counter)
    _fresh: set[str] = field(default_factory=set)

    def join(self, table: str) -> None:
        """Watch a table; the next check reports its newest snapshot, changed or not."""
        self.tables[table] += 1
        self._fresh.add(table)

    def leave(self, table: str) -> None:
        """Remove one watcher of a table."""
        self.tables[table] -= 1
        self.tables += Counter()  # removes tables without a watcher

    def report_again(self, table: str) -> None:
        """Report the newest snapshot of a table in the next check, changed or not."""
        self._fresh.add(table)

    def take_fresh(self) -> set[str]:
        """Return the tables that were joined since the last call."""
        fresh, self._fresh = self._fresh, set()
        return fresh


_WATCHES: dict[WatchKey, Watch] = {}


def watch_of(key: WatchKey) -> Watch:
    """Return the watch of this process with this key."""
    return _WATCHES.setdefault(key, Watch())


async def open_ticks(key: WatchKey, lake_conn_id: str, poll_interval: float) -> AsyncIterator[Tick]:
    """Yield a check at each interval, without end; the interval includes the time to handle a
    check.
    """
    while (heads := await in_thread(_opened, lake_conn_id)) is None:
        await asyncio.sleep(poll_interval)
    watch = watch_of(key)
    seen: dict[str, str | None] = {}
    while True:
        fresh, names = watch.take_fresh(), {*watch.tables}
        tick = await asyncio.to_thread(_look, heads, names, fresh, seen)
        looked = time.monotonic()
        yield tick
        await asyncio.sleep(max(looked + poll_interval - time.monotonic(), 0))


def _opened(lake_conn_id: str) -> Heads | None:
    """Open the tables of a catalog; None while the catalog does not answer, such as a stopped SQL
    database.
    """
    from lakeformat import UnavailableError
    from lakeformat.catalog.heads import Heads

    try:
        return Heads(LakeHook(lake_conn_id).get_conn())
    except UnavailableError as reason:
        _log.warning("the catalog does not answer, the watcher tries again: %s", reason)
        return None


def _look(heads: Heads, names: set[str], fresh: set[str], seen: dict[str, str | None]) -> Tick:
    """Check the tables; ``seen`` holds the snapshots reported so far. A failed check reports
    nothing.
    """
    from lakeformat import UnavailableError

    try:
        found = heads.look(names)
    except UnavailableError as reason:
        _log.warning("a check of the watched tables failed, the watcher tries again: %s", reason)
        return Tick()
    for name, error in found.failed.items():
        _log.warning("%s cannot be read now, the watcher tries again: %s", name, error)
    reported = {}
    for name, head in found.heads.items():
        identity = None if head.snapshot is None else head.snapshot.identity
        if name in fresh or name not in seen or seen[name] != identity:
            reported[name], seen[name] = head, identity
    absent = names - {*found.heads} - {*found.failed}
    for name in absent:
        seen.pop(name, None)
    return Tick(reported, frozenset(absent))
