"""Access to the pages; Airflow mounts a plugin's app without any check.

To see the snapshots of a task, a user needs the right to see the task and its XComs; to see a
table, the right to read its connection. The auth manager checks both, as on Airflow's own pages.
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
"""The signed-in user; a request without a user is answered with 401."""

may_read_connection = [Depends(requires_access_connection("GET"))]
"""For routes with ``connection_id`` in their path."""

may_see_task = [
    Depends(requires_access_dag("GET", DagAccessEntity.TASK_INSTANCE)),
    Depends(requires_access_dag("GET", DagAccessEntity.XCOM)),
]
"""For routes with ``dag_id`` in their path."""


def lake_connections(user: BaseUser) -> dict[str, str | None]:
    """Return the connections of type ``lake`` that a user may read, each with its team.

    Airflow can list only connections of the metadata database. Without multi-team mode, a
    connection that still belongs to a team is left out, because no task can use it.
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
