# SPDX-License-Identifier: Apache-2.0
"""The base of all table sensors, which wait in the worker or in the triggerer.

This module imports triggers when a task runs, not when a DAG is parsed.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Unpack

from airflow.sdk import BaseSensorOperator, PokeReturnValue

from airflow_provider_lake.arguments.checked_arguments import CheckedArguments
from airflow_provider_lake.arguments.construction import RefusingConstruction
from airflow_provider_lake.arguments.declared import (
    LakeArgumentError,
    argument_names,
    argument_types,
)
from airflow_provider_lake.arguments.task_arguments import WaitArguments
from airflow_provider_lake.compat import AirflowFailException, AirflowSkipException, conf
from airflow_provider_lake.hooks.lake import LakeHook
from airflow_provider_lake.jobs.failures import failing_for_good
from airflow_provider_lake.sensors.conditions import Condition, write_condition

if TYPE_CHECKING:
    from airflow.sdk import Context

__all__ = ["LakeTableSensor"]


class LakeTableSensor(CheckedArguments, BaseSensorOperator, metaclass=RefusingConstruction):
    """Waits until a table meets the condition of a subclass; returns the findings as a dict.

    The sensor also waits while the table does not exist yet, and while the storage does not answer.

    :param table: the table, ``database.table``
    :param lake_conn_id: connection of type ``lake``. If ``lake_default`` does not exist, the
        warehouse is ``./warehouse``
    :param deferrable: wait in the triggerer, without a worker slot. Default: Airflow's setting
        ``[operators] default_deferrable``
    """

    template_fields: Sequence[str] = ("table", "lake_conn_id", "deferrable")

    def __init__(
        self,
        *,
        table: str,
        lake_conn_id: str = LakeHook.default_conn_name,
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        **kwargs: Unpack[WaitArguments],
    ) -> None:
        super().__init__(**kwargs)
        self.table = table
        self.lake_conn_id = lake_conn_id
        self.deferrable = deferrable

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__init__" in vars(cls):
            own = argument_names(vars(cls)["__init__"])
            cls.template_fields = (*LakeTableSensor.template_fields, *own)

    @abstractmethod
    def condition(self) -> Condition:
        """Return the condition; raise ``ValueError`` for a wrong argument."""

    def poke(self, context: Context) -> PokeReturnValue:
        """Check the table once. The sensor ends if the table meets the condition, and returns the
        findings.
        """
        found = self._found()
        return PokeReturnValue(found is not None, found)

    def execute(self, context: Context) -> Any:
        """Return the findings if the table meets the condition; else wait, in the triggerer if
        ``deferrable``.
        """
        self._take_rendered()
        if not self.deferrable:
            return super().execute(context)
        if (found := self._first_found()) is not None:
            return found
        from airflow_provider_lake.triggers.table import LakeConditionTrigger

        trigger = LakeConditionTrigger(
            table=self.table,
            condition=write_condition(self.condition()),
            lake_conn_id=self.lake_conn_id,
            poll_interval=self.poke_interval,
        )
        return self.defer(
            trigger=trigger,
            method_name="execute_complete",
            timeout=timedelta(seconds=self.timeout),
        )

    def execute_complete(self, context: Context, event: dict[str, Any]) -> dict[str, Any]:
        """Return the findings of the trigger. If the trigger reports an error instead, raise it as
        ``AirflowFailException``, so that the task is not retried.
        """
        from airflow_provider_lake.triggers.table import MET

        if event["status"] != MET:
            raise AirflowFailException(event["reason"])
        found: dict[str, Any] = event["found"]
        return found

    def _first_found(self) -> dict[str, Any] | None:
        """Check the table before a deferral; return the findings, or None.

        If the check raises ``AirflowFailException`` and ``soft_fail`` or ``never_fail`` is set,
        skip the task. Airflow itself does not do so before a deferral.
        """
        try:
            return self._found()
        except AirflowFailException as reason:
            if self.soft_fail or self.never_fail:
                raise AirflowSkipException(f"skipped instead of failed: {reason}") from reason
            raise

    def _found(self) -> dict[str, Any] | None:
        from airflow_provider_lake.triggers.table import look

        with failing_for_good():
            return look(LakeHook(self.lake_conn_id), self.table, self.condition())

    @classmethod
    def _argument_types(cls) -> Mapping[str, Any]:
        return argument_types(cls, LakeTableSensor)

    def _check_together(self) -> None:
        if self.deferrable and self.poke_interval <= 0:
            raise LakeArgumentError(
                f"task {self.task_id!r}: argument 'poke_interval' must be a number of seconds "
                f"above 0, got {self.poke_interval:g}: without a pause the triggerer would check "
                "the table all the time"
            )
        try:
            self.condition()
        except (
            ValueError
        ) as reason:  # a template that renders to a wrong value does so in a retry, too
            raise LakeArgumentError(f"task {self.task_id!r}: {reason}") from None
