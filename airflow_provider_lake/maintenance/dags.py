# SPDX-License-Identifier: Apache-2.0
"""Builds DAGs from a policy file; the same file always gives the same DAGs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Unpack

from airflow.sdk import DAG

from airflow_provider_lake.arguments.task_arguments import DagArguments
from airflow_provider_lake.compat import AirflowTimetableInvalid
from airflow_provider_lake.maintenance.policy import PolicyError, TablePolicy, read_policy
from airflow_provider_lake.maintenance.task_group import LakeMaintenanceTaskGroup

__all__ = ["lake_dags"]


def lake_dags(
    policy: str | Path | Mapping[str, Any], **more: Unpack[DagArguments]
) -> dict[str, DAG]:
    """Return the DAGs of a policy by DAG id, for ``globals().update()`` in a DAG file.

    Tables of one database with the same schedule share a DAG, in which each has its own task group.
    By default a DAG has at most one active run, so that no table is maintained twice at the same
    time. ``more`` are arguments of every DAG. Raises ``PolicyError`` for a wrong policy.
    """
    return {
        dag_id: _dag(dag_id, tables, more)
        for dag_id, tables in read_policy(policy).by_dag().items()
    }


def _dag(dag_id: str, tables: list[TablePolicy], more: DagArguments) -> DAG:
    given: DagArguments = {"catchup": False, "max_active_runs": 1, "tags": ["lake"], **more}
    dag = DAG(dag_id, schedule=tables[0].schedule, doc_md=_described(tables), **given)
    _check_schedule(dag, tables[0])
    with dag:
        for each in tables:
            LakeMaintenanceTaskGroup(
                table=each.table,
                steps=each.steps,
                gate=each.gate,
                lake_conn_id=each.lake_conn_id,
                pool=each.pool,
                pool_slots=each.pool_slots,
                retries=each.retries,
                add_suffix_on_collision=True,  # names may differ only in characters that no id has
            )
    return dag


def _check_schedule(dag: DAG, first: TablePolicy) -> None:
    """Raise ``PolicyError`` for a schedule that Airflow would refuse later. ``first`` is the first
    table of the DAG, which the error names.
    """
    try:
        dag.timetable.validate()
    except AirflowTimetableInvalid as reason:
        raise PolicyError(
            f"{first.table}: Airflow does not accept schedule {first.schedule!r}: write a cron "
            f"expression such as '0 3 * * *', or '@daily' ({reason})"
        ) from None


def _described(tables: list[TablePolicy]) -> str:
    lines = [f"- `{each.table}`: {', '.join(each.steps)}" for each in tables]
    return "\n".join(["Maintenance by the policy:", "", *lines])
