# SPDX-License-Identifier: Apache-2.0
"""The base of all job operators: turns arguments into a request, and returns the job's result.

The result of a job is the task's ``return_value`` and always has these members
(``docs/operators.md`` lists what each job adds):

========================  ==================================================================
``job``, ``table``        the job and its table; a job on databases may have ``database`` instead
``skipped``, ``reason``   True if there was nothing to do; one sentence with the reason
``snapshot_id``           the newest snapshot that the task published; None if there is none
``previous_snapshot_id``  the snapshot before the first one that the task published; if the task
                          published none, the newest snapshot
``replayed``              True if an earlier attempt of the task had published the snapshots
``seconds``               the duration of the job
``report``                the library's report
========================  ==================================================================
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, get_args

from airflow_provider_lake.arguments.checked_arguments import CheckedArguments
from airflow_provider_lake.arguments.declared import LakeArgumentError
from airflow_provider_lake.arguments.open_values import is_open
from airflow_provider_lake.arguments.task_arguments import OnReport
from airflow_provider_lake.compat import AirflowSkipException
from airflow_provider_lake.hooks.lake import LakeHook
from airflow_provider_lake.jobs.failures import LakeTaskKilled, failing_for_good
from airflow_provider_lake.jobs.identity import commit_user
from airflow_provider_lake.jobs.job_output import progress_as_sentences
from airflow_provider_lake.links import TABLE_KEY
from spark_jobs.job_requests.common import CommitKeys, CommitRequest, Engine, JobRequest
from spark_jobs.job_requests.request import check_values, read_request

if TYPE_CHECKING:
    from airflow.sdk import Context

    from lakeformat import CommitId
    from spark_jobs.runtime.job import JobResult

__all__ = ["LakeJobMixin", "attribute_of", "own_keys"]

# Airflow has a method and a property with these names.
_ATTRIBUTES = {"dry_run": "is_dry_run", "executor": "bucket_executor"}

_LATER = "known when the task runs"

_COMMON_KEYS = {field.name for field in fields(CommitRequest)}


def attribute_of(name: str) -> str:
    """Return the name of the operator's attribute that stores an argument or a request key."""
    return _ATTRIBUTES.get(name, name)


def own_keys(request: type[JobRequest]) -> tuple[str, ...]:
    """Return the keys of a request, except those of ``CommitRequest``, which many jobs share."""
    return tuple(field.name for field in fields(request) if field.name not in _COMMON_KEYS)


