# SPDX-License-Identifier: Apache-2.0
"""The deferral of job operators: the work runs in a process that needs no worker slot."""

from __future__ import annotations

import hashlib
import json
import logging
import signal
import sys
import time
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NoReturn

from airflow_provider_lake.compat import AirflowException, AirflowTaskTimeout
from airflow_provider_lake.jobs.job import LakeJobMixin
from airflow_provider_lake.jobs.job_output import JobOutput
from airflow_provider_lake.links import SPARK_KEY
from airflow_provider_lake.spark.arguments import LakeSparkArguments

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_lake.spark.cluster_driver import Manager
    from airflow_provider_lake.supervised.deferral import Deferral
    from airflow_provider_lake.supervised.process_id import ProcessId
    from airflow_provider_lake.supervised.run_folder import Ending, RunFolder
    from spark_jobs.job_requests.common import JobRequest
    from spark_jobs.runtime.job import JobResult

__all__ = ["DeferringJob"]

_LOOK_SECONDS = 1.0
_log = logging.getLogger(__name__)


class DeferringJob(LakeJobMixin, LakeSparkArguments):
    """Runs the work of a deferrable task in a supervised process, and returns the result when that
    process ends.
    """

    if TYPE_CHECKING:
        deferrable: bool
        result_folder: str | None

    is_on_spark = False
    """True once this attempt has started Spark."""
    _supervised: RunFolder | None = None
    """The folder of the process that this attempt has started, or for which it waits; None without
    one.
    """
    _keeps_slot = False

    def execute_complete(self, context: Context, event: Mapping[str, Any]) -> Any:
        """Return the result of the process or driver for which the trigger has waited.

        Raises ``AirflowTaskTimeout`` if the work has exceeded ``execution_timeout``.
        """
        self._is_resumed = True
        with self._guarded():
            self._take_rendered()
            result = self._resumed(self._request(context), context, event)
        return self._finish(result, context)

    def on_kill(self) -> None:
        """End the process of this task, even if the task is not deferred yet."""
        if self._supervised is not None:
            from airflow_provider_lake.supervised.start import PATIENCE_SECONDS

            self._supervised.end(PATIENCE_SECONDS)
        super().on_kill()

    @abstractmethod
    def _spark_connection_id(self) -> str:
        """Return the id of the connection of type ``spark``."""

    @abstractmethod
    def _result_of_process(
        self,
        reported: JobResult | None,
        failure: AirflowException | None,
        output: JobOutput,
        request: JobRequest,
    ) -> JobResult:
        """Return the result of a process that has ended. If the process failed, raise the error in
        ``reported``, or else ``failure``.
        """

    @abstractmethod
    def _result_of_driver(
        self, failure: str | None, request: JobRequest, context: Context
    ) -> JobResult:
        """Return the result of a cluster's driver that has ended; ``failure`` is the reason if it
        failed, else None.
        """

    def _run_name(self, context: Context) -> str:
        """Return the name of the supervised process and of the Spark application: the same for
        every attempt of the task.
        """
        return f"{self.job}.{self._commit_user(context)}"

    def _folder(self, request: JobRequest, context: Context) -> RunFolder:
        from airflow_provider_lake.supervised.deferral import folder_of

        return folder_of(self._run_name(context), request.warehouse)

    @staticmethod
    def _digest(request: JobRequest, context: Context) -> str:
        """Return text that identifies the work: the same for a retry, but different after a
        clear.
        """
        from airflow_provider_lake.jobs.prepared_job import open_text

        # A clear raises both, but clear_number only if it resets the run too.
        clears = [context["dag_run"].clear_number, context["ti"].max_tries]
        asked = json.dumps([open_text(request), *clears])
        return hashlib.sha256(asked.encode()).hexdigest()

    def _deferral(self, request: JobRequest, context: Context) -> Deferral | None:
        """Return the deferral of the task; None if the task does not defer. If no trigger can wait,
        the log has the reason.

        An earlier attempt may have started a process for the same work. If this process still runs
        or has succeeded, the task defers at once, unless ``durable`` is False.
        """
        if not self.deferrable or self._keeps_slot:
            return None
        from airflow_provider_lake.jobs.identity import first_try_millis
        from airflow_provider_lake.supervised.deferral import Deferral, reason_to_keep_the_slot

        reason = reason_to_keep_the_slot()
        if reason is None:
            try:
                folder = self._folder(request, context)
            except PermissionError as refused:
                reason = str(refused)
            else:
                # A run that was deleted and created again has another start.
                began = first_try_millis(context["dag_run"])
                asked = f"{self._digest(request, context)}.{began}"
                deferral = Deferral(self, folder, asked)
                if self.durable is not False:
                    deferral.rejoin()
                return deferral
        self._keep_the_slot(reason)
        return None

    @staticmethod
    def _keep_the_slot(reason: str | None) -> None:
        _log.info("the task keeps its worker slot: %s", reason)

    def _defer_to_driver(self, manager: Manager, poll_seconds: float, driver: str) -> NoReturn:
        """Defer until the driver on a cluster ends."""
        from airflow_provider_lake.supervised.deferral import COMPLETE, time_limit
        from airflow_provider_lake.triggers.driver import LakeDriverTrigger

        trigger = LakeDriverTrigger(
            manager=manager,
            driver=driver,
            spark_conn_id=self._spark_connection_id(),
            ends_at=time_limit(self),
            poll_interval=poll_seconds,
        )
        _log.info("the task gives its worker slot back and waits for driver %s", driver)
        self.defer(trigger=trigger, method_name=COMPLETE)

    @contextmanager
    def _work_folder(self, deferral: Deferral | None) -> Iterator[str]:
        """Yield a private directory. It is deleted after the block unless the task has a
        deferral.
        """
        if deferral is None:
            with TemporaryDirectory(prefix="lake-task-") as folder:
                yield folder
            return
        deferral.make_room()
        self._supervised = deferral.folder
        yield str(deferral.folder.path)

    def _defer_python(self, deferral: Deferral, request: JobRequest, context: Context) -> NoReturn:
        """Start the job in a separate Python process, and defer until it ends."""
        from airflow_provider_lake.jobs.prepared_job import prepare_job
        from spark_jobs.runtime.log_lines import LOG_LEVEL_VARIABLE

        with self._work_folder(deferral) as folder:
            work = prepare_job(self.job, request, folder=folder, name=self._run_name(context))
            level = logging.getLevelName(logging.getLogger().getEffectiveLevel())
            own = {"LAKE_WATCH_PARENT": "1", LOG_LEVEL_VARIABLE: level}
            deferral.start([*self._program(), *work.words], {**work.environment, **own})

    def _program(self) -> list[str]:
        """Return the command that starts the job in Python, without the job's arguments."""
        return [sys.executable, "-P", "-m", f"spark_jobs.{self.job}"]

    def _resumed(
        self, request: JobRequest, context: Context, event: Mapping[str, Any]
    ) -> JobResult:
        from airflow_provider_lake.triggers.process import TIMED_OUT
        from lakeformat.types.duration_text import exact_duration

        self.is_on_spark = request.engine == "spark"
        if "failure" in event:
            return self._result_of_driver(event["failure"], request, context)
        folder = _folder_of(event) or self._folder(request, context)
        process = _process_of(event) or folder.process
        if event["status"] == TIMED_OUT:
            if process is not None:
                folder.remove_of(process)
            limit = self.execution_timeout  # the DAG may have changed since
            shown = f" ({exact_duration(limit // timedelta(milliseconds=1))})" if limit else ""
            raise AirflowTaskTimeout(
                f"the work of task {self.task_id!r} was ended after execution_timeout{shown}: "
                "raise execution_timeout, or split the work into several tasks"
            )
        if process is None or not self._has_waited_for(process, folder):
            _log.warning(
                "this machine does not know the process of this task: the machine was restarted, "
                "or the task runs on another machine now. The task repeats its work, and holds its "
                "worker slot meanwhile; no commit is made twice"
            )
            self._keeps_slot = True
            return self._recorded_result(request) or self._run(request, context)
        return self._concluded(process, folder, request, context)

    def _has_waited_for(self, process: ProcessId, folder: RunFolder) -> bool:
        """Wait in the worker slot for a process that the trigger cannot see. Return False if
        ``folder`` is missing or belongs to another process, now or after the wait.
        """
        from airflow_provider_lake.supervised.output import OutputLog

        if folder.process != process:
            return False
        self._supervised = folder
        if process.is_running:
            _log.info("the task keeps its worker slot: the triggerer cannot see the task's process")
        output = OutputLog(folder, JobOutput())
        with self._working_here():
            while process.is_running and folder.process == process:
                folder.renew()
                output.log_new()
                time.sleep(_LOOK_SECONDS)
        if folder.process != process:
            self._supervised = None  # a kill must not end the process of another attempt
            return False
        return True

    def _concluded(
        self, process: ProcessId, folder: RunFolder, request: JobRequest, context: Context
    ) -> JobResult:
        from airflow_provider_lake.jobs.prepared_job import prepare_job
        from airflow_provider_lake.supervised.output import OutputLog

        output = JobOutput(on_spark=partial(context["ti"].xcom_push, SPARK_KEY))
        log = OutputLog(folder, output)
        log.log_new(is_over=True)
        work = prepare_job(
            self.job,
            request,
            folder=str(folder.path),
            name=self._run_name(context),
            result_folder=self.result_folder,
        )
        how = _unsuccessful(folder.ending)
        failure = how and AirflowException(f"the process of job {self.job!r} {how}{log.tail}")
        try:
            return self._result_of_process(
                output.result or work.result(), failure or None, output, request
            )
        finally:
            folder.remove_of(process)


