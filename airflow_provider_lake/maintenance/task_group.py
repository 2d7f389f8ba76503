# SPDX-License-Identifier: Apache-2.0
"""The maintenance of one table as a task group, with the steps in the right order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Unpack

from airflow.sdk import TaskGroup, task

from airflow_provider_lake.arguments.declared import named_arguments
from airflow_provider_lake.arguments.task_arguments import TaskGroupArguments
from airflow_provider_lake.maintenance.policy import (
    Gate,
    PolicyError,
    check_settings,
    plain_id,
    read_steps,
)

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator

__all__ = ["LakeMaintenanceTaskGroup"]

_OPERATORS = {
    "publish": "LakePublishOperator",
    "expire_partitions": "LakeExpirePartitionsOperator",
    "compact": "LakeCompactOperator",
    "expire_snapshots": "LakeExpireSnapshotsOperator",
    "remove_orphans": "LakeRemoveOrphansOperator",
    "analyze": "LakeAnalyzeOperator",
}


_SORTING = ("sort", "zorder")
"""Strategies that sort rows and rewrite the same files as ``minor``. The gate counts these files.
"""


class LakeMaintenanceTaskGroup(TaskGroup):
    """Runs the steps of maintenance for a table: publish, expire partitions, compact, expire
    snapshots, delete orphan files, analyze; in this order.

    Only the given steps run. A step that is skipped, by the gate or because it has nothing to do,
    does not stop later steps. By default orphan files are only listed. To delete them, give the
    step ``remove_orphans`` the argument ``"dry_run": False``.

    :param table: the table, ``database.table``
    :param steps: the steps, each with the arguments of its operator: ``{"compact": {"strategy":
        "minor"}, "expire_snapshots": {"older_than": "7 d"}}``; ``True`` runs a step with its
        defaults
    :param gate: the fewest files and the most bytes for which a compaction runs. Default: one file,
        any number of bytes
    :param lake_conn_id: connection of type ``lake``. If ``lake_default`` does not exist, the
        warehouse is ``./warehouse``
    :param pool: the pool of all tasks
    :param pool_slots: the number of pool slots that each task takes
    :param retries: the number of retries of each task
    :param group_id: the id of the group. Default: from the name of the table, ``shop_orders``
    """

    def __init__(
        self,
        *,
        table: str,
        steps: Mapping[str, Mapping[str, Any] | bool],
        gate: Gate | None = None,
        lake_conn_id: str = "lake_default",
        pool: str = "default_pool",
        pool_slots: int = 1,
        retries: int = 2,
        group_id: str | None = None,
        **kwargs: Unpack[TaskGroupArguments],
    ) -> None:
        _refuse_unknown(table, kwargs)
        super().__init__(group_id=group_id or plain_id(table), **kwargs)
        wanted, of_steps = read_steps(table, steps)
        chosen = _one_gate(table, gate, of_steps)
        shared = {"lake_conn_id": lake_conn_id, "pool": pool, "pool_slots": pool_slots}
        shared |= {"retries": retries}
        check_settings(table, shared)
        shared |= {"table": table, "trigger_rule": "none_failed"}
        with self:
            before: Any = None
            for name, arguments in wanted.items():
                hook = {} if before is not None else {"pre_execute": _check_of(wanted, shared)}
                is_gated = name == "compact"
                step = _step(name, arguments, shared | ({} if is_gated else hook))
                first = _gate(step, arguments, chosen, shared | hook) if is_gated else step
                if before is not None:
                    before >> first
                before = step


def _refuse_unknown(table: str, given: Iterable[str]) -> None:
    from lakeformat.types.closest import closest

    known = {
        *named_arguments(LakeMaintenanceTaskGroup.__init__),
        *TaskGroupArguments.__annotations__,
    }
    for name in given:
        if name not in known:
            raise PolicyError(
                f"{table}: LakeMaintenanceTaskGroup has no argument {name!r}{closest(name, known)}"
            )


def _one_gate(table: str, gate: object, of_steps: Gate | None) -> Gate:
    if not isinstance(gate, Gate | None):
        raise PolicyError(f"{table}: gate must be a Gate(min_files=…, max_bytes=…), got {gate!r}")
    if gate is not None and of_steps is not None:
        raise PolicyError(
            f"{table}: give min_files and max_bytes either in gate or in the step compact, not in "
            "both"
        )
    return gate or of_steps or Gate()


def _check_of(
    steps: Mapping[str, Mapping[str, Any]], shared: Mapping[str, Any]
) -> Callable[[Any], None]:
    """Return a function that the first task calls before its work. The function fails the task if
    the format of the table lacks a step, or an argument of a step.
    """

    def check(context: Any) -> None:
        from airflow_provider_lake.maintenance.format_check import check_steps

        check_steps(shared["table"], shared["lake_conn_id"], steps)

    return check


def _step(name: str, arguments: dict[str, Any], shared: Mapping[str, Any]) -> BaseOperator:

    # A maintenance task has no outlets: no DAG waits for its commits.
    made: BaseOperator = _operator_of(name)(task_id=name, **arguments, **shared)
    return made


def _gate(
    step: BaseOperator, arguments: Mapping[str, Any], gate: Gate, shared: Mapping[str, Any]
) -> Any:
    """Return the task that runs before a compaction. It skips a compaction that would read too few
    files or too many bytes.
    """

    @task.short_circuit(
        task_id="is_compaction_due",
        ignore_downstream_trigger_rules=False,
        pool=shared["pool"],
        pool_slots=shared["pool_slots"],
        retries=shared["retries"],
        trigger_rule="none_failed",
        pre_execute=shared.get("pre_execute"),
    )
    def is_due(
        table: str, lake_conn_id: str, strategy: str, min_files: int, max_bytes: int | None
    ) -> bool:
        from airflow_provider_lake.maintenance.gate import due_compaction

        found = due_compaction(
            table,
            lake_conn_id=lake_conn_id,
            strategy=strategy,
            min_files=min_files,
            max_bytes=max_bytes,
        )
        return found is not None

    asked = is_due(
        shared["table"],
        shared["lake_conn_id"],
        "minor" if (strategy := arguments.get("strategy", "full")) in _SORTING else strategy,
        gate.min_files,
        gate.max_bytes,
    )
    asked >> step
    return asked


def _operator_of(step: str) -> Any:
    return getattr(import_module(f"airflow_provider_lake.operators.{step}"), _OPERATORS[step])
