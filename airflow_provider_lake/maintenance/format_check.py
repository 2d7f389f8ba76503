# SPDX-License-Identifier: Apache-2.0
"""Checks the steps of a table against the table's format, which is known only when a task runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_provider_lake.compat import AirflowFailException
from airflow_provider_lake.hooks.lake import LakeHook

__all__ = ["check_steps"]


def check_steps(table: str, lake_conn_id: str, steps: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise ``AirflowFailException`` if the format of the table lacks a step, or an argument of a
    step.

    A table that does not exist is not checked: the first step reports it.
    """
    from lakeformat import NotFoundError

    try:
        found = LakeHook(lake_conn_id).get_conn().table(table)
    except NotFoundError:
        return
    lacking = [
        f"the step {step!r} ({found.instead[step]})"
        for step in steps
        if step in getattr(found, "instead", ())
    ]
    for step, arguments in steps.items():
        refused = getattr(found, "refused_arguments", {}).get(step, {})
        lacking += [
            f"the argument {name!r} of the step {step!r} ({refused[name]})"
            for name, value in arguments.items()
            if name in refused and value is not None
        ]
    if lacking:
        raise AirflowFailException(
            f"{table} is {found.kind}, whose maintenance does not have {'; '.join(lacking)}. "
            "Remove each of these from the steps of the table, in its policy or in steps= of "
            "LakeMaintenanceTaskGroup. No step was run"
        )
