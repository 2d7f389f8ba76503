# SPDX-License-Identifier: Apache-2.0
"""Turns commits into asset events, so that a commit by any program can start a DAG."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Hashable
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import BaseEventTrigger, TriggerEvent

from airflow_provider_lake.assets.change import ROW_KINDS, check_kinds
from airflow_provider_lake.compat import state_store_of
from airflow_provider_lake.hooks.lake import LakeHook
from airflow_provider_lake.sensors.conditions import check_position
from airflow_provider_lake.triggers.cursor import (
    WatchedCommits,
    advance,
    at_no_snapshot,
    read_cursor,
)
from airflow_provider_lake.triggers.table import check_watched
from airflow_provider_lake.triggers.watch import Tick, WatchKey, open_ticks, watch_of

if TYPE_CHECKING:
    from lakeformat import Position

__all__ = ["LakeSnapshotEventTrigger"]

_log = logging.getLogger(__name__)

_STORED_SECONDS = 3.0
"""The most seconds to wait after an event before the watcher's position is stored. Meanwhile
Airflow stores the event, because a triggerer stores its events about once a second.
"""


class LakeSnapshotEventTrigger(BaseEventTrigger):
    """Watches a table for an ``AssetWatcher``, and sends an event for new commits of the table.
    ``assets/change.py`` describes the payload.

    Compactions and statistics change no rows and send no event, unless ``kinds`` names them. The
    trigger also waits for a table that does not exist yet, and reports all of its commits. Of an
    existing table it reports the commits since the trigger was first started, or those after
    ``after_snapshot``.

    From Airflow 3.3 on, Airflow's state store keeps the position of the watcher. So commits that
    were made while no triggerer ran, or after Airflow had ended the watcher, are reported later. If
    the triggerer crashes right after an event, the event may be sent a second time. So let a run
    read ``snapshot_range``, the snapshots that no earlier run has read, instead of the snapshots
    that its event names.

    :param table: the table, ``database.table``
    :param lake_conn_id: connection of type ``lake``
    :param kinds: the kinds of commits that count: ``APPEND``, ``OVERWRITE``, ``COMPACT`` or
        ``ANALYZE``. Default: those that change rows, ``APPEND`` and ``OVERWRITE``
    :param changelog: report commits of any kind, but only those that published changelog rows.
        Only for Paimon tables
    :param after_snapshot: a snapshot number, or a position such as ``"main/7"``: report the commits
        after it. The argument has no effect once a position is stored
    :param poll_interval: the seconds between two checks
    :param asset: the URI of the asset; ``lake_asset`` sets it. It makes the triggers of two assets
        differ: Airflow cannot store the position of a trigger that two assets share
    """

    def __init__(
        self,
        *,
        table: str,
        lake_conn_id: str = LakeHook.default_conn_name,
        kinds: Collection[str] = ROW_KINDS,
        changelog: bool = False,
        after_snapshot: int | str | None = None,
        poll_interval: float = 30,
        asset: str | None = None,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        check_watched(table, lake_conn_id, poll_interval)
        if after_snapshot is not None:
            check_position("after_snapshot", after_snapshot)
        if not isinstance(changelog, bool):
            raise ValueError(f"changelog must be True or False, got {changelog!r}")
        self.table = table
        self.lake_conn_id = lake_conn_id
        self.kinds = check_kinds(kinds)
        self.changelog = changelog
        self.after_snapshot = after_snapshot
        self.poll_interval = poll_interval
        self.asset = asset

    def for_asset(self, uri: str) -> LakeSnapshotEventTrigger:
        """Return a copy of this trigger for the asset with this URI."""
        return type(self)(**{**self.serialize()[1], "asset": uri})

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class path, and the arguments with which the triggerer builds this trigger."""
        return f"{type(self).__module__}.{type(self).__qualname__}", {
            "table": self.table,
            "lake_conn_id": self.lake_conn_id,
            "kinds": [*self.kinds],
            "changelog": self.changelog,
            "after_snapshot": self.after_snapshot,
            "poll_interval": self.poll_interval,
            "asset": self.asset,
        }

    def shared_stream_key(self) -> Hashable:
        """Return the key of the loop that checks the table; watchers with an equal key share it."""
        return _key_of(self.serialize()[1])

    @classmethod
    async def open_shared_stream(cls, kwargs: dict[str, Any]) -> AsyncGenerator[Tick]:
        """Run the loop of all watchers with the connection and interval in ``kwargs``; yield each
        result.
        """
        conn, interval = kwargs["lake_conn_id"], kwargs["poll_interval"]
        async for tick in open_ticks(_key_of(kwargs), conn, interval):
            yield tick

    async def filter_shared_stream(
        self, shared_stream: AsyncIterator[Tick]
    ) -> AsyncGenerator[TriggerEvent]:
        """Yield the events of this table from the checks of all tables."""
        watch = watch_of(_key_of(self.serialize()[1]))
        watch.join(self.table)
        try:
            cursor = kept = await self._kept_cursor()
            async for tick in shared_stream:
                event, cursor = await self._advance(tick, cursor)
                if event is not None:
                    yield TriggerEvent(event)  # type: ignore[no-untyped-call]
                    await asyncio.sleep(min(_STORED_SECONDS, self.poll_interval))
                if cursor is not None and (kept is None or not cursor.is_exactly(kept)):
                    # Stored now, because Airflow may have ended this watcher by the next check.
                    await self._keep(cursor)
                    kept = cursor
        finally:
            watch.leave(self.table)

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yield the events of this table from a separate loop. Only Airflow versions without shared
        loops call this method.
        """
        arguments = self.serialize()[1]
        async with (
            aclosing(self.open_shared_stream(arguments)) as ticks,
            aclosing(self.filter_shared_stream(ticks)) as events,
        ):
            async for event in events:
                yield event

    async def _advance(
        self, tick: Tick, cursor: Position | None
    ) -> tuple[dict[str, Any] | None, Position | None]:
        if self.table in tick.absent:
            return None, at_no_snapshot(cursor)
        head = tick.heads.get(self.table)
        if head is None:
            return None, cursor
        from lakeformat import LakeError

        wanted = WatchedCommits(self.table, self.kinds, self.changelog)
        try:
            return await asyncio.to_thread(advance, head.table, head.snapshot, cursor, wanted)
        except LakeError as reason:
            _log.warning(
                "the watcher cannot read the changes of %s, and tries again: %s", self.table, reason
            )
            watch_of(_key_of(self.serialize()[1])).report_again(self.table)
            return None, cursor

    @property
    def _state_key(self) -> str:
        what = "changelog" if self.changelog else "+".join(self.kinds)
        return f"lake-cursor:{what}"

    async def _kept_cursor(self) -> Position | None:
        found = None
        store = state_store_of(self)
        if store is not None:
            try:
                found = read_cursor(await store.aget(self._state_key))
            except ValueError as reason:  # several assets have an equal trigger
                _log.warning(
                    "the watcher cannot store its position: %s. So the watcher starts no DAG for "
                    "commits made while no triggerer runs. To change this, declare its asset with "
                    "lake_asset(…, watchers=[…])",
                    reason,
                )
                self.asset_state_store = None
        if found is None and self.after_snapshot is not None:
            return read_cursor(self.after_snapshot)
        return found

    async def _keep(self, cursor: Position) -> None:
        store = state_store_of(self)
        if store is not None:
            await store.aset(self._state_key, {"position": str(cursor)})


def _key_of(arguments: dict[str, Any]) -> WatchKey:
    return ("lake", arguments["lake_conn_id"], float(arguments["poll_interval"]))