def _folder_of(event: Mapping[str, Any]) -> RunFolder | None:
    """Return the directory of the process for which the trigger has waited; None for a trigger of
    the previous release.
    """
    from airflow_provider_lake.supervised.run_folder import RunFolder

    # Only its name is taken, so it is below this machine's directory of processes.
    return RunFolder.named(Path(event["folder"]).name) if "folder" in event else None


def _process_of(event: Mapping[str, Any]) -> ProcessId | None:
    """Return the process for which the trigger has waited; None for a trigger of the
    previous release, whose events do not name the process.
    """
    from airflow_provider_lake.supervised.process_id import ProcessId

    return ProcessId(event["pid"], event["started"]) if "pid" in event else None


def _unsuccessful(ending: Ending | None) -> str | None:
    """Return the part of an error message that explains why a process failed; None if the process
    succeeded. ``ending`` is the end that the supervisor of the process recorded. It is None if the
    supervisor was killed together with the process.
    """
    if ending is None:
        return "was killed together with the process that supervised it"
    if ending.why == "lease":
        return (
            "was ended, because no triggerer watched it for five minutes: check that a triggerer "
            "runs"
        )
    if ending.why == "asked":
        return "was ended by a request that did not come from this attempt"
    if ending.exit_code < 0:
        return f"was killed by {signal.Signals(-ending.exit_code).name}"
    return f"ended with exit code {ending.exit_code}" if ending.exit_code else None