class LakeJobMixin(CheckedArguments):
    """The part of every job operator that does not depend on Spark."""

    job: ClassVar[str]
    """The name of the job, which is a module of ``spark_jobs``."""
    request: ClassVar[type[JobRequest]]
    """The class of the job's request. Its keys are arguments of the operator, except those of
    ``CommitRequest``.
    """

    if TYPE_CHECKING:
        lake_conn_id: str
        skip_if_noop: bool
        outlets: list[Any]

    published: Mapping[str, Any] | None = None
    """The result of the job; None before the job ends."""
    on_report: OnReport | Sequence[OnReport] | None = None
    """Functions that are called with the result."""
    _works_here = False
    _is_resumed = False
    """True after a deferral, when the log already has the messages about the start."""

    def execute(self, context: Context) -> Any:
        """Run the job with the commit identity of this task, and return its result.

        Raises ``AirflowFailException`` for an error after which a retry would fail in the same way,
        and ``AirflowSkipException`` if there was nothing to do and ``skip_if_noop`` is set.
        """
        with self._guarded():
            self._take_rendered()
            subject = {**self._subject(), "lake_conn_id": self.lake_conn_id}
            context["ti"].xcom_push(key=TABLE_KEY, value=subject)
            self._require_operation()
            request = self._request(context)
            result = self._recorded_result(request) or self._run(request, context)
        return self._finish(result, context)

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Raise the errors of the block, as ``AirflowFailException`` if a retry would fail in the
        same way. End the task if its supervisor dies.
        """
        # Parsing a DAG does not need them.
        from airflow_provider_lake.jobs.airflow_supervisor import ending_with_the_supervisor
        from airflow_provider_lake.jobs.metrics import counting_failures

        with (
            ending_with_the_supervisor(),
            failing_for_good(may_come=self._may_come),
            counting_failures(self.job, self._subject),
            self._reporting_failures(),
        ):
            yield

    def on_kill(self) -> None:
        """Raise ``LakeTaskKilled`` if the job runs in this process. Without this error, Airflow
        would wait and then kill the process.
        """
        if self._works_here:
            raise LakeTaskKilled(
                f"Airflow ended task {self.task_id!r}, for example because it was marked as "
                "failed. To repeat its work, clear it"
            )

    @cached_property
    def lake_hook(self) -> LakeHook:
        """The hook of the task's lake connection."""
        return LakeHook(self.lake_conn_id)

    @abstractmethod
    def _run(self, request: JobRequest, context: Context) -> JobResult:
        """Do the work of the request and return the result of the job."""

    @contextmanager
    def _working_here(self) -> Iterator[None]:
        """Let ``on_kill`` interrupt the work of the block, and log its progress as sentences."""
        self._works_here = True
        try:
            with progress_as_sentences():
                yield
        finally:
            self._works_here = False

    @classmethod
    def _check_values(cls, task_id: str, given: Mapping[str, Any]) -> None:
        """Raise ``LakeArgumentError`` for a known value that breaks a rule of the job's request."""
        from lakeformat import InvalidRequestError

        keys = own_keys(cls.request)
        known = {key: each for key, each in given.items() if key in keys and each is not None}
        try:
            check_values(cls.request, {k: v for k, v in known.items() if not is_open(v)})
        except InvalidRequestError as reason:
            raise _as_argument(task_id, reason) from None

    def _asked_together(self) -> Mapping[str, Any]:
        return self._given()

    def _check_together(self) -> None:
        """Raise ``LakeArgumentError`` for arguments that are valid alone, but not together."""
        from lakeformat import InvalidRequestError

        subject = {k: _LATER if is_open(each) else each for k, each in self._subject().items()}
        asked = {"warehouse": _LATER, **subject, **self._given()}
        refused = []
        for engine in self._engines():
            try:
                self.request(**{**asked, "engine": engine})
            except InvalidRequestError as reason:
                refused.append(reason)
            else:
                return
        raise _as_argument(self.task_id, refused[0])

    def _engines(self) -> Sequence[str]:
        """Return the engines that may do the work: both if ``engine`` is ``auto``, or is known only
        when the task runs.
        """
        engine = getattr(self, "engine", "python")
        return get_args(Engine) if engine == "auto" or is_open(engine) else (engine,)

    def _given(self) -> dict[str, Any]:
        values = {key: getattr(self, attribute_of(key), None) for key in own_keys(self.request)}
        return {key: value for key, value in values.items() if value is not None}

    @staticmethod
    def _attribute_of(name: str) -> str:
        return attribute_of(name)

    def _request(self, context: Context) -> JobRequest:
        """Return the request of the job after rendering. Only the request has the secrets of
        connections.
        """
        given = {**self._subject(), **self._given(), **self._of_connections()}
        return read_request(
            self.request, {**given, "engine": self._chosen_engine(), **self._identity(context)}
        )

    def _require_operation(self) -> None:
        """Raise ``UnsupportedError`` if the table of the task lacks the job's operation."""

    def _of_connections(self) -> dict[str, object]:
        """Return the keys of the request whose values come from connections, with these values."""
        hook = self.lake_hook
        return {"warehouse": hook.warehouse, "catalog_options": hook.catalog_options}

    def _chosen_engine(self) -> str:
        return "python"

    def _identity(self, context: Context) -> dict[str, object]:
        """Return the commit identity as keys of the request; empty for a job that does not
        commit.
        """
        if not issubclass(self.request, CommitKeys):
            return {}
        commit = self._commit_id(context)
        keys = {
            "commit_user": commit.user,
            "commit_identifier": commit.identifier,
            "commit_first_try_millis": commit.first_try_millis,
            "commit_first_try_head": commit.first_try_head,
            "commit_replaces": commit.replaces,
        }
        return {key: value for key, value in keys.items() if value is not None}

    def _commit_user(self, context: Context) -> str:
        return commit_user(context["ti"], *self._subject().values())

    @abstractmethod
    def _subject(self) -> dict[str, str]:
        """Return the table or the database under its key, such as ``{"table": "shop.orders"}``."""

    def _commit_id(self, context: Context) -> CommitId:
        """Return the commit identity of this task. A job that does not commit never calls it."""
        raise NotImplementedError

    def _may_come(self) -> bool:
        """Return True if the object that the job did not find may exist when a retry runs."""
        return False

    def _is_published(self, request: JobRequest) -> bool:
        """Return True if an earlier attempt has done all work of this task. The default only opens
        the catalog, so that its errors appear before any process starts.
        """
        self.lake_hook.get_conn()
        return False

    def _recorded_result(self, request: JobRequest) -> JobResult | None:
        """Return the result of an earlier attempt from the record of its success; None to run the
        job. The default returns None, for jobs that do not commit.
        """
        return None

    def _finish(self, result: JobResult, context: Context) -> JobResult:
        """Send metrics and asset events, record the success, call ``on_report``, and return the
        result. If there was nothing to do and ``skip_if_noop`` is set, send no asset event, and
        raise ``AirflowSkipException`` at the end.
        """
        # Parsing a DAG does not need them.
        from airflow_provider_lake.jobs.metrics import count_outcome
        from airflow_provider_lake.outlet_events import announce

        count_outcome(result)
        stock: Any = self  # every operator has a log
        stock.log.info("%s: %s", *self._subject().values(), _sentence_of(result))
        if result["skipped"] and self.skip_if_noop:
            if result["snapshot_id"] is not None:
                # A snapshot without changes: without the record a cleared task would only find it.
                self._record_success(result, context)
            self._report(result)
            raise AirflowSkipException(result["reason"])
        self.published = result
        announce(context, self.outlets, result, lake_conn_id=self.lake_conn_id)
        self._record_success(result, context)
        self._report(result)
        return result

    def _report(self, result: Mapping[str, Any]) -> None:
        if self.on_report is not None:
            from airflow_provider_lake.jobs.report_callbacks import call_back

            call_back(self.on_report, result)

    @contextmanager
    def _reporting_failures(self) -> Iterator[None]:
        """Call the functions in ``on_report`` if the block raises an error that has a result, such
        as ``FailedChecksError``. The error is raised in any case.
        """
        try:
            yield
        except Exception as reason:
            if (result := getattr(reason, "result", None)) is not None:
                self._report(result)
            raise

    def _record_success(self, result: JobResult, context: Context) -> None:
        """Record the success of the task. The default does nothing, for jobs that do not commit."""


def _as_argument(task_id: str, reason: Exception) -> LakeArgumentError:
    """Return the error of a request in the words of an operator: "argument" in place of "key"."""
    from airflow_provider_lake.arguments.refusal import in_words_of_a_dag  # only for a message

    return LakeArgumentError(f"task {task_id!r}: {in_words_of_a_dag(reason)}")


def _sentence_of(result: JobResult) -> str:
    """Return the reason in ``result``. For a commit, add the numbers of rows and files."""
    from lakeformat.types.count_text import counted

    reason, report = str(result["reason"]), result.get("report", {})
    rows, files = report.get("rows"), report.get("files")
    is_commit = reason == f"published as snapshot {result.get('snapshot_id')}"
    if not is_commit or not isinstance(rows, int) or not isinstance(files, int):
        return reason
    return f"{reason}: {counted(rows, 'row')} in {counted(files, 'file')}"
