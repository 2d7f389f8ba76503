"""The base of every operator of a job: through the stock SparkSubmitOperator, or without Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from airflow.sdk.exceptions import AirflowException, AirflowFailException

from airflow_provider_lake.arguments import LakeArgumentError, argument_names, argument_types
from airflow_provider_lake.construction import RefusingConstruction
from airflow_provider_lake.failures import raise_failure
from airflow_provider_lake.hooks.lake import LakeHook
from airflow_provider_lake.job import LakeJobMixin, attribute_of
from airflow_provider_lake.links import SPARK_KEY, LakeSnapshotLink, LakeSparkLink
from airflow_provider_lake.spark.arguments import SPARK_ARGUMENTS, LakeSparkArguments
from airflow_provider_lake.spark.markers import JobOutput
from airflow_provider_lake.spark.master import DEFAULT_SPARK_CONNECTION, spark_connection
from airflow_provider_lake.spark.run import prepared_run
from airflow_provider_lake.table_job import LakeTableJobMixin

if TYPE_CHECKING:
    from airflow.sdk import Connection, Context

    from airflow_provider_lake.spark.submission import LakeSparkSubmission

__all__ = ["Engine", "LakeJobOperator", "LakeWarehouseJobOperator"]

Engine: TypeAlias = Literal["auto", "python", "spark"]


class LakeWarehouseJobOperator(LakeJobMixin, LakeSparkArguments, metaclass=RefusingConstruction):
    """A job of ``spark_jobs``, in this process or through spark-submit.

    :param lake_conn_id: connection of type ``lake``; without ``lake_default`` the warehouse is
        ``./warehouse``
    :param engine: ``python`` works in the task's process, ``spark`` submits the same job; ``auto``
        takes Spark for work on rows where this task or the lake's connection names a Spark
        connection, and Python otherwise
    :param spark_conn_id: connection of type ``spark``; without ``spark_default`` Spark runs on
        this machine, as ``local[*]``
    :param skip_if_noop: skip the task, and with it what depends on it, if nothing was to be done
    :param result_folder: path or URI where a driver leaves its result, for deploy mode
        ``cluster``; the driver and this worker both reach it

    Every argument of the stock ``SparkSubmitOperator`` may be given besides, for the engine
    ``spark``: ``conf``, ``packages``, ``driver_memory``, ``deploy_mode`` and so on; each may be a
    template. ``application`` is another place of the same script.
    """

    template_fields: Sequence[str] = (
        "lake_conn_id",
        "engine",
        "spark_conn_id",
        "skip_if_noop",
        "result_folder",
        *(name for name in SPARK_ARGUMENTS if name != "yarn_rm_auth"),
    )
    template_fields_renderers = {"conf": "json", "env_vars": "json", "where": "sql"}  # noqa: RUF012
    operator_extra_links = (LakeSnapshotLink(), LakeSparkLink())
    ui_color = "#e0f2f1"

    moves_rows: ClassVar[bool] = False
    """Whether Spark can help; metadata is work for the worker itself."""

    is_on_spark = False
    """Whether this try has come as far as starting Spark."""
    _submission: LakeSparkSubmission | None = None

    def __init__(
        self,
        *,
        lake_conn_id: str = LakeHook.default_conn_name,
        engine: Engine = "auto",
        spark_conn_id: str | None = None,
        skip_if_noop: bool = False,
        result_folder: str | None = None,
        **kwargs: Any,
    ) -> None:
        own = {"spark_conn_id": spark_conn_id, "result_folder": result_folder}
        for_spark = {name: value for name, value in own.items() if value is not None}
        _refuse_what_means_nothing({**kwargs, **for_spark}, engine)
        # Members of the result can be named alone: ``task.output["snapshot_id"]``.
        super().__init__(**{"multiple_outputs": True, **kwargs})
        self.lake_conn_id = lake_conn_id
        self.engine: Engine = engine
        self.spark_conn_id = spark_conn_id
        self.skip_if_noop = skip_if_noop
        self.result_folder = result_folder

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Every argument of a job may be a template."""
        super().__init_subclass__(**kwargs)
        if "request" in vars(cls):
            base: type[LakeWarehouseJobOperator] = cls.__mro__[1]
            own = [attribute_of(name) for name in argument_names(vars(cls)["__init__"])]
            cls.template_fields = (*base.template_fields, *own)

    @classmethod
    def partial(cls, **given: Any) -> Any:
        """Airflow's, for mapped tasks: what all of them share is checked here already."""
        _refuse_what_means_nothing(given, given.get("engine", "auto"))
        return super().partial(**given)

    def on_kill(self) -> None:
        """End whatever was started: every process here, and a driver elsewhere."""
        if self._submission is not None and self._submission.was_begun:
            self._submission.on_kill()
        super().on_kill()

    @classmethod
    def _argument_types(cls) -> Mapping[str, Any]:
        return argument_types(cls, LakeSparkArguments)

    def _run(self, request: dict[str, Any], context: Context) -> dict[str, Any]:
        from spark_jobs.runtime.job import PartlyFailedError

        try:
            if self._chosen_engine() == "spark":
                return self._run_on_spark({**request, "engine": "spark"}, context)
            return self._run_here(request)
        except PartlyFailedError as error:
            for each in (error.result or {}).get("report", {}).get("tables", ()):
                if each["error"] is not None:
                    self.log.error("%s: %s", each["table"], each["error"])
            raise

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

    def _run_here(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Do the work in this process."""
        with self._working_here():
            result: dict[str, Any] = import_module(f"spark_jobs.{self.job}").run(request)
        return result

    def _run_on_spark(self, request: dict[str, Any], context: Context) -> dict[str, Any]:
        """Submit the job; the table has the first word on how it ended, then the job itself."""
        self.request(**request)  # what the job would refuse needs no Spark to be found
        if self._is_published(request):
            self.log.info("an earlier try has published this: Spark is not needed")
            return self._run_here(request)
        conn_id = self.spark_conn_id or self.lake_hook.lake.spark_conn_id
        conn_id = conn_id or DEFAULT_SPARK_CONNECTION
        spark = spark_connection(conn_id)
        self.is_on_spark = True
        name = f"{self.job}.{self._commit_user(context)}"
        output = JobOutput(on_spark=partial(context["ti"].xcom_push, SPARK_KEY))
        with prepared_run(
            self.job,
            request,
            name=name,
            result_folder=self.result_folder,
            is_driver_elsewhere=self._is_driver_elsewhere(spark),
        ) as work:
            stock = {"application": work.script, "name": name, **self._spark_given()}
            stock |= {"conn_id": conn_id, "application_args": work.words}
            self._submission = _made(
                task_id=self.task_id,
                connection=spark,
                process_env=work.environment,
                output=output,
                before_submit=work.forget_result,
                **stock,
            )
            failure = self._submit(self._submission, context)
            said = output.result or work.result()
        from spark_jobs.runtime.compaction import warnings_of

        result = self._settled(said, failure, request)
        for warning in warnings_of(result):  # the driver's log is shown at INFO
            self.log.warning("%s", warning)
        return result

    def _submit(self, submission: LakeSparkSubmission, context: Context) -> AirflowException | None:
        """Submit and wait; what the stock operator calls a failure is judged by the caller."""
        try:
            submission.submit_and_wait(context)
        except AirflowFailException:
            raise
        except ValueError as reason:  # settings the stock operator cannot follow
            raise AirflowFailException(f"task {self.task_id!r}: {reason}") from reason
        except AirflowException as reason:
            if not submission.was_begun or submission.was_killed:
                raise
            return reason
        return None

    def _settled(
        self,
        said: dict[str, Any] | None,
        failure: AirflowException | None,
        request: Mapping[str, Any],
    ) -> dict[str, Any]:
        """The result; silence is no success, and a failure after the commit is none."""
        if said is not None and "error" not in said and (failure is None or said["skipped"]):
            return said  # Spark takes the exit code of a job with nothing to do for a failure
        if self._is_published(request):
            self.log.warning("Spark has failed, but the commit of this task is there")
            return self._run_here(request)
        if failure is None:
            failure = AirflowException(
                f"spark-submit ended well, but job {self.job!r} said nothing: what it has done is "
                "not known; a retry finds out"
            )
        raise_failure(said or {}, failure)

    def _is_driver_elsewhere(self, spark: Connection) -> bool:
        """Whether the driver will be on the cluster; then somebody has to say how it ended."""
        mode = self.deploy_mode or spark.extra_dejson.get("deploy-mode")
        if mode == "cluster" and self.result_folder is None:
            raise LakeArgumentError(
                f"task {self.task_id!r}: in deploy mode 'cluster' give result_folder, a place "
                "that the driver and this worker both reach"
            )
        return bool(mode == "cluster")


class LakeJobOperator(LakeTableJobMixin, LakeWarehouseJobOperator):
    """A job on one table; its other arguments are those of every job.

    :param table: ``database.table``
    """

    template_fields: Sequence[str] = ("table", *LakeWarehouseJobOperator.template_fields)

    def __init__(self, *, table: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.table = table


def _made(**arguments: Any) -> LakeSparkSubmission:
    """Only here the stock operator is imported: work without Spark does not wait for it."""
    from airflow_provider_lake.spark.submission import LakeSparkSubmission

    return LakeSparkSubmission(**arguments)


def _refuse_what_means_nothing(given: dict[str, Any], engine: str) -> None:
    """What the stock operator takes and this one cannot mean is refused, never ignored."""
    task = f"task {given.get('task_id')!r}"
    if "conn_id" in given:
        raise LakeArgumentError(f"{task}: write spark_conn_id instead of conn_id")
    if "application_args" in given:
        raise LakeArgumentError(f"{task}: application_args are made from the other arguments")
    for_spark = {"spark_conn_id", "result_folder", *SPARK_ARGUMENTS}
    if engine == "python" and (named := sorted(for_spark & given.keys())):
        raise LakeArgumentError(
            f"{task}: engine 'python' starts no Spark, which {', '.join(named)} is for"
        )
