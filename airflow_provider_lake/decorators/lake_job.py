# SPDX-License-Identifier: Apache-2.0
"""``@task.lake_job``: runs a function on an open table, in the worker."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, Unpack

from airflow_provider_lake.arguments.declared import LakeArgumentError
from airflow_provider_lake.arguments.task_arguments import FunctionArguments, FunctionTaskArguments
from airflow_provider_lake.decorators.function import (
    LakeDecorator,
    LakeFunctionOperator,
    lake_decorator,
)
from spark_jobs.job_requests.common import JobRequest, TableRequest

if TYPE_CHECKING:
    from airflow.sdk import Context

__all__ = ["LakeJobDecoratedOperator", "lake_job_task"]


class LakeJobDecoratedOperator(LakeFunctionOperator):
    """Calls a function with the open table as ``table`` and a Spark session as ``spark``, if the
    function has these arguments.

    The return value of the function is pushed to XCom, as for any ``@task``. Assets that the
    function returns become outlets, and ``Metadata`` that it yields is added to the events of
    outlets. Airflow cannot know which tables the function has read or written: name their assets
    as ``inlets`` and ``outlets``.
    """

    job = "lake_job"
    request = TableRequest
    custom_operator_name = "@task.lake_job"

    def __init__(self, **kwargs: Unpack[FunctionTaskArguments]) -> None:
        super().__init__(**kwargs)
        self._check_arguments()

    @classmethod
    def refuse_function(cls, function: Callable[..., Any], given: Collection[str]) -> None:
        """Raise the errors of the base class, and ``LakeArgumentError`` for a function that has
        neither an argument ``table`` nor ``spark``.
        """
        super().refuse_function(function, given)
        parameters = inspect.signature(function).parameters
        takes_any = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
        if not takes_any and parameters.keys().isdisjoint({"table", "spark"}):
            raise LakeArgumentError(
                f"@task.lake_job: function {function.__name__!r} has neither an argument 'table' "
                "nor 'spark': add one, or write @task"
            )

    def _run(self, request: JobRequest, context: Context) -> dict[str, Any]:
        """Call the function; return its return value, and its duration in seconds."""
        from airflow.sdk.execution_time.callback_runner import create_executable_runner
        from airflow.sdk.execution_time.context import context_get_outlet_events

        began = time.monotonic()
        runner = create_executable_runner(
            self.python_callable, context_get_outlet_events(context), logger=self.log
        )
        with self._working_here():
            table = self._opened()
            with self._spark(context) as spark:
                named = self._call_with(context, table=table, **spark)
                returned = runner.run(*self.op_args, **named)
        return {"returned": returned, "seconds": time.monotonic() - began}

    def _finish(self, result: dict[str, Any], context: Context) -> Any:
        from airflow_provider_lake.jobs.metrics import count_outcome

        count_outcome({"job": self.job, **self._subject(), "seconds": result["seconds"]})
        return self._handle_output(result["returned"])


def lake_job_task(
    python_callable: None = None,
    multiple_outputs: bool | None = None,
    **kwargs: Unpack[FunctionArguments],
) -> LakeDecorator:
    """Turn a function into a task; the function gets the open table as its argument ``table``.

    :param python_callable: the function, if the decorator is written without parentheses; type
        checkers know only the form with parentheses
    :param multiple_outputs: push each member of a returned dict as an XCom of its own. Default:
        True if the function's return annotation is a dict
    """
    return lake_decorator(
        LakeJobDecoratedOperator, python_callable, multiple_outputs=multiple_outputs, given=kwargs
    )
