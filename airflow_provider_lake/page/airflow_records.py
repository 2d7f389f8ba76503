# SPDX-License-Identifier: Apache-2.0
"""Airflow's records of tasks and connections, read from its metadata database.

The pages run in the API server and read that database as Airflow's own pages do. With Airflow's
REST API, the server would send requests to itself.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow.utils.session import NEW_SESSION, provide_session

from airflow_provider_lake.assets.uri import SCHEME
from airflow_provider_lake.compat import has_teams, team_column
from airflow_provider_lake.hooks.connection import CONNECTION_TYPE
from airflow_provider_lake.jobs.identity import commit_user, possible_names, without_suffix

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

__all__ = ["OneTask", "events_of", "stored_connections", "tasks_of_users", "xcom_of"]

_MOST_EVENTS = 20
_MOST_TASKS = 1000
"""To find the tasks that committed the snapshots on a page, at most this many task instances are
searched, the newest first.
"""


@dataclass(frozen=True, slots=True)
class OneTask:
    """A task instance."""

    dag_id: str
    run_id: str
    task_id: str
    map_index: int


@provide_session
def stored_connections(*, session: Session = NEW_SESSION) -> dict[str, str | None]:
    """Return the ids of all ``lake`` connections in the metadata database, each with its team or
    None.

    Without multi-team mode, a connection that still has a team is left out, because no task can use
    it.
    """
    from airflow.models.connection import Connection
    from sqlalchemy import select

    team = team_column(Connection)
    asked = select(Connection.conn_id, team).where(Connection.conn_type == CONNECTION_TYPE)
    if not has_teams():
        asked = asked.where(team.is_(None))
    return {conn_id: team for conn_id, team in session.execute(asked.order_by("conn_id"))}


@provide_session
def xcom_of(task: OneTask, key: str, *, session: Session = NEW_SESSION) -> Mapping[str, Any]:
    """Return an XCom of the task if its value is a mapping; else an empty mapping."""
    from airflow.models.xcom import XComModel

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


@provide_session
def events_of(
    task: OneTask, *, session: Session = NEW_SESSION
) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the newest asset events that a task has sent for lake tables: the URI and the payload
    of each.

    Users can change the XComs of a task, but only the task can send events in its name.
    """
    from airflow.models.asset import AssetEvent, AssetModel
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
    found = session.execute(asked).all()
    return [(uri, extra) for uri, extra in found if isinstance(extra, Mapping)]


@provide_session
def tasks_of_users(
    users: Collection[str], table: str, *, session: Session = NEW_SESSION
) -> dict[str, OneTask]:
    """Return the task instance of each commit user in ``users``. A user is left out if Airflow no
    longer has the task instance. ``table`` is the table in which the users have committed.

    Only the newest ``_MOST_TASKS`` instances are searched.
    """
    from airflow.models.taskinstance import TaskInstance as Row
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
    rows = session.execute(asked).all()
    subjects = (table, table.rpartition(".")[0])  # a task on a database has it in its name
    tasks = [OneTask(*row) for row in rows]
    by_user = {commit_user(task, subject): task for task in tasks for subject in subjects}
    found = {user: by_user.get(without_suffix(user)) for user in users}
    return {user: task for user, task in found.items() if task is not None}
