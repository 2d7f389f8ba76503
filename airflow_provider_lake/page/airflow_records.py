# SPDX-License-Identifier: Apache-2.0
"""Airflow's records of tasks, read from its metadata database; each query has a limit."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from airflow_provider_lake.assets.uri import SCHEME
from airflow_provider_lake.identity import commit_user, possible_names, without_suffix

__all__ = ["OneTask", "events_of", "tasks_of_users"]

_MOST_EVENTS = 20
_MOST_TASKS = 1000
"""The newest task instances that are compared with the commit users of a page."""


@dataclass(frozen=True, slots=True)
class OneTask:
    """One instance of a task."""

    dag_id: str
    run_id: str
    task_id: str
    map_index: int


def events_of(task: OneTask) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the asset events that a task has sent for tables: the URI and the payload of each.

    Only the task itself can send them in its name, unlike its XComs, which people can change.
    """
    from airflow.models.asset import AssetEvent, AssetModel
    from airflow.utils.session import create_session
    from sqlalchemy import select

    asked = (
        select(AssetModel.uri, AssetEvent.extra)
        .join(AssetModel, AssetModel.id == AssetEvent.asset_id)
        .where(
            AssetModel.uri.startswith(f"{SCHEME}://"),
            AssetEvent.source_dag_id == task.dag_id,
            AssetEvent.source_run_id == task.run_id,
            AssetEvent.source_task_id == task.task_id,
            AssetEvent.source_map_index == task.map_index,
        )
        .order_by(AssetEvent.id.desc())
        .limit(_MOST_EVENTS)
    )
    with create_session() as session:
        found = session.execute(asked).all()
    return [(uri, extra) for uri, extra in found if isinstance(extra, Mapping)]


def tasks_of_users(users: Collection[str], table: str) -> dict[str, OneTask]:
    """Return the task instance of each commit user of a table, as far as Airflow still has it."""
    from airflow.models.taskinstance import TaskInstance as Row
    from airflow.utils.session import create_session
    from sqlalchemy import and_, or_, select

    names = {each for user in users for each in possible_names(user)}
    if not names:
        return {}
    either = (and_(Row.dag_id == dag_id, Row.task_id == task_id) for dag_id, task_id in names)
    asked = (
        select(Row.dag_id, Row.run_id, Row.task_id, Row.map_index)
        .where(or_(*either))
        .order_by(Row.start_date.desc())
        .limit(_MOST_TASKS)
    )
    with create_session() as session:
        rows = session.execute(asked).all()
    subjects = (table, table.partition(".")[0])  # a task on a database has it in its name
    tasks = [OneTask(*row) for row in rows]
    by_user = {commit_user(task, subject): task for task in tasks for subject in subjects}
    found = {user: by_user.get(without_suffix(user)) for user in users}
    return {user: task for user, task in found.items() if task is not None}
