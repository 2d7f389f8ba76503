# SPDX-License-Identifier: Apache-2.0
"""Opens lakes for the pages by connection id, as a task of the same team would.

The process of a task belongs to the team of the task. The API server belongs to no team, and finds
no connection of a team by its id alone. So the pages pass the team.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk.log import mask_secret

from airflow_provider_lake.compat import AirflowNotFoundException, has_teams
from airflow_provider_lake.hooks.absent_connection import refuse_unreadable
from airflow_provider_lake.hooks.lake import LakeHook

if TYPE_CHECKING:
    from airflow.sdk import Connection

__all__ = ["lake_of_connection", "lake_of_dag"]


def lake_of_connection(connection_id: str) -> LakeHook:
    """Return the lake of a connection, which is looked up with the team that owns the connection.

    The team is read from the metadata database. ``access.py`` has checked the right to read the
    connection for the same team.
    """
    from airflow.models.connection import Connection

    team = Connection.get_team_name(connection_id) if has_teams() else None
    return _TeamLake(connection_id, team)


def lake_of_dag(connection_id: str, dag_id: str) -> LakeHook:
    """Return the lake that the tasks of a DAG find by a connection id."""
    from airflow.models.dag import DagModel

    return _TeamLake(connection_id, DagModel.get_team_name(dag_id) if has_teams() else None)


class _TeamLake(LakeHook):
    """The hook of a connection that belongs to ``team``. If ``team`` is None, the connection
    belongs to all teams.
    """

    def __init__(self, lake_conn_id: str, team: str | None) -> None:
        super().__init__(lake_conn_id)
        self._team = team

    def _found(self) -> Connection:
        if self._team is None:
            return super()._found()
        from airflow.models.connection import Connection

        try:
            found = Connection.get_connection_from_secrets(self.lake_conn_id, self._team)
        except AirflowNotFoundException:
            refuse_unreadable(self.lake_conn_id, self._team)
            raise
        for secret in filter(None, (found.password, found.extra)):
            mask_secret(secret)
        return found
