"""The snapshots that a task published, read from its table.

The task's XComs name the table and the range of snapshots. A snapshot is shown only if it has the
commit user of this task. So a changed XCom cannot make the page show commits of other tasks.
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
    from lakeformat import Position, SnapshotChange, Table

__all__ = ["OneTask", "TaskChanges", "changes_of_task"]

_LOOKED_BACK = 100
"""The most snapshots that are checked for the task's commit user."""
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
    """The snapshots of a task, and their changes."""

    task: TaskIdentity
    connection_id: str = LakeHook.default_conn_name
    table: str | None = None
    """None if the task has not named its table."""
    database: str | None = None
    """The database, if the task works on all tables of a database."""
    result: Mapping[str, Any] = field(default_factory=dict)
    """The return value of the task."""
    commit_user: str = ""
    changes: tuple[SnapshotChange, ...] = ()
    looked_at: int = 0
    """The number of snapshots that were checked."""
    has_expired: bool = False
    """True if snapshots that the task named have expired."""


def changes_of_task(task: OneTask) -> TaskChanges:
    """Read the task's XComs from the metadata database, and its snapshots from the table."""
    subject = _xcom_of(task, TABLE_KEY)
    result = _xcom_of(task, _RESULT_KEY)
    connection_id = str(subject.get("lake_conn_id") or LakeHook.default_conn_name)
    known = TaskChanges(task=task, result=result, connection_id=connection_id)
    if "table" not in subject:
        database = subject.get("database")
        return replace(known, database=None if database is None else str(database))
    name = str(subject["table"])
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
    """Return True for a commit user of this task, also with the suffix that a compaction adds."""
    return found == user or found.startswith(f"{user}.")


def _candidates(table: Table, result: Mapping[str, Any]) -> list[Position]:
    """Yield numbers of snapshots that the task may have published: the range that it named, else
    the newest.
    """
    last, before = result.get("snapshot_id"), result.get("previous_snapshot_id")
    if type(last) is not int:
        return table.positions(limit=_LOOKED_BACK)
    after = before if type(before) is int else None
    return table.positions(after=after, upto=last, limit=_LOOKED_BACK)


def _xcom_of(task: OneTask, key: str) -> Mapping[str, Any]:
    """Return an XCom of the task; empty if there is none."""
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
    # As on Airflow's own pages, values that a custom backend stores elsewhere are not fetched.
    if isinstance(value, str):
        with suppress(ValueError):
            value = json.loads(value)
    return value if isinstance(value, Mapping) else {}
