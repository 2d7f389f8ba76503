# SPDX-License-Identifier: Apache-2.0
"""Sends the health of a table through any notifier of Airflow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from importlib import import_module
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseNotifier

from airflow_provider_lake.arguments.declared import LakeArgumentError
from airflow_provider_lake.compat import in_thread
from airflow_provider_lake.notifications.sentence import (
    occasion_of,
    table_health,
    unknown_health,
)

if TYPE_CHECKING:
    from airflow.sdk import Context

__all__ = ["LakeHealthNotifier"]

_VARIABLE = "lake_health"
_NO_TABLE = "the health is unknown, because no table is known: pass 'table' to LakeHealthNotifier"


class LakeHealthNotifier(BaseNotifier):
    """Reads the health of a table, and sends it through another notifier.

    Templates of the other notifier may use ``{{ lake_health.sentence }}``. This sentence names the
    occasion (the task, the DAG run or the missed deadline) and the table, and has the verdict, the
    score, and reasons with advice. ``lake_health`` also has the members ``occasion``, ``table``,
    ``verdict``, ``score`` and ``reasons``.

    If the health cannot be read, the notification is still sent: the sentence has the reason,
    ``verdict`` is ``unknown``, ``score`` is None, and ``reasons`` is empty.

    :param notifier: the other notifier, such as ``SmtpNotifier(to=..., subject="{{
        lake_health.sentence }}")``. For a deadline alert: the path of the class, because Airflow
        stores the arguments of a deadline alert as JSON
    :param notifier_args: if ``notifier`` is the path of a class: the arguments of that class
    :param table: the table, ``database.table``. Default: the table of the task whose callback this
        is
    :param lake_conn_id: connection of type ``lake``. Default: that of the task, else
        ``lake_default``
    """

    template_fields: Sequence[str] = ("table", "lake_conn_id")

    def __init__(
        self,
        *,
        notifier: BaseNotifier | str,
        notifier_args: Mapping[str, Any] | None = None,
        table: str | None = None,
        lake_conn_id: str | None = None,
        context: Context | None = None,
    ) -> None:
        super().__init__(context)
        _refuse_no_notifier(notifier, notifier_args)
        self.notifier = notifier
        self.notifier_args = notifier_args
        self.table = table
        self.lake_conn_id = lake_conn_id

    def notify(self, context: Context) -> None:
        """Read the health and send it. Callbacks of tasks and DAGs call this method."""
        self._behind()(self._with_health(context))

    async def async_notify(self, context: Context) -> None:
        """Read the health and send it. Deadline alerts in the triggerer call this method."""
        context = await in_thread(self._with_health, context)
        behind = self._behind()
        if type(behind).async_notify is BaseNotifier.async_notify:
            await in_thread(behind, context)
        else:
            behind.context = context
            await behind

    def _with_health(self, context: Context) -> Context:
        task = context.get("task")
        table = self.table or getattr(task, "table", None)
        lake_conn_id = self.lake_conn_id or getattr(task, "lake_conn_id", None)
        occasion = occasion_of(context)
        if isinstance(table, str):
            health = table_health(table, lake_conn_id)
        else:
            health = unknown_health(_NO_TABLE)
        found = {"table": table, **health, "occasion": occasion}
        found["sentence"] = f"{occasion}: {health['finding']}."
        self.log.info("%s", found["sentence"])
        known: Any = context
        return known | {_VARIABLE: found}  # type: ignore[no-any-return]

    def _behind(self) -> BaseNotifier:
        """Return the notifier that sends the message: a copy of ``notifier`` or, if ``notifier`` is
        the path of a class, a new instance. Rendering changes the templates only in the copy.
        """
        if isinstance(self.notifier, BaseNotifier):
            return copy(self.notifier)
        module, _, name = self.notifier.rpartition(".")
        made: BaseNotifier = getattr(import_module(module), name)(**(self.notifier_args or {}))
        return made


def _refuse_no_notifier(notifier: object, arguments: Mapping[str, Any] | None) -> None:
    """Raise ``LakeArgumentError`` for a value that is neither a notifier nor the path of a class,
    and for ``notifier_args`` without a path.
    """
    if isinstance(notifier, BaseNotifier):
        if arguments is not None:
            raise LakeArgumentError(
                "LakeHealthNotifier: a notifier object has its arguments already: leave out "
                "'notifier_args', or give the path of a class as 'notifier'"
            )
        return
    if not isinstance(notifier, str) or "." not in notifier:
        raise LakeArgumentError(
            "LakeHealthNotifier: argument 'notifier' must be a notifier such as "
            f"SmtpNotifier(to=...), or the path of its class with 'notifier_args', got {notifier!r}"
        )
