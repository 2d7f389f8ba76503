# SPDX-License-Identifier: Apache-2.0
"""Checks who may open the pages. Airflow itself mounts a plugin's app without any check.

To see the snapshots of a task, a user needs the right to see the task and its XComs; to see a
table, the right to read its connection. The auth manager checks both, as on Airflow's own pages.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Annotated

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.auth.managers.models.resource_details import (
    ConnectionDetails,
    DagAccessEntity,
    DagDetails,
)
from airflow.api_fastapi.core_api.security import (
    get_user,
    requires_access_connection,
    requires_access_dag,
)
from fastapi import Depends

from airflow_provider_lake.compat import has_teams, readable_connections
from airflow_provider_lake.hooks.connection import CONNECTION_TYPE
from airflow_provider_lake.page.airflow_records import OneTask, stored_connections

__all__ = ["User", "lake_connections", "may_read_connection", "may_see_task", "visible_tasks"]

_VARIABLE = "AIRFLOW_CONN_"

User = Annotated[BaseUser, Depends(get_user)]
"""The signed-in user; a request without a user gets status 401."""

may_read_connection = [Depends(requires_access_connection("GET"))]
"""Requires the right to read the connection, for routes with ``connection_id`` in their path."""

_OF_TASK = (DagAccessEntity.TASK_INSTANCE, DagAccessEntity.XCOM)

may_see_task = [Depends(requires_access_dag("GET", entity)) for entity in _OF_TASK]
"""Requires the right to see the task and its XComs, for routes with ``dag_id`` in their path."""


def visible_tasks(user: BaseUser, tasks: Mapping[str, OneTask]) -> dict[str, OneTask]:
    """Return those of ``tasks`` whose page the user may open, by the same keys."""
    from airflow.models.dag import DagModel

    def may_see(dag_id: str) -> bool:
        of_team = {"team_name": DagModel.get_team_name(dag_id)} if has_teams() else {}
        details = DagDetails(id=dag_id, **of_team)
        return all(
            get_auth_manager().is_authorized_dag(
                method="GET", access_entity=entity, details=details, user=user
            )
            for entity in _OF_TASK
        )

    allowed = {dag_id for dag_id in {task.dag_id for task in tasks.values()} if may_see(dag_id)}
    return {key: task for key, task in tasks.items() if task.dag_id in allowed}


def lake_connections(user: BaseUser) -> dict[str, str | None]:
    """Return the ids of the ``lake`` connections that a user may read, each with its team or None.

    These connections are in the metadata database and, without multi-team mode, in this process's
    environment. Connections in a secrets backend are missing, because a backend cannot list them.
    """
    found = stored_connections()
    allowed = readable_connections(get_auth_manager(), user, found)
    readable = {conn_id: team for conn_id, team in found.items() if conn_id in allowed}
    if has_teams():
        return readable
    return dict(sorted({**readable, **dict.fromkeys(_in_environment(user))}.items()))


def _in_environment(user: BaseUser) -> Iterator[str]:
    """Yield the id of each ``lake`` connection that is in an environment variable and that the user
    may read.
    """
    may_read = get_auth_manager().is_authorized_connection
    for name, text in os.environ.items():
        conn_id = name.removeprefix(_VARIABLE).lower()
        if not name.startswith(_VARIABLE) or _type_of(text) != CONNECTION_TYPE:
            continue
        if may_read(method="GET", user=user, details=ConnectionDetails(conn_id=conn_id)):
            yield conn_id


def _type_of(text: str) -> str | None:
    """Return the type of a connection given as JSON or as a URI; None for JSON that is invalid or
    has no type.
    """
    if not text.lstrip().startswith("{"):
        return text.partition("://")[0]
    with suppress(ValueError, AttributeError):
        found: str | None = json.loads(text).get("conn_type")
        return found
    return None
