"""What all sensors of a table do alike: ask once in the worker, then wait in the triggerer."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseSensorOperator, PokeReturnValue
from airflow.sdk.configuration import conf
from airflow.sdk.exceptions import AirflowFailException

from airflow_provider_lake.conditions import Condition, write_condition
from airflow_provider_lake.failures import failing_for_good
from airflow_provider_lake.hooks.lake import LakeHook
from airflow_provider_lake.triggers.table import MET, LakeConditionTrigger, look

if TYPE_CHECKING:
    from airflow.sdk import Context

__all__ = ["LakeTableSensor"]


class LakeTableSensor(BaseSensorOperator):
    """Waits until a table meets a condition, which a subclass names; returns what was found.

    A table that does not exist, or a storage that does not answer, is waited for.
    """

    template_fields: Sequence[str] = ("table", "lake_conn_id")

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

    @abstractmethod
    def condition(self) -> Condition:
        """What is waited for; a ``ValueError`` says which argument makes no sense."""

    def poke(self, context: Context) -> PokeReturnValue:
        """Ask the table once."""
        found = self._found()
        return PokeReturnValue(found is not None, found)

    def execute(self, context: Context) -> Any:
        """Return at once if the condition is met; else wait, in the triggerer if deferrable."""
        if not self.deferrable:
            return super().execute(context)
        if (found := self._found()) is not None:
            return found
        trigger = LakeConditionTrigger(
            table=self.table,
            condition=write_condition(self._checked()),
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
        condition = self._checked()
        with failing_for_good():
            return look(LakeHook(self.lake_conn_id).get_conn(), self.table, condition)

    def _checked(self) -> Condition:
        try:
            return self.condition()
        except ValueError as reason:  # a template that renders to nonsense does so again
            raise AirflowFailException(f"{self.task_id}: {reason}") from reason
