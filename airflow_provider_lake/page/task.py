"""What a task has done to its table, as the table tells it.

The task's own words say which table to ask, and where to begin; a snapshot is shown only if it
bears the commit user of this very task. Nobody who may change what a task has said can make the
page show the commits of others.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from airflow_provider_lake.hooks.lake import LakeHook
from airflow_provider_lake.identity import TaskIdentity, commit_user
from airflow_provider_lake.links import TABLE_KEY
from airflow_provider_lake.page.team_lake import lake_of_dag

if TYPE_CHECKING:
    from lakeformat import Table
    from lakeformat.paimon.read.changes.snapshot_change import SnapshotChange
    from lakeformat.tables.position import Position

__all__ = ["OneTask", "TaskChanges", "changes_of_task"]

_LOOKED_BACK = 100
"""So many snapshots are asked whether they are the task's."""
_RESULT_KEY = "return_value"


@dataclass(frozen=True, slots=True)
class OneTask:
    """One instance of a task."""

    dag_id: str
    run_id: str
    task_id: str
    map_index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskChanges:
    """The snapshots of a task, and what they changed."""

    task: TaskIdentity
    connection_id: str = LakeHook.default_conn_name
    table: str | None = None
    """None where the task has not said it."""
    database: str | None = None
    """Of a task on all tables of one."""
    result: Mapping[str, Any] = field(default_factory=dict)
    """What the task has returned."""
    commit_user: str = ""
    changes: tuple[SnapshotChange, ...] = ()
    looked_at: int = 0
    """How many snapshots were asked."""
    has_expired: bool = False
    """Whether snapshots that the task named are gone."""


def changes_of_task(task: OneTask) -> TaskChanges:
    """Ask the metadata database for the task's words, and the table for its snapshots."""
    said = _said(task, TABLE_KEY)
    result = _said(task, _RESULT_KEY)
    connection_id = str(said.get("lake_conn_id") or LakeHook.default_conn_name)
    known = TaskChanges(task=task, result=result, connection_id=connection_id)
    if "table" not in said:
        database = said.get("database")
        return replace(known, database=None if database is None else str(database))
    name = str(said["table"])
    user = commit_user(task, name)
    table = lake_of_dag(connection_id, task.dag_id).table(name)
    positions = _candidates(table, result)
    found = [table.snapshot(position) for position in positions]
    mine = [each.id for each in found if each is not None and _is_of(each.commit_user, user)]
    changes = [change for number in mine if (change := table.snapshot_change(number)) is not None]
    return replace(
        known,
        table=name,
        commit_user=user,
        changes=tuple(changes),
        looked_at=sum(each is not None for each in found),
        has_expired=result.get("snapshot_id") in positions and found[-1] is None,
    )


def _is_of(found: str, user: str) -> bool:
    """A compaction adds to the name of whoever asked for it."""
    return found == user or found.startswith(f"{user}.")


def _candidates(table: Table, result: Mapping[str, Any]) -> list[Position]:
    """Positions of snapshots that may be the task's: those it named, else the newest."""
    last, before = result.get("snapshot_id"), result.get("previous_snapshot_id")
    if type(last) is not int:
        return table.positions(limit=_LOOKED_BACK)
    after = before if type(before) is int else None
    return table.positions(after=after, upto=last, limit=_LOOKED_BACK)


def _said(task: OneTask, key: str) -> Mapping[str, Any]:
    """An XCom of the task; empty if there is none."""
    from airflow.models.xcom import XComModel
    from airflow.utils.session import create_session

    with create_session() as session:
        asked = XComModel.get_many(
            key=key,
            dag_ids=task.dag_id,
            run_id=task.run_id,
            task_ids=task.task_id,
            map_indexes=task.map_index,
            limit=1,
        )
        row: Any = session.scalars(asked).first()
        value = None if row is None else row.value
    # As Airflow's own pages do: what a custom backend keeps elsewhere is not fetched.
    if isinstance(value, str):
        with suppress(ValueError):
            value = json.loads(value)
    return value if isinstance(value, Mapping) else {}
