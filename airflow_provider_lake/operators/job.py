# SPDX-License-Identifier: Apache-2.0
"""The base of all job operators: runs the job in this process, or by Airflow's
SparkSubmitOperator.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

from airflow_provider_lake.arguments.construction import RefusingConstruction
from airflow_provider_lake.arguments.declared import (
    LakeArgumentError,
    argument_names,
    argument_types,
)
from airflow_provider_lake.arguments.task_arguments import (
    Engine,
    OnReport,
    SparkTaskArguments,
    WarehouseJobArguments,
)
from airflow_provider_lake.compat import AirflowException, AirflowFailException, conf
from airflow_provider_lake.hooks.lake import LakeHook
from airflow_provider_lake.jobs.deferring_job import DeferringJob
from airflow_provider_lake.jobs.failures import raise_failure
from airflow_provider_lake.jobs.job import attribute_of
from airflow_provider_lake.jobs.table_job import LakeTableJobMixin
from airflow_provider_lake.links import SPARK_KEY, LakeSnapshotLink, LakeSparkLink
from airflow_provider_lake.spark.arguments import SPARK_ARGUMENTS, LakeSparkArguments
from airflow_provider_lake.spark.markers import JobOutput
from airflow_provider_lake.spark.master import DEFAULT_SPARK_CONNECTION, spark_connection

if TYPE_CHECKING:
    from airflow.sdk import Connection, Context

    from airflow_provider_lake.spark.submission import LakeSparkSubmission
    from spark_jobs.job_requests.common import JobRequest
    from spark_jobs.runtime.job import JobResult

__all__ = ["Engine", "LakeJobOperator", "LakeWarehouseJobOperator"]


class LakeWarehouseJobOperator(DeferringJob, metaclass=RefusingConstruction):
    """Runs a job of ``spark_jobs``, in this process or through spark-submit.

    :param lake_conn_id: connection of type ``lake``. If ``lake_default`` does not exist, the
        warehouse is ``./warehouse``
    :param engine: ``python`` works in the task's process, ``spark`` submits the same job. ``auto``
        uses Spark for work on rows if this task or the lake's connection names a Spark connection,
        else Python
    :param spark_conn_id: connection of type ``spark``. If ``spark_default`` does not exist, Spark
        runs on this machine, as ``local[*]``
    :param skip_if_noop: skip the task, and its downstream tasks, if there was nothing to do
    :param on_report: a function, or a list of functions, that gets the result as a dict when the
        work is done, in the task's process; also if it was skipped, or if checks or parts of the
        work failed. An error of the function is logged as a warning and fails nothing
    :param result_folder: path or URI where the driver writes its result, for deploy mode
        ``cluster``; the driver and this worker must both reach it
    :param deferrable: let a trigger wait for the work, so that it holds no slot. Default:
        ``[operators] default_deferrable``

    With engine ``spark`` every argument of Airflow's ``SparkSubmitOperator`` may be given, too:
    ``conf``, ``packages``, ``driver_memory``, ``deploy_mode`` and so on; each may be a template.
    ``application`` is another location of the same script.
    """

    template_fields: Sequence[str] = (
        "lake_conn_id",
        "engine",
        "spark_conn_id",
        "skip_if_noop",
        "result_folder",
        "deferrable",
        *(name for name in SPARK_ARGUMENTS if name != "yarn_rm_auth"),
    )
    template_fields_renderers = {"conf": "json", "env_vars": "json", "where": "sql"}  # noqa: RUF012
    operator_extra_links = (LakeSnapshotLink(), LakeSparkLink())
    ui_color = "#e0f2f1"

    moves_rows: ClassVar[bool] = False
    """True if the job works on rows, so that Spark can help; metadata jobs run in the worker."""

    result_members: ClassVar[Sequence[str]] = (
        *("job", "table", "database", "skipped", "reason", "snapshot_id", "previous_snapshot_id"),
        *("replayed", "seconds", "report"),
    )
    """The names that another task may ask for: ``task.output["snapshot_id"]``."""

    _submission: LakeSparkSubmission | None = None

    def __init__(
        self,
        *,
        lake_conn_id: str = LakeHook.default_conn_name,
        engine: Engine = "auto",
        spark_conn_id: str | None = None,
        skip_if_noop: bool = False,
        on_report: OnReport | Sequence[OnReport] | None = None,
        result_folder: str | None = None,
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        **kwargs: Unpack[SparkTaskArguments],
    ) -> None:
        own = {"spark_conn_id": spark_conn_id, "result_folder": result_folder}
        for_spark = {name: value for name, value in own.items() if value is not None}
        _refuse_what_means_nothing({**kwargs, **for_spark}, engine)
        # Members of the result can be named alone: ``task.output["snapshot_id"]``.
        kwargs.setdefault("multiple_outputs", True)
        super().__init__(**kwargs)
        self.lake_conn_id = lake_conn_id
        self.engine: Engine = engine
        self.spark_conn_id = spark_conn_id
        self.skip_if_noop = skip_if_noop
        self.on_report = on_report
        self.result_folder = result_folder
        self.deferrable = deferrable

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Make every argument of a job a template field."""
        super().__init_subclass__(**kwargs)
        if "request" in vars(cls):
            base: type[LakeWarehouseJobOperator] = cls.__mro__[1]
            own = [attribute_of(name) for name in argument_names(vars(cls)["__init__"])]
            cls.template_fields = (*base.template_fields, *own)

    @classmethod
    def partial(cls, **given: Any) -> Any:
        """Check the shared arguments of mapped tasks when the DAG is parsed; overrides Airflow's
        method.
        """
        _refuse_what_means_nothing(given, given.get("engine", "auto"))
        return super().partial(**given)

    def on_kill(self) -> None:
        """End every process that this task started, and a driver on a cluster."""
        if self._submission is not None and self._submission.was_begun:
            self._submission.on_kill()
        super().on_kill()

    @classmethod
    def _argument_types(cls) -> Mapping[str, Any]:
        return argument_types(cls, LakeSparkArguments)

    def _run(self, request: JobRequest, context: Context) -> JobResult:
        with self._naming_failed_tables():
            if request.engine == "spark":
                return self._run_on_spark(request, context)
            if (deferral := self._deferral(request, context)) is not None:
                self._defer_python(deferral, request, context)
            return self._run_here(request)

    @contextmanager
    def _naming_failed_tables(self) -> Iterator[None]:
        """Log the error of each table that failed, if only some did."""
        from spark_jobs.runtime.job import PartlyFailedError

        try:
            yield
        except PartlyFailedError as error:
            for each in (error.result or {}).get("report", {}).get("tables", ()):
                if each["error"] is not None:
                    self.log.error("%s: %s", each["table"], each["error"])
            raise

    def _chosen_engine(self) -> str:
        """Return the engine: from the argument, else from the connection, else by the kind of
        job.
        """
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

    def _run_here(self, request: JobRequest) -> JobResult:
        """Run the job in this process."""
        with self._working_here():
            result: JobResult = import_module(f"spark_jobs.{self.job}").run(request)
        return result

    def _run_on_spark(self, request: JobRequest, context: Context) -> JobResult:
        """Submit the job and return its result, or that of an earlier attempt whose commit is in
        the table.
        """
        if self._is_published(request):
            self.log.info("an earlier attempt has published this commit: Spark is not started")
            return self._run_here(request)
        from airflow_provider_lake.spark.run import prepare_run

        spark = spark_connection(self._spark_connection_id())
        is_driver_elsewhere = self._is_driver_elsewhere(spark)
        deferral = None if is_driver_elsewhere else self._deferral(request, context)
        self.is_on_spark = True
        output = JobOutput(on_spark=partial(context["ti"].xcom_push, SPARK_KEY))
        with self._work_folder(deferral) as folder:
            work = prepare_run(
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

    def _spark_connection_id(self) -> str:
        found = self.spark_conn_id or self.lake_hook.lake.spark_conn_id
        return found or DEFAULT_SPARK_CONNECTION

    def _made(self, defaults: Mapping[str, Any], **arguments: Any) -> LakeSparkSubmission:
        """Return the operator that submits; work without Spark never imports its class."""
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
        from airflow_provider_lake.spark.run import prepare_run

        self._run_post_submit_commands()
        work = prepare_run(
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
        """Run the commands that SparkSubmitOperator runs after the end of its driver."""
        if not self.post_submit_commands:
            return
        made = self._made(
            {},
            connection=spark_connection(self._spark_connection_id()),
            process_env={},
            output=JobOutput(),
            before_submit=lambda: None,
        )
        made.run_post_submit_commands()

    def _let_a_trigger_wait(self, submission: LakeSparkSubmission) -> None:
        """Defer the task once its driver is submitted to a cluster, or log why it is not."""
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
        """Return the result of Spark, or raise its failure."""
        if failure is not None and output.unanswered is not None:
            reported = None  # an error that only follows from the silence of the master
            failure = AirflowException(
                f"Spark's master {output.unanswered} does not answer: check that it runs, and host "
                f"and port of connection {self._spark_connection_id()!r}. Spark's messages are in "
                "a collapsed group of this log"
            )
        from spark_jobs.runtime.compaction import warnings_of

        result = self._settled(reported, failure, request)
        for warning in warnings_of(result):  # the driver's log is shown at INFO
            self.log.warning("%s", warning)
        return result

    def _submit(self, submission: LakeSparkSubmission, context: Context) -> AirflowException | None:
        """Submit the job and wait; return the failure, or None if it succeeds."""
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
        """Return the result. A job without a report has failed; a failure after the commit is a
        success.
        """
        if result is not None and "error" not in result and (failure is None or result["skipped"]):
            return result  # Spark reports the exit code of a job without work as a failure
        if self._is_published(request):
            who = "Spark" if request.engine == "spark" else "the process"
            self.log.warning(
                "%s failed after the commit of this task was published: the task succeeds", who
            )
            return self._run_here(request)
        if failure is None:
            failure = AirflowException(
                f"spark-submit succeeded, but job {self.job!r} returned no result: retry the task "
                "to find out what it has done"
            )
        raise_failure(result or {}, failure)

    def _is_driver_elsewhere(self, spark: Connection) -> bool:
        """Return True if the driver runs on the cluster; require a folder for its result then."""
        mode = self.deploy_mode or spark.extra_dejson.get("deploy-mode")
        if mode == "cluster" and self.result_folder is None:
            raise LakeArgumentError(
                f"task {self.task_id!r}: deploy mode 'cluster' needs argument 'result_folder', a "
                "path or URI that the driver and this worker both reach"
            )
        return bool(mode == "cluster")


class LakeJobOperator(LakeTableJobMixin, LakeWarehouseJobOperator):
    """Runs a job on one table; its other arguments are those of every job operator.

    :param table: ``database.table``
    """

    template_fields: Sequence[str] = ("table", *LakeWarehouseJobOperator.template_fields)

    def __init__(self, *, table: str, **kwargs: Unpack[WarehouseJobArguments]) -> None:
        super().__init__(**kwargs)
        self.table = table


def _refuse_what_means_nothing(given: Mapping[str, object], engine: str) -> None:
    """Raise an error for arguments of SparkSubmitOperator that have no meaning here, instead of
    ignoring them.
    """
    task = f"task {given.get('task_id')!r}"
    if "conn_id" in given:
        raise LakeArgumentError(
            f"{task}: write lake_conn_id for the lake, or spark_conn_id for Spark, instead of "
            "conn_id"
        )
    if "application_args" in given:
        raise LakeArgumentError(
            f"{task}: leave out application_args, which are built from the other arguments"
        )
    if (executor := given.get("executor")) in ("serial", "threads"):
        raise LakeArgumentError(
            f"{task}: argument 'executor' names the Airflow executor that runs the task; for the "
            f"buckets of a table write bucket_executor={executor!r}"
        )
    for_spark = {"spark_conn_id", "result_folder", *SPARK_ARGUMENTS}
    if engine == "python" and (named := sorted(for_spark & given.keys())):
        raise LakeArgumentError(
            f"{task}: engine 'python' starts no Spark: leave out {', '.join(named)}, or choose "
            "engine 'spark'"
        )
