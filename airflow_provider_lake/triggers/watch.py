# SPDX-License-Identifier: Apache-2.0
"""One loop for all watched tables with the same connection and the same interval.

The watchers in a triggerer join a ``Watch``. The loop checks all of their tables together, and
passes the result to every watcher.
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
    from lakeformat import LakeError
    from lakeformat.catalog.heads import Head, Heads

__all__ = ["Tick", "Watch", "WatchKey", "open_ticks", "watch_of"]

_log = logging.getLogger(__name__)

WatchKey = tuple[str, str, float]
"""The key that identifies a loop: ``"lake"``, the connection id, and the interval in seconds."""


@dataclass(frozen=True, slots=True)
class Tick:
    """The result of one check of all watched tables."""

    heads: Mapping[str, Head] = field(default_factory=dict)
    """The newest snapshot of each table that has a new watcher or has changed since the last check,
    by table name.
    """
    absent: frozenset[str] = frozenset()
    """The names of watched tables that do not exist."""


@dataclass(slots=True)
class Watch:
    """The tables that one loop of this process watches, each with its number of watchers. A
    ``Watch`` may be used in only one asyncio event loop.
    """

    tables: Counter[str] = field(default_factory=Counter)
    _fresh: set[str] = field(default_factory=set)

    def join(self, table: str) -> None:
        """Add a watcher of a table. The next check reports the newest snapshot of the table, even
        if the table has not changed.
        """
        self.tables[table] += 1
        self._fresh.add(table)

    def leave(self, table: str) -> None:
        """Remove one watcher of a table."""
        self.tables[table] -= 1
        self.tables += Counter()  # removes tables without a watcher

    def report_again(self, table: str) -> None:
        """Let the next check report the newest snapshot of a table, even if the table has not
        changed.
        """
        self._fresh.add(table)

    def take_fresh(self) -> set[str]:
        """Return the tables that the next check must report in any case, and clear the list of
        these tables.
        """
        fresh, self._fresh = self._fresh, set()
        return fresh


_WATCHES: dict[WatchKey, Watch] = {}


def watch_of(key: WatchKey) -> Watch:
    """Return the watch of this process with this key; create it if there is none."""
    return _WATCHES.setdefault(key, Watch())


async def open_ticks(key: WatchKey, lake_conn_id: str, poll_interval: float) -> AsyncIterator[Tick]:
    """Check the watched tables every ``poll_interval`` seconds, without end, and yield each result.
    The time in which a watcher handles a result is part of the interval.
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
    """Return the object that reads the newest snapshots of a catalog's tables; None while the
    catalog does not answer.
    """
    from lakeformat import UnavailableError
    from lakeformat.catalog.heads import Heads

    try:
        return Heads(LakeHook(lake_conn_id).get_conn())
    except UnavailableError as reason:
        _log.warning(
            "the catalog of connection %s does not answer, and the watcher tries again: %s",
            lake_conn_id,
            reason,
        )
        return None


def _look(heads: Heads, names: set[str], fresh: set[str], seen: dict[str, str | None]) -> Tick:
    """Return the newest snapshot of each table in ``names`` that has changed since the last check,
    and the names of the tables that do not exist. A table in ``fresh`` is reported even if it has
    not changed.

    Update ``seen``, which maps each table to the identity of its last reported snapshot. A table
    that cannot be read is left out of the result. If the whole catalog is missing, none of its
    tables exists.
    """
    from lakeformat import NotFoundError

    found = heads.look(names)
    unread: dict[LakeError, list[str]] = {}
    for name, error in found.failed.items():
        unread.setdefault(error, []).append(name)
    for error, tables in unread.items():
        _log.warning(
            "the watcher cannot read %s now, and tries again: %s", ", ".join(tables), error
        )
    for name in fresh & found.failed.keys():
        seen.pop(name, None)  # the next check must report the table
    reported = {}
    for name, head in found.heads.items():
        identity = None if head.snapshot is None else head.snapshot.identity
        if name in fresh or name not in seen or seen[name] != identity:
            reported[name], seen[name] = head, identity
    missing = {name for name, why in found.failed.items() if isinstance(why, NotFoundError)}
    absent = (names - {*found.heads} - {*found.failed}) | missing
    for name in absent:
        seen.pop(name, None)
    return Tick(reported, frozenset(absent))
