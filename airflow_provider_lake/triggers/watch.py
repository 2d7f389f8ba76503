"""One poll loop for all watched tables of a connection.

The watchers of a triggerer join a ``Watch``; one loop looks at all their tables together, and
hands each look to every watcher. A look costs one listing for each database.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from airflow_provider_lake.hooks.lake import LakeHook

if TYPE_CHECKING:
    from lakeformat.catalog.heads import Head, Heads

__all__ = ["Tick", "Watch", "WatchKey", "open_ticks", "watch_of"]

_log = logging.getLogger(__name__)

WatchKey = tuple[str, str, float]
"""What watchers have in common that share a loop."""


@dataclass(frozen=True, slots=True)
class Tick:
    """One look at all watched tables."""

    heads: Mapping[str, Head] = field(default_factory=dict)
    """Tables that are new to a watcher or have changed since the last look."""
    absent: frozenset[str] = frozenset()
    """Tables that were looked for and do not exist."""


@dataclass(slots=True)
class Watch:
    """Which tables are watched in this process; used from one event loop alone."""

    tables: Counter[str] = field(default_factory=Counter)
    _fresh: set[str] = field(default_factory=set)

    def join(self, table: str) -> None:
        """Watch a table from the next look on; its head is told then, changed or not."""
        self.tables[table] += 1
        self._fresh.add(table)

    def leave(self, table: str) -> None:
        """One watcher less."""
        self.tables[table] -= 1
        self.tables += Counter()  # which drops what nobody watches

    def tell_again(self, table: str) -> None:
        """Tell the head of a table at the next look, changed or not."""
        self._fresh.add(table)

    def take_fresh(self) -> set[str]:
        """The tables joined since this was last asked."""
        fresh, self._fresh = self._fresh, set()
        return fresh


_WATCHES: dict[WatchKey, Watch] = {}


def watch_of(key: WatchKey) -> Watch:
    """The watch of this process under a key."""
    return _WATCHES.setdefault(key, Watch())


async def open_ticks(key: WatchKey, lake_conn_id: str, poll_interval: float) -> AsyncIterator[Tick]:
    """Look, and look again after each interval, for ever; what is made of a look is part of it."""
    while (heads := await asyncio.to_thread(_opened, lake_conn_id)) is None:
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
    """The tables of a catalog; None while it cannot be reached, as a SQL database that is down."""
    from lakeformat import UnavailableError
    from lakeformat.catalog.heads import Heads

    try:
        return Heads(LakeHook(lake_conn_id).get_conn())
    except UnavailableError as reason:
        _log.warning("watching waits for the catalog: %s", reason)
        return None


def _look(heads: Heads, names: set[str], fresh: set[str], seen: dict[str, str | None]) -> Tick:
    """``seen`` is what the last looks told of; a storage that does not answer tells nothing."""
    from lakeformat import UnavailableError

    try:
        found = heads.look(names)
    except UnavailableError as reason:
        _log.warning("watching goes on, this look failed: %s", reason)
        return Tick()
    for name, error in found.failed.items():
        _log.warning("cannot look at %s now: %s", name, error)
    told = {}
    for name, head in found.heads.items():
        identity = None if head.snapshot is None else head.snapshot.identity
        if name in fresh or name not in seen or seen[name] != identity:
            told[name], seen[name] = head, identity
    absent = names - {*found.heads} - {*found.failed}
    for name in absent:
        seen.pop(name, None)
    return Tick(told, frozenset(absent))
