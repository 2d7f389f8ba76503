"""What all sensors of a table do alike: ask once in the worker, then wait in the triggerer."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseSensorOperator, PokeReturnValue
from airflow.sdk.configuration import conf
from airflow.sdk.exceptions import AirflowFailException

from airflow_provider_lake.arguments import (
    CheckedArguments,
    LakeArgumentError,
    argument_names,
    argument_types,
)
from airflow_provider_lake.conditions import Condition, write_condition
from airflow_provider_lake.construction import RefusingConstruction
from airflow_provider_lake.failures import failing_for_good
from airflow_provider_lake.hooks.lake import LakeHook
from airflow_provider_lake.triggers.table import MET, LakeConditionTrigger, look

if TYPE_CHECKING:
    from airflow.sdk import Context

__all__ = ["LakeTableSensor"]


class LakeTableSensor(CheckedArguments, BaseSensorOperator, metaclass=RefusingConstruction):
    """Waits until a table meets a condition, which a subclass names; returns what was found.

    A table that does not exist, or a storage that does not answer, is waited for. The constructor
    of a subclass declares the types of its arguments, and ends with ``_check_arguments``.
    """

    template_fields: Sequence[str] = ("table", "lake_conn_id", "deferrable")

    def __init__(
        self,
        *,
        table: str,
        lake_conn_id: str = LakeHook.default_conn_name,
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.table = table
        self.lake_conn_id = lake_conn_id
        self.deferrable = deferrable

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Every argument may be a template."""
        super().__init_subclass__(**kwargs)
        if "__init__" in vars(cls):
            own = argument_names(vars(cls)["__init__"])
            cls.template_fields = (*LakeTableSensor.template_fields, *own)

    @abstractmethod
    def condition(self) -> Condition:
        """What is waited for; a ``ValueError`` says which argument makes no sense."""

    def poke(self, context: Context) -> PokeReturnValue:
        """Ask the table once."""
        found = self._found()
        return PokeReturnValue(found is not None, found)

    def execute(self, context: Context) -> Any:
        """Return at once if the condition is met; else wait, in the triggerer if deferrable."""
        self._take_rendered()
        if not self.deferrable:
            return super().execute(context)
        if (found := self._found()) is not None:
            return found
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
        """What the triggerer has found, or why nobody can find it."""
        if event["status"] != MET:
            raise AirflowFailException(event["reason"])
        found: dict[str, Any] = event["found"]
        return found

    def _found(self) -> dict[str, Any] | None:
        with failing_for_good():
            return look(LakeHook(self.lake_conn_id), self.table, self.condition())

    @classmethod
    def _argument_types(cls) -> Mapping[str, Any]:
        return argument_types(cls, LakeTableSensor)

    def _check_together(self) -> None:
        if self.deferrable and self.poke_interval <= 0:
            raise LakeArgumentError(
                f"task {self.task_id!r}: argument 'poke_interval' is a number of seconds above 0, "
                "as the triggerer would ask without a pause"
            )
        try:
            self.condition()
        except ValueError as reason:  # a template that renders to nonsense does so again
            raise LakeArgumentError(f"task {self.task_id!r}: {reason}") from None
