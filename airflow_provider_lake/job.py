"""What every operator of a job shares: arguments become a request, its result what Airflow gets.

The result of a job is the task's ``return_value`` and always has these members
(``docs/operators.md`` lists what each job adds):

========================  ==================================================================
``job``, ``table``        what was done to what
``skipped``, ``reason``   whether nothing was to be done; one sentence that says why
``snapshot_id``           the newest snapshot the task published, None if it published none
``previous_snapshot_id``  the one before the first of them: changes after it are the task's
``replayed``              whether an earlier try of the task had published it
``seconds``               how long the job took
``report``                the library's report
========================  ==================================================================
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import fields
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from airflow.sdk.exceptions import AirflowSkipException

from airflow_provider_lake.arguments import (
    LakeArgumentError,
    check_arguments,
    is_open,
    rendered_argument,
)
from airflow_provider_lake.failures import LakeTaskKilled, failing_for_good
from airflow_provider_lake.hooks.lake import LakeHook
from airflow_provider_lake.identity import ONLY_COMMIT, commit_user, first_try_millis
from airflow_provider_lake.lineage import LakeLineageMixin
from airflow_provider_lake.links import TABLE_KEY
from airflow_provider_lake.outlet_events import announce
from spark_jobs.job_requests.common import CommitRequest, TableRequest

if TYPE_CHECKING:
    from airflow.sdk import Context

__all__ = ["Engine", "LakeJobMixin", "attribute_of", "own_keys"]

Engine: TypeAlias = Literal["auto", "python", "spark"]


# Airflow has a method and a property of these names.
_ATTRIBUTES = {"dry_run": "is_dry_run", "executor": "bucket_executor"}


_COMMON_KEYS = {field.name for field in fields(CommitRequest)}


def attribute_of(name: str) -> str:
    """The attribute of an operator that holds an argument or a key of the request."""
    return _ATTRIBUTES.get(name, name)


def own_keys(request: type[TableRequest]) -> tuple[str, ...]:
    """The keys of a request that no other job need have."""
    return tuple(field.name for field in fields(request) if field.name not in _COMMON_KEYS)


class LakeJobMixin(LakeLineageMixin):
    """The part of an operator that knows jobs and tables, and no Spark."""

    job: ClassVar[str]
    """The script in ``spark_jobs`` that does the work."""
    request: ClassVar[type[TableRequest]]
    """What that job can be asked; each key but those every job has is an argument."""
    publishes_once: ClassVar[bool] = False
    """Whether its one snapshot is all it does: where that is, nothing is left to do."""
    waits_for: ClassVar[tuple[str, ...]] = ()
    """Arguments that name what may not be there yet, so that a retry may find it."""
    moves_rows: ClassVar[bool] = False
    """Whether Spark can help; metadata is work for the worker itself."""

    if TYPE_CHECKING:
        task_id: str
        table: str
        lake_conn_id: str
        engine: Engine
        spark_conn_id: str | None
        skip_if_noop: bool
        outlets: list[Any]

    _works_here = False

    def execute(self, context: Context) -> dict[str, Any]:
        """Run the job with the identity of this task; its result is the task's."""
        with failing_for_good(may_come=self._may_come):
            self._take_rendered()
            context["ti"].xcom_push(key=TABLE_KEY, value=self._described())
            request = self._request(context)
            if self._chosen_engine() == "spark":
                result = self._run_on_spark({**request, "engine": "spark"}, context)
            else:
                result = self._run_here(request)
        return self._finish(result, context)

    def on_kill(self) -> None:
        """Interrupt a job in this process; Airflow itself would wait, then kill it."""
        if self._works_here:
            raise LakeTaskKilled(f"task {self.task_id!r} was asked to end")

    @cached_property
    def lake_hook(self) -> LakeHook:
        """The lake this task works on, by its rendered connection id."""
        return LakeHook(self.lake_conn_id)

    def _run_here(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Do the work in this process."""
        self._works_here = True
        try:
            result: dict[str, Any] = import_module(f"spark_jobs.{self.job}").run(request)
        finally:
            self._works_here = False
        return result

    @abstractmethod
    def _run_on_spark(self, request: dict[str, Any], context: Context) -> dict[str, Any]:
        """Do the work through spark-submit."""

    def _check_arguments(self) -> None:
        """Called at the end of each constructor: the DAG does not import with a wrong value."""
        wanted = self._argument_types()
        given = {name: getattr(self, attribute_of(name)) for name in wanted}
        check_arguments(self.task_id, wanted, given)
        if not is_open(self.table) and "." not in self.table:
            raise LakeArgumentError(
                f"task {self.task_id!r}: argument 'table' wants database.table, got {self.table!r}"
            )
        if not is_open(list(given.values())):
            self._check_together()

    def _check_together(self) -> None:
        """Refuse arguments that are right one by one, and mean nothing together."""
        from lakeformat import InvalidRequestError

        try:
            self.request(warehouse="not asked here", table=self.table, **self._given())
        except InvalidRequestError as reason:
            raise LakeArgumentError(f"task {self.task_id!r}: {reason}") from None

    def _given(self) -> dict[str, Any]:
        """The arguments that are keys of the request; None means the default."""
        values = {key: getattr(self, attribute_of(key), None) for key in own_keys(self.request)}
        return {key: value for key, value in values.items() if value is not None}

    @abstractmethod
    def _argument_types(self) -> Mapping[str, Any]:
        """The types of the operator's arguments, by name."""

    def _take_rendered(self) -> None:
        """From here on each argument has its type, or the task has failed."""
        for name, hint in self._argument_types().items():
            value = getattr(self, attribute_of(name))
            setattr(self, attribute_of(name), rendered_argument(self.task_id, name, hint, value))

    def _request(self, context: Context) -> dict[str, Any]:
        """What the job is asked to do; the only place where secrets of the connection are."""
        request = {
            "warehouse": self.lake_hook.warehouse,
            "catalog_options": self.lake_hook.catalog_options,
            "table": self.table,
        }
        request |= self._given()
        commits = issubclass(self.request, CommitRequest)
        return request | self._identity(context) if commits else request

    def _identity(self, context: Context) -> dict[str, Any]:
        began = first_try_millis(context["dag_run"])
        since = {} if began is None else {"commit_first_try_millis": began}
        user = commit_user(context["ti"], self.table)
        return {"commit_user": user, "commit_identifier": ONLY_COMMIT, **since}

    def _chosen_engine(self) -> str:
        """Who does the work: the argument says it, then the connection, then the kind of work."""
        if self.engine != "auto":
            return self.engine
        if self.spark_conn_id is not None:
            return "spark"
        lake = self.lake_hook.lake
        if not self.moves_rows:
            return "python"
        if lake.engine != "auto":
            return lake.engine
        return "python" if lake.spark_conn_id is None else "spark"

    def _described(self) -> dict[str, Any]:
        """What links are made of."""
        return {"table": self.table}

    def _may_come(self) -> bool:
        """Whether what was not found may be found by a retry."""
        from lakeformat import NotFoundError

        if all(getattr(self, name) is None for name in self.waits_for):
            return False
        try:
            self.lake_hook.table(self.table)
        except NotFoundError:
            return bool(getattr(self, "create", False))
        return True

    def _finish(self, result: dict[str, Any], context: Context) -> dict[str, Any]:
        """Tell whoever waits for the table; a task with nothing to do may be skipped instead."""
        if result["skipped"] and self.skip_if_noop:
            raise AirflowSkipException(result["reason"])
        self.published = result
        announce(context, self.outlets, result, lake_conn_id=self.lake_conn_id)
        return result
