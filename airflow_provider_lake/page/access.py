"""Who may see a page; Airflow mounts an app of a plugin without asking anybody.

A task's snapshots are for those who may see the task and its XComs, a table for those who may
read the connection that leads to it: both are asked of the auth manager, as Airflow's own pages
ask it.
"""

from __future__ import annotations

from typing import Annotated

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.core_api.security import (
    get_user,
    requires_access_connection,
    requires_access_dag,
)
from fastapi import Depends

from airflow_provider_lake.page.team_lake import has_teams

__all__ = ["User", "lake_connections", "may_read_connection", "may_see_task"]

User = Annotated[BaseUser, Depends(get_user)]
"""Whoever asks; nobody is 401."""

may_read_connection = [Depends(requires_access_connection("GET"))]
"""For routes with ``connection_id`` in their path."""

may_see_task = [
    Depends(requires_access_dag("GET", DagAccessEntity.TASK_INSTANCE)),
    Depends(requires_access_dag("GET", DagAccessEntity.XCOM)),
]
"""For routes with ``dag_id`` in their path."""


def lake_connections(user: BaseUser) -> dict[str, str | None]:
    """Return the connections of type ``lake`` that a user may read, each with its team.

    Only those of the metadata database: Airflow can list no others. Without multi-team mode one
    that still belongs to a team is left out, since no task finds it.
    """
    from airflow.models.connection import Connection
    from airflow.utils.session import create_session
    from sqlalchemy import select

    from airflow_provider_lake.connection import CONNECTION_TYPE

    with create_session() as session:
        asked = select(Connection.conn_id, Connection.team_name).where(
            Connection.conn_type == CONNECTION_TYPE
        )
        if not has_teams():
            asked = asked.where(Connection.team_name.is_(None))
        found = {conn_id: team for conn_id, team in session.execute(asked.order_by("conn_id"))}
        allowed = get_auth_manager().get_authorized_connections(user=user, session=session)
    return {conn_id: team for conn_id, team in found.items() if conn_id in allowed}
