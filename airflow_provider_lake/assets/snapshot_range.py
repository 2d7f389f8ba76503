# SPDX-License-Identifier: Apache-2.0
"""The snapshots that a run must read: all that no earlier run has read.

Several events may start one run, and Airflow decides which. So a run reads from the position of its
consumer, which the table stores, up to the newest snapshot of its events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_lake.arguments.declared import LakeArgumentError
from airflow_provider_lake.assets.uri import SCHEME, TableAddress, address_of, split_table_name
from airflow_provider_lake.hooks.lake import LakeHook
from airflow_provider_lake.jobs.failures import failing_for_good
from airflow_provider_lake.jobs.identity import consumer_name
from airflow_provider_lake.triggers.cursor import read_cursor

if TYPE_CHECKING:
    from airflow.sdk import Context

    from lakeformat import Position, Table

__all__ = ["SnapshotRange", "payload_of", "snapshot_range"]


@dataclass(frozen=True, slots=True)
class SnapshotRange:
    """The snapshots after ``after`` up to and including ``upto``, and the consumer that reads
    them.
    """

    table: str
    lake_conn_id: str
    consumer: str
    after: Position
    upto: Position
    rewound: bool = False
    """True if the table was rolled back or recreated: then read all rows of ``upto`` instead of
    changes.
    """

    @property
    def is_empty(self) -> bool:
        """True if there are no snapshots to read."""
        return self.upto <= self.after and not self.rewound

    def open_table(self) -> Table:
        """Open the table, for example for ``changes(after=…, upto=…)``; raise ``NotFoundError`` if
        it does not exist.
        """
        return LakeHook(self.lake_conn_id).get_conn().table(self.table)

    def acknowledge(self) -> None:
        """Move the consumer past this range; call it after the run has published its own output.

        If a run fails before this call, its retry reads these snapshots again. Until the call, the
        consumer protects the snapshots of the range from the expiry of this library. If a rollback
        has removed ``upto`` meanwhile, ``rewound`` is True in the next run. Raises
        ``NotFoundError`` if the table does not exist.
        """
        if not self.is_empty:
            table = self.open_table()
            _set(table, self.consumer, self.upto, head=table.position)

    def to_dict(self) -> dict[str, Any]:
        """Return the range as a dict of JSON values, for XCom."""
        return {
            "table": self.table,
            "lake_conn_id": self.lake_conn_id,
            "consumer": self.consumer,
            "after": str(self.after),
            "upto": str(self.upto),
            "rewound": self.rewound,
        }

    @classmethod
    def from_dict(cls, members: Mapping[str, Any]) -> SnapshotRange:
        """Return the range that ``to_dict`` has written."""
        from lakeformat import Position

        ends = {key: Position.parse(members[key]) for key in ("after", "upto")}
        return cls(**{**members, **ends})


def snapshot_range(
    context: Context,
    table: str | None = None,
    *,
    lake_conn_id: str = LakeHook.default_conn_name,
    consumer: str | None = None,
) -> SnapshotRange:
    """Return the snapshots of a table that this run must read. If ``table`` is None, the table is
    the one whose events started the run.

    ``consumer`` names the consumer that stores the progress of the DAG. Default:
    ``airflow.<dag_id>``; a name that is too long for a file is shortened and ends with a hash. From
    the first run on, this library does not expire snapshots that the consumer has not read. In an
    Iceberg table, an expiry by another program may delete them. Set ``max_active_runs=1`` on the
    DAG: only one run at a time is supported.

    The first range begins with the snapshots of the run's events. Without events it begins with the
    first snapshot of the table, and the run fails if that snapshot has expired. A later range
    begins after the last acknowledged range.

    A range ends with the newest event of the run. Without events, or if a rollback has removed the
    snapshots of the events, it ends with the newest snapshot. A retry gets the same range. Before
    Airflow 3.3 this is true only for a range that ends with an event.

    If a rollback has removed snapshots that the consumer has read, ``rewound`` is True until a run
    acknowledges its range. If a watcher's event reports that the table was recreated, ``rewound``
    is True, too. Without this event, the next run of a recreated table is like a first run.

    Raises ``LakeArgumentError`` for an invalid table name. If ``table`` is None, it is also raised
    if the run has no events of a lake table, or events of several tables. Raises
    ``AirflowFailException`` if the table does not exist, or if the consumer's next snapshot has
    expired and no event reports a rollback.
    """
    events = [*_events_of_run(context)]
    meant = _meant(table, lake_conn_id, events)
    mine = [payload for address, payload in events if address == meant]
    with failing_for_good(may_come=lambda: False):
        opened = LakeHook(meant.lake_conn_id).get_conn().table(meant.name)
        name = consumer or _default_consumer(opened, context["ti"].dag_id)
        ends = [opened.position(payload) for payload in mine if payload.get("snapshot_id")]
        rewound = any(payload.get("rewound") for payload in mine)
        after = _stored(opened, meant.name, name, may_be_gone=rewound)
        upto = _end(context, meant, opened, max(ends, default=None))
        if after is None and rewound and any(upto.numbers):
            # If this run fails, a later one must read all rows: its events may not report this.
            after = opened.consumers.set_rewound(name, upto=upto)
        elif after is None:
            begins = [opened.position(_begin(payload)) for payload in mine]
            after = min(*begins, upto) if begins else opened.position(0)
            after = _set(opened, name, after, head=lambda: upto)
        if opened.since(after, after).rewound:
            rewound = True
        elif rewound:
            upto = max(upto, after)  # an earlier run got a newer event than this one
    return SnapshotRange(meant.name, meant.lake_conn_id, name, after, upto, rewound)


def payload_of(extra: Any) -> dict[str, Any]:
    """Return the payload in the ``extra`` of an asset event, from a task or a watcher of this
    provider; empty for any other event.
    """
    if isinstance(extra, Mapping) and extra.get("from_trigger"):
        extra = extra.get("payload")
    return dict(extra) if isinstance(extra, Mapping) and _names_snapshots(extra) else {}


def _begin(payload: Mapping[str, Any]) -> str | int:
    """Return the position before the first snapshot of an event; 0 if there is no earlier
    snapshot, or if the event is about all rows.
    """
    return payload.get("previous_position") or payload.get("previous_snapshot_id") or 0


def _names_snapshots(payload: Mapping[str, Any]) -> bool:
    """Return True if the snapshot ids in ``payload`` have the types that this provider writes."""
    ids = payload.get("snapshot_id"), payload.get("previous_snapshot_id")
    return type(ids[0]) is int and (ids[1] is None or type(ids[1]) is int)


def _events_of_run(context: Context) -> Iterator[tuple[TableAddress, dict[str, Any]]]:
    """Yield the table and the payload of each event of a lake table that started the run."""
    from airflow.sdk import Asset

    events = context.get("triggering_asset_events") or {}
    for asset in events:
        if isinstance(asset, Asset) and asset.uri.startswith(f"{SCHEME}://"):
            for event in events[asset]:
                yield address_of(asset.uri), payload_of(event.extra)


def _meant(
    table: str | None, lake_conn_id: str, events: list[tuple[TableAddress, dict[str, Any]]]
) -> TableAddress:
    """Return the table named ``table``; if None, the one table whose events started the run.

    Raise ``LakeArgumentError`` for an invalid name. If ``table`` is None, raise it also if there is
    no event, or if the events are of several tables.
    """
    if table is not None:
        try:
            return TableAddress(*split_table_name(table), lake_conn_id)
        except ValueError as reason:
            raise LakeArgumentError(str(reason)) from None
    tables = {address for address, _ in events}
    if not tables:
        raise LakeArgumentError(
            "no event of a lake table started this run, so the table is unknown: write "
            "snapshot_range(context, 'database.table')"
        )
    if len(tables) > 1:
        shown = ", ".join(sorted(address.name for address in tables))
        raise LakeArgumentError(
            f"events of several tables started this run ({shown}): name one with "
            "snapshot_range(context, 'database.table')"
        )
    return tables.pop()


def _default_consumer(table: Table, dag_id: str) -> str:
    """Return the name of the DAG's consumer. A long name is shortened, unless an earlier version
    has already created the consumer with its full name.
    """
    name, full = consumer_name(dag_id), f"airflow.{dag_id}"
    if name != full and any(each.id == full for each in table.consumers.list()):
        return full
    return name


def _stored(table: Table, name: str, consumer: str, *, may_be_gone: bool) -> Position | None:
    """Return the position up to which the consumer has read; None if there is no such consumer.

    Raise ``InvalidRequestError`` if the consumer's next snapshot has expired, unless
    ``may_be_gone``.
    """
    from airflow_provider_lake.sensors.conditions import fell_behind

    found = next((each for each in table.consumers.list() if each.id == consumer), None)
    if found is None:
        return None
    if found.is_stale and not may_be_gone:
        raise fell_behind(name, consumer, found.position)
    return found.position


def _set(table: Table, consumer: str, after: Position, *, head: Callable[[], Position]) -> Position:
    """Set the consumer to ``after``, and return the stored position.

    If a rollback has removed ``after``, set the consumer to the position that ``head`` returns, and
    mark the consumer as rewound.
    """
    from lakeformat import InvalidRequestError

    try:
        table.consumers.set(consumer, after=after)
    except InvalidRequestError:
        newest = head()
        if not (any(newest.numbers) and table.since(after, after).rewound):
            raise
        return table.consumers.set_rewound(consumer, upto=newest)
    return after


def _end(context: Context, meant: TableAddress, table: Table, newest: Position | None) -> Position:
    """Return the end of the range: ``newest``, which the events name.

    If there is no event, or if a rollback has removed ``newest``, return the newest snapshot of the
    table, and store it for later attempts, which must get the same range.
    """
    here = table.position()
    store, key = context.get("task_state_store"), f"lake-upto:{meant.uri}"
    pinned = None if store is None else store.get(key)
    if pinned is not None:
        kept = read_cursor(pinned)
        return here if kept is None or table.since(kept, kept).rewound else kept
    if newest is not None and not table.since(newest, newest).rewound:
        return newest
    if store is not None:
        store.set(key, str(here))
    return here
