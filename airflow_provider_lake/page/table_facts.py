"""The facts on the page of a table; only metadata is read, never a data file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_provider_lake.page.team_lake import lake_of_connection

if TYPE_CHECKING:
    from lakeformat import HealthReport, Snapshot, Table

__all__ = ["TableFacts", "TableNames", "look_at_table", "names_of_tables"]

_RECENT = 20
_LOOKED_BACK = 200
"""The most snapshots that are read to find the last compaction."""
_MOST_NAMES = 1000


@dataclass(frozen=True, slots=True)
class TableNames:
    """The tables of a warehouse, database by database."""

    location: str
    databases: dict[str, list[str]]
    left_out: int
    """The number of tables that are not listed, because a page has a limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFacts:
    """The health of a table, and its newest snapshots."""

    health: HealthReport
    counts_history: bool
    """True if the files for older snapshots were counted."""
    primary_key: tuple[str, ...]
    partition_by: tuple[str, ...]
    recent: list[Snapshot]
    """The newest snapshots, newest first."""
    last_compaction: Snapshot | None
    looked_back: int
    """The number of snapshots that were read to find the last compaction."""
    now_millis: int


def names_of_tables(connection_id: str) -> TableNames:
    """Return the tables of a warehouse, to choose from."""
    catalog = lake_of_connection(connection_id).get_conn()
    found: dict[str, list[str]] = {}
    shown = left_out = 0
    for database in catalog.list_databases():
        tables = catalog.list_tables(database)
        found[database] = tables[: max(_MOST_NAMES - shown, 0)]
        shown += len(found[database])
        left_out += len(tables) - len(found[database])
    return TableNames(catalog.location, found, left_out)


def look_at_table(connection_id: str, name: str, *, history: bool) -> TableFacts:
    """Return the facts of a table by its name ``database.table``; ``history`` reads every
    snapshot.
    """
    from lakeformat import CommitKind
    from lakeformat.environment import SYSTEM

    table = lake_of_connection(connection_id).table(name)
    read = _newest(table)
    compactions = (each for each in read if each.commit_kind is CommitKind.COMPACT)
    return TableFacts(
        health=table.health(time_travel=history),
        counts_history=history,
        primary_key=tuple(table.schema.primary_keys),
        partition_by=tuple(table.schema.partition_keys),
        recent=read[:_RECENT],
        last_compaction=next(compactions, None),
        looked_back=len(read),
        now_millis=SYSTEM.now_millis(),
    )


def _newest(table: Table) -> list[Snapshot]:
    """Return the newest snapshots, newest first: at least the recent ones, and older ones until a
    compaction.
    """
    from lakeformat import CommitKind

    found: list[Snapshot] = []
    next_one = table.latest_snapshot()
    while next_one is not None:
        found.append(next_one)
        is_found = any(each.commit_kind is CommitKind.COMPACT for each in found)
        if len(found) >= _LOOKED_BACK or (len(found) >= _RECENT and is_found):
            break
        next_one = table.snapshot(next_one.position.before)
    return found
