"""What a run has to read of a table: all that is new to it, however Airflow batches events.

Several events may start one run, and some of them another: which is not up to anybody. So a run
reads from where its consumer stands, kept in the table itself, up to the newest snapshot its
events tell of; a later run that is given an older event finds nothing left, and reads nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_lake.arguments import LakeArgumentError
from airflow_provider_lake.assets.uri import SCHEME, TableAddress, address_of, split_table_name
from airflow_provider_lake.failures import failing_for_good
from airflow_provider_lake.hooks.lake import LakeHook
from airflow_provider_lake.triggers.cursor import read_cursor

if TYPE_CHECKING:
    from airflow.sdk import Context

    from lakeformat import Table
    from lakeformat.tables.position import Position

__all__ = ["SnapshotRange", "payload_of", "snapshot_range"]


@dataclass(frozen=True, slots=True)
class SnapshotRange:
    """The snapshots after one and up to another, and who reads them."""

    table: str
    lake_conn_id: str
    consumer: str
    after: Position
    upto: Position
    rewound: bool = False
    """Whether the table was rolled back or made anew: read all rows of ``upto``, not changes."""

    @property
    def is_empty(self) -> bool:
        """Whether another run has read all of it already."""
        return self.upto <= self.after and not self.rewound

    def open_table(self) -> Table:
        """The table, for ``changes(after=…, upto=…)``."""
        return LakeHook(self.lake_conn_id).get_conn().table(self.table)

    def acknowledge(self) -> None:
        """Keep that all of it is dealt with; call it when what was made of it is published.

        A run that ends before is repeated on the same range. Until then none of it expires.
        """
        if not self.is_empty:
            self.open_table().consumers.set(self.consumer, after=self.upto)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for XCom."""
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
        """What another task of the run was given."""
        from lakeformat.tables.position import Position

        ends = {key: Position.parse(members[key]) for key in ("after", "upto")}
        return cls(**{**members, **ends})


def snapshot_range(
    context: Context,
    table: str | None = None,
    *,
    lake_conn_id: str = LakeHook.default_conn_name,
    consumer: str | None = None,
) -> SnapshotRange:
    """What this run has to read of a table; without a name, of the one whose events started it.

    The consumer is ``airflow.<dag_id>`` unless named; from its first run on, what it has not read
    is kept from expiring. Its first run begins where the first of its events does; one that no
    event has started begins with the whole table, and ends at its head. So does one whose events
    tell of snapshots that a rollback has taken away since. A retry is given the same end again.
    One run at a time: set ``max_active_runs=1`` on the DAG.
    """
    told = [*_told(context)]
    meant = _meant(table, lake_conn_id, told)
    mine = [payload for address, payload in told if address == meant]
    name = consumer or f"airflow.{context['ti'].dag_id}"
    with failing_for_good(may_come=lambda: False):
        opened = LakeHook(meant.lake_conn_id).get_conn().table(meant.name)
        ends = [opened.position(payload) for payload in mine if payload.get("snapshot_id")]
        rewound = any(payload.get("rewound") for payload in mine)
        after = _stored(opened, meant.name, name, may_be_gone=rewound)
        here = opened.position()
        upto = _end(context, meant, here, max(ends, default=None))
        if after is None:
            begins = [opened.position(_begin(payload)) for payload in mine]
            after = min(*begins, upto) if begins else opened.position(0)
            opened.consumers.set(name, after=after)
        rewound = rewound or after > here  # not every engine moves consumers when it rolls back
    return SnapshotRange(meant.name, meant.lake_conn_id, name, after, upto, rewound)


def payload_of(extra: Any) -> dict[str, Any]:
    """The payload in an event's extra, from a task or from a watcher; empty for any other."""
    if isinstance(extra, Mapping) and extra.get("from_trigger"):
        extra = extra.get("payload")
    return dict(extra) if isinstance(extra, Mapping) and _names_snapshots(extra) else {}


def _begin(payload: Mapping[str, Any]) -> str | int:
    """Where the changes begin that an event tells of; 0 is the beginning of the table."""
    return payload.get("previous_position") or payload.get("previous_snapshot_id") or 0


def _names_snapshots(said: Mapping[str, Any]) -> bool:
    """Whether it is ours: people send events of their own, by hand, with anything in them."""
    ids = said.get("snapshot_id"), said.get("previous_snapshot_id")
    return type(ids[0]) is int and (ids[1] is None or type(ids[1]) is int)


def _told(context: Context) -> Iterator[tuple[TableAddress, dict[str, Any]]]:
    """What the events that started the run say of lake tables."""
    from airflow.sdk import Asset

    events = context.get("triggering_asset_events") or {}
    for asset in events:
        if isinstance(asset, Asset) and asset.uri.startswith(f"{SCHEME}://"):
            for event in events[asset]:
                yield address_of(asset.uri), payload_of(event.extra)


def _meant(
    table: str | None, lake_conn_id: str, told: list[tuple[TableAddress, dict[str, Any]]]
) -> TableAddress:
    """The table; that none can be told is the author's mistake, which a retry would repeat."""
    if table is not None:
        try:
            return TableAddress(*split_table_name(table), lake_conn_id)
        except ValueError as reason:
            raise LakeArgumentError(str(reason)) from None
    tables = {address for address, _ in told}
    if not tables:
        raise LakeArgumentError(
            "no event of a lake table started this run: write snapshot_range(context, "
            "'database.table'), which a run by hand or by a schedule needs"
        )
    if len(tables) > 1:
        shown = ", ".join(sorted(address.name for address in tables))
        raise LakeArgumentError(
            f"say which table: the events that started this run are of {shown}: write "
            "snapshot_range(context, 'database.table')"
        )
    return tables.pop()


def _stored(table: Table, name: str, consumer: str, *, may_be_gone: bool) -> Position | None:
    """Return how far the consumer has read; raise an error if what comes next has expired."""
    from lakeformat import InvalidRequestError

    found = next((each for each in table.consumers.list() if each.id == consumer), None)
    if found is None:
        return None
    if found.is_stale and not may_be_gone:
        raise InvalidRequestError(
            f"consumer {consumer!r} of {name} fell behind: snapshot {found.next_snapshot}, which "
            "it reads next, has expired. Let it read all rows once, then move it with "
            "table.consumers.reset"
        )
    return found.position


def _end(context: Context, meant: TableAddress, here: Position, told: Position | None) -> Position:
    """The newest snapshot that was told of; the head if there is none, or a rollback has taken it.

    That head is kept for the tries to come, which must not publish a longer range.
    """
    store, key = context.get("task_state_store"), f"lake-upto:{meant.uri}"
    pinned = None if store is None else store.get(key)
    if pinned is not None:
        return min(read_cursor(pinned) or here, here)
    if told is not None and told <= here:
        return told
    if store is not None:
        store.set(key, str(here))
    return here
