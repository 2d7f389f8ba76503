# SPDX-License-Identifier: Apache-2.0
"""The work of a task: its result, and the snapshots that it published, read from their tables.

The XComs of a task name its table and its snapshots, but users can change them. So the page shows
only snapshots that have the commit user of this task. If a Paimon table has no such snapshot, the
page shows the snapshots that the task's asset events name, because only the task itself can send
events in its name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from airflow_provider_lake.assets.uri import address_of
from airflow_provider_lake.hooks.lake import LakeHook
from airflow_provider_lake.jobs.identity import commit_user, without_suffix
from airflow_provider_lake.links import TABLE_KEY
from airflow_provider_lake.page.airflow_records import OneTask, events_of, xcom_of
from airflow_provider_lake.page.table_facts import counts_rows
from airflow_provider_lake.page.team_lake import lake_of_dag

if TYPE_CHECKING:
    from lakeformat import IcebergTable, Position, Snapshot, SnapshotChange, Table
    from lakeformat.iceberg.branch_history import BranchSnapshot

__all__ = ["TableChanges", "TaskChanges", "changes_of_task"]

_LOOKED_BACK = 100
"""The largest number of snapshots that are checked for the task's commit user."""
_RESULT_KEY = "return_value"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableChanges:
    """The snapshots that a task has published in one table."""

    connection_id: str
    table: str
    commit_user: str
    """The commit user of the task for this table."""
    changes: tuple[SnapshotChange, ...]
    is_by_event: bool
    """True if ``changes`` has the snapshots that the task's asset events name, because no snapshot
    has the commit user of the task.
    """
    counts_rows: bool
    """True if each record that a commit counts is one row of a scan."""
    looked_at: int
    """The number of snapshots whose commit user was compared."""
    expired: int | None
    """The number of the snapshot in the task's result or event, if it has expired; else None."""
    listed: Sequence[BranchSnapshot] = ()
    """The snapshots of the task in an Iceberg or Mixed table; the page shows no files for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskChanges:
    """The result of a task, and its snapshots in each table."""

    task: OneTask
    connection_id: str
    database: str | None
    """The task's argument ``database``, a regular expression for the names of databases. None if
    the task does not have this argument.
    """
    result: Mapping[str, Any] = field(default_factory=dict)
    """The return value of the task; empty if there is none yet."""
    tables: Sequence[TableChanges] = ()
    """The snapshots in each table; empty if neither XComs nor events name a table."""


def changes_of_task(task: OneTask) -> TaskChanges:
    """Return the result of a task, and its snapshots in the tables that its XComs or asset events
    name.
    """
    subject = xcom_of(task, TABLE_KEY)
    result = xcom_of(task, _RESULT_KEY)
    connection_id = str(subject.get("lake_conn_id") or LakeHook.default_conn_name)
    events = _events_by_table(task)
    if "table" in subject:
        own = (connection_id, str(subject["table"]))
        tables = [_changes_in(task, *own, events.get(own, []), result)]
    else:
        tables = [_changes_in(task, *table, events[table], None) for table in events]
    return TaskChanges(
        task=task,
        connection_id=connection_id,
        database=str(subject["database"]) if "database" in subject else None,
        result=result,
        tables=tables,
    )


def _events_by_table(task: OneTask) -> dict[tuple[str, str], list[Mapping[str, Any]]]:
    """Return the snapshot numbers in the task's asset events, by connection and table."""
    found: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for uri, payload in events_of(task):
        last, before = payload.get("snapshot_id"), payload.get("previous_snapshot_id")
        if type(last) is not int:
            continue
        with suppress(ValueError):  # a URI that was stored before its form was checked
            address = address_of(uri)
            named = {"snapshot_id": last, "previous_snapshot_id": before}
            found.setdefault((address.lake_conn_id, address.name), []).append(named)
    return found


def _changes_in(
    task: OneTask,
    connection_id: str,
    name: str,
    payloads: Sequence[Mapping[str, Any]],
    result: Mapping[str, Any] | None,
) -> TableChanges:
    """Return the snapshots of a task in one table. ``payloads`` are the payloads of the task's
    asset events. ``result`` is None if the task returned no result for this table.
    """
    table = lake_of_dag(connection_id, task.dag_id).table(name)
    payloads = [_with_previous(table, each) for each in payloads]
    named = [*payloads, *([] if result is None else [result])]
    user = commit_user(task, name)
    if "snapshot_change" in table.instead:
        return _in_iceberg(cast("IcebergTable", table), connection_id, name, user)
    positions = {each.number: each for one in named for each in _positions(table, one)}
    newest = sorted(positions.items())[-_LOOKED_BACK:]
    found = {number: table.snapshot(each) for number, each in newest}
    kept = [each for each in found.values() if each is not None]
    mine = [each for each in kept if without_suffix(each.commit_user) == user]
    is_by_event = bool(payloads) and not mine
    announced = {each.number for one in payloads for each in _positions(table, one)}
    shown = [each for each in kept if each.id in announced] if is_by_event else mine
    return TableChanges(
        connection_id=connection_id,
        table=name,
        commit_user=user,
        changes=_changes(table, shown),
        is_by_event=is_by_event,
        counts_rows=counts_rows(table),
        looked_at=len(kept),
        expired=_expired(found, named),
    )


def _with_previous(table: Table, payload: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the payload of an event. If its ``previous_snapshot_id`` is missing, set it to the
    snapshot right before ``snapshot_id``.
    """
    if type(payload["previous_snapshot_id"]) is int:
        return payload
    before = table.position_before(table.position(payload["snapshot_id"]))
    return {**payload, "previous_snapshot_id": table.snapshot_id_at(before)}


def _in_iceberg(table: IcebergTable, connection_id: str, name: str, user: str) -> TableChanges:
    """Return the snapshots of an Iceberg or Mixed table that have the commit user of the task. Only
    the newest ``_LOOKED_BACK`` snapshots are searched.
    """
    newest = table.snapshots()[-_LOOKED_BACK:]
    mine = [each for each in newest if without_suffix(each.commit_user or "") == user]
    return TableChanges(
        connection_id=connection_id,
        table=name,
        commit_user=user,
        changes=(),
        is_by_event=False,
        counts_rows=True,
        looked_at=len(newest),
        expired=None,
        listed=mine,
    )


def _changes(table: Table, snapshots: Sequence[Snapshot]) -> tuple[SnapshotChange, ...]:
    found = (table.snapshot_change(each.id) for each in snapshots)
    return tuple(change for change in found if change is not None)


def _expired(
    found: Mapping[int, Snapshot | None], named: Sequence[Mapping[str, Any]]
) -> int | None:
    for each in named:
        number = each.get("snapshot_id")
        if type(number) is int and number in found and found[number] is None:
            return number
    return None


def _positions(table: Table, named: Mapping[str, Any]) -> list[Position]:
    """Return the positions of the newest 100 snapshots that the task may have published.

    ``named`` is the task's result, or the payload of an event. If it has ``snapshot_id``, only the
    snapshots after ``previous_snapshot_id`` up to ``snapshot_id`` qualify.
    """
    last, before = named.get("snapshot_id"), named.get("previous_snapshot_id")
    if type(last) is not int:
        return table.positions(limit=_LOOKED_BACK)
    after = before if type(before) is int else None
    return table.positions(after=after, upto=last, limit=_LOOKED_BACK)
