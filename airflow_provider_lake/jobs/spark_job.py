# SPDX-License-Identifier: Apache-2.0
"""The run of a job: in the task's process, in a supervised process, or with Airflow's
SparkSubmitOperator.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from airflow_provider_lake.arguments.declared import LakeArgumentError
from airflow_provider_lake.compat import AirflowException, AirflowFailException
from airflow_provider_lake.jobs.deferring_job import DeferringJob
from airflow_provider_lake.jobs.failures import raise_failure
from airflow_provider_lake.jobs.job_output import JobOutput
from airflow_provider_lake.links import SPARK_KEY

if TYPE_CHECKING:
    from airflow.sdk import Connection, Context

    from airflow_provider_lake.spark.submission import LakeSparkSubmission
    from spark_jobs.job_requests.common import JobRequest
    from spark_jobs.runtime.job import JobResult

__all__ = ["SparkJob"]


class SparkJob(DeferringJob):
    """Runs the job with the engine of its request; returns its result or raises its error."""

    if TYPE_CHECKING:
        spark_conn_id: str | None

    _submission: LakeSparkSubmission | None = None

    def on_kill(self) -> None:
        """End every process that this task started, and a driver on a cluster."""
        if self._submission is not None and self._submission.was_begun:
            self._submission.on_kill()
        super().on_kill()

    def _run(self, request: JobRequest, context: Context) -> JobResult:
        with self._naming_failed_tables():
            if request.engine == "spark":
                return self._run_on_spark(request, context)
            if (deferral := self._deferral(request, context)) is not None:
                self._defer_python(deferral, request, context)
            return self._run_here(request)

    @contextmanager
    def _naming_failed_tables(self) -> Iterator[None]:
        """Log the error of each failed table if the block raises ``PartlyFailedError``."""
        from spark_jobs.runtime.job import PartlyFailedError

        try:
            yield
        except PartlyFailedError as error:
            for each in (error.result or {}).get("report", {}).get("tables", ()):
                if each["error"] is not None:
                    self.log.error("%s: %s", each["table"], each["error"])
            raise

    def _run_here(self, request: JobRequest) -> JobResult:
        with self._working_here():
            result: JobResult = import_module(f"spark_jobs.{self.job}").run(request)
        return result

    def _run_on_spark(self, request: JobRequest, context: Context) -> JobResult:
        """Submit the job and return its result. If an earlier attempt has published the commit,
        return the result of that attempt without starting Spark.
        """
        if self._is_published(request):
            self.log.info("an earlier attempt has published this commit: Spark is not started")
            return self._run_here(request)
        from airflow_provider_lake.jobs.prepared_job import prepare_job

        spark = self._spark_connection()
        is_driver_elsewhere = self._is_driver_elsewhere(spark)
        deferral = None if is_driver_elsewhere else self._deferral(request, context)
        self.is_on_spark = True
        output = JobOutput(on_spark=partial(context["ti"].xcom_push, SPARK_KEY))
        with self._work_folder(deferral) as folder:
            work = prepare_job(
                self.job,
                request,
                folder=folder,
                name=self._run_name(context),
                result_folder=self.result_folder,
                is_driver_elsewhere=is_driver_elsewhere,
            )
            self._submission = self._made(
                {"application": work.script, "name": self._run_name(context)},
                connection=spark,
                application_args=work.words,
                process_env=work.environment,
                output=output,
                before_submit=work.forget_result,
                supervise=None if deferral is None else deferral.start,
                asked=self._digest(request, context),
            )
            if is_driver_elsewhere:
                self._let_a_trigger_wait(self._submission)
            failure = self._submit(self._submission, context)
            reported = output.result or work.result()
        return self._result_on_spark(reported, failure, output, request)

    def _spark_connection(self) -> Connection:
        from airflow_provider_lake.spark.master import spark_connection

        return spark_connection(self._spark_connection_id())

    def _spark_connection_id(self) -> str:
        from airflow_provider_lake.spark.master import DEFAULT_SPARK_CONNECTION

        found = self.spark_conn_id or self.lake_hook.lake.spark_conn_id
        return found or DEFAULT_SPARK_CONNECTION

    def _made(self, defaults: Mapping[str, Any], **arguments: Any) -> LakeSparkSubmission:
        """Return the operator that submits the Spark application; arguments of the task replace
        ``defaults``. The class of the operator is imported here, so that a task without Spark never
        imports it.
        """
        from airflow_provider_lake.spark.submission import LakeSparkSubmission

        stock = {**defaults, **self._spark_given(), "conn_id": self._spark_connection_id()}
        return LakeSparkSubmission(task_id=self.task_id, **arguments, **stock)

    def _result_of_process(
        self,
        reported: JobResult | None,
        failure: AirflowException | None,
        output: JobOutput,
        request: JobRequest,
    ) -> JobResult:
        with self._naming_failed_tables():
            if request.engine != "spark":
                return self._settled(reported, failure, request)
            self._run_post_submit_commands()
            return self._result_on_spark(reported, failure, output, request)

    def _result_of_driver(
        self, failure: str | None, request: JobRequest, context: Context
    ) -> JobResult:
        from airflow_provider_lake.jobs.prepared_job import prepare_job

        self._run_post_submit_commands()
        work = prepare_job(
            self.job,
            request,
            folder="",
            name=self._run_name(context),
            result_folder=self.result_folder,
            is_driver_elsewhere=True,
        )
        failed = None if failure is None else AirflowException(failure)
        with self._naming_failed_tables():
            return self._result_on_spark(work.result(), failed, JobOutput(), request)

    def _run_post_submit_commands(self) -> None:
        """Run the task's ``post_submit_commands`` after the driver has ended. SparkSubmitOperator
        runs them only if it waits for the driver itself.
        """
        if not self.post_submit_commands:
            return
        made = self._made(
            {},
            connection=self._spark_connection(),
            process_env={},
            output=JobOutput(),
            before_submit=lambda: None,
        )
        made.run_post_submit_commands()

    def _let_a_trigger_wait(self, submission: LakeSparkSubmission) -> None:
        """Prepare the submission so that the task defers after its driver is on the cluster; log
        the reason if no trigger can wait.
        """
        if not self.deferrable or self._keeps_slot:
            return
        if (reason := submission.wait_with(self._defer_to_driver)) is not None:
            self._keep_the_slot(reason)

    def _result_on_spark(
        self,
        reported: JobResult | None,
        failure: AirflowException | None,
        output: JobOutput,
        request: JobRequest,
    ) -> JobResult:
        """Return the result of the Spark job, and log its warnings; raise its error, or the failure
        of spark-submit.
        """
        if failure is not None and output.unanswered is not None:
            reported = None  # an error that only follows from the silence of the master
            failure = AirflowException(
                f"Spark's master {output.unanswered} does not answer: check that it runs, and "
                f"check host and port of connection {self._spark_connection_id()!r}. Spark's "
                "messages are in a collapsed group of this log"
            )
        from spark_jobs.runtime.compaction import warnings_of

        result = self._settled(reported, failure, request)
        for warning in warnings_of(result):  # the driver's log is shown at INFO
            self.log.warning("%s", warning)
        return result

    def _submit(self, submission: LakeSparkSubmission, context: Context) -> AirflowException | None:
        """Submit the job and wait. Return None if the driver succeeds; else return its failure.

        A failure before the start of spark-submit, or after a kill, is not returned but raised.
        Raise ``AirflowFailException`` for settings that SparkSubmitOperator refuses.
        """
        try:
            submission.submit_and_wait(context)
        except AirflowFailException:
            raise
        except ValueError as reason:  # settings that SparkSubmitOperator refuses
            raise AirflowFailException(f"task {self.task_id!r}: {reason}") from reason
        except AirflowException as reason:
            if not submission.was_begun or submission.was_killed:
                raise
            return reason
        return None

    def _settled(
        self,
        result: JobResult | None,
        failure: AirflowException | None,
        request: JobRequest,
    ) -> JobResult:
        """Return the result of a process, or raise its error.

        A process without a result has failed. If the commit of this task is published
        nevertheless, run the job here instead: it finds the commit, changes nothing, and returns
        the result.
        """
        if result is not None and "error" not in result and (failure is None or result["skipped"]):
            return result  # Spark reports the exit code of a job without work as a failure
        if self._is_published(request):
            who = "Spark" if request.engine == "spark" else "the process"
            self.log.warning(
                "%s ended with an error or without a result, but the commit of this task is "
                "published: the task succeeds",
                who,
            )
            return self._run_here(request)
        if failure is None:
            who = "spark-submit" if request.engine == "spark" else "the process"
            failure = AirflowException(
                f"{who} succeeded, but job {self.job!r} returned no result: retry the task to find "
                "out what it has done"
            )
        raise_failure(result or {}, failure)

    def _is_driver_elsewhere(self, spark: Connection) -> bool:
        """Return True if the driver runs on the cluster; raise ``LakeArgumentError`` if it does and
        the task has no ``result_folder``.
        """
        mode = self.deploy_mode or spark.extra_dejson.get("deploy-mode")
        if mode == "cluster" and self.result_folder is None:
            raise LakeArgumentError(
                f"task {self.task_id!r}: deploy mode 'cluster' needs argument 'result_folder', a "
                "path or URI that the driver and this worker both reach"
            )
        return bool(mode == "cluster")
