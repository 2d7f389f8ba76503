"""The base of every operator of a job: the stock SparkSubmitOperator, or no Spark at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from airflow_provider_lake.arguments import LakeArgumentError, argument_names, argument_types
from airflow_provider_lake.failures import raise_failure
from airflow_provider_lake.hooks.lake import LakeHook
from airflow_provider_lake.job import Engine, LakeJobMixin, attribute_of
from airflow_provider_lake.links import SPARK_KEY, LakeSnapshotLink, LakeSparkLink
from airflow_provider_lake.markers import JobOutput
from airflow_provider_lake.spark_master import DEFAULT_SPARK_CONNECTION, spark_connection
from airflow_provider_lake.spark_run import SparkRun, prepared_run
from airflow_provider_lake.table_job import LakeTableJobMixin

if TYPE_CHECKING:
    from airflow.sdk import Connection, Context

    from airflow_provider_lake.spark_submit import LakeSparkSubmitHook

__all__ = ["LakeJobOperator", "LakeWarehouseJobOperator"]


class LakeWarehouseJobOperator(LakeJobMixin, SparkSubmitOperator):  # type: ignore[misc]  # it returns a result
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

    Every argument of the stock operator may be given besides, for the engine ``spark``: ``conf``,
    ``packages``, ``driver_memory``, ``deploy_mode`` and so on; ``application`` is another place
    of the same script.
    """

    template_fields: Sequence[str] = (
        "lake_conn_id",
        "engine",
        "spark_conn_id",
        "skip_if_noop",
        "result_folder",
        *(name for name in SparkSubmitOperator.template_fields if name != "application_args"),
    )
    template_fields_renderers = {"conf": "json", "env_vars": "json", "where": "sql"}  # noqa: RUF012
    operator_extra_links = (LakeSnapshotLink(), LakeSparkLink())
    ui_color = "#e0f2f1"

    is_on_spark = False
    """Whether this try has come as far as starting Spark."""
    _hook: LakeSparkSubmitHook | None
    _spark: Connection
    _output: JobOutput
    _process_env: Mapping[str, str]
    _before_submit: Callable[[], None]

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
        super().__init__(**{"name": "", "multiple_outputs": True, **kwargs})
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
        if self._hook is not None:
            SparkSubmitOperator.on_kill(self)
        super().on_kill()

    @classmethod
    def _argument_types(cls) -> Mapping[str, Any]:
        return argument_types(cls, LakeWarehouseJobOperator)

    def _run_on_spark(self, request: dict[str, Any], context: Context) -> dict[str, Any]:
        """Submit the job; the table has the first word on how it ended, then the job itself."""
        if self._is_published(request):
            self.log.info("an earlier try has published this: Spark is not needed")
            return self._run_here({**request, "engine": "python"})
        self._find_spark()
        self.is_on_spark = True
        name = f"{self.job}.{self._commit_user(context)}"
        with prepared_run(
            self.job,
            request,
            name=name,
            result_folder=self.result_folder,
            is_driver_elsewhere=self._is_driver_elsewhere(),
        ) as work:
            self._take(work, name)
            self._output = JobOutput(on_spark=partial(context["ti"].xcom_push, SPARK_KEY))
            failure = self._submit(context)
            said = self._output.result or work.result()
        return self._settled(said, failure, request)

    def _take(self, work: SparkRun, name: str) -> None:
        """Set what the stock operator submits."""
        self._hook = None
        self.application = self.application or work.script
        self.application_args = work.words
        self.name = self.name or name
        self._process_env = work.environment
        self._before_submit = work.forget_result

    def _submit(self, context: Context) -> AirflowException | None:
        """Submit and wait; what the stock operator calls a failure is judged by the caller."""
        try:
            SparkSubmitOperator.execute(self, context)
        except AirflowFailException:
            raise
        except ValueError as reason:  # settings the stock operator cannot follow
            raise AirflowFailException(f"task {self.task_id!r}: {reason}") from reason
        except AirflowException as reason:
            if self._hook is None or self._hook.was_killed:
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
            return self._run_here({**request, "engine": "python"})
        if failure is None:
            failure = AirflowException(
                f"spark-submit ended well, but job {self.job!r} said nothing: what it has done is "
                "not known; a retry finds out"
            )
        raise_failure(said or {}, failure)

    def _find_spark(self) -> None:
        """Look the connection up before the stock code does, which takes a failure for yarn."""
        named = self.spark_conn_id or self.lake_hook.lake.spark_conn_id
        self._conn_id = named or DEFAULT_SPARK_CONNECTION
        self._spark = spark_connection(self._conn_id)

    def _is_driver_elsewhere(self) -> bool:
        """Whether the driver will be on the cluster; then somebody has to say how it ended."""
        mode = self._deploy_mode or self._spark.extra_dejson.get("deploy-mode")
        if mode == "cluster" and self.result_folder is None:
            raise LakeArgumentError(
                f"task {self.task_id!r}: in deploy mode 'cluster' give result_folder, a place "
                "that the driver and this worker both reach"
            )
        return bool(mode == "cluster")

    def _get_hook(self) -> LakeSparkSubmitHook:
        """The hook of the stock operator, with the stock operator's arguments."""
        from airflow_provider_lake.spark_submit import LakeSparkSubmitHook

        return LakeSparkSubmitHook(
            connection=self._spark,
            process_env=self._process_env,
            output=self._output,
            before_submit=self._before_submit,
            conf=self.conf,
            conn_id=self._conn_id,
            files=self.files,
            py_files=self.py_files,
            archives=self._archives,
            driver_class_path=self.driver_class_path,
            jars=self.jars,
            java_class=self._java_class,
            packages=self.packages,
            exclude_packages=self.exclude_packages,
            repositories=self._repositories,
            total_executor_cores=self._total_executor_cores,
            executor_cores=self._executor_cores,
            executor_memory=self._executor_memory,
            driver_memory=self._driver_memory,
            keytab=self.keytab,
            principal=self.principal,
            proxy_user=self.proxy_user,
            name=self.name,
            num_executors=self._num_executors,
            status_poll_interval=self._status_poll_interval,
            application_args=self.application_args,
            env_vars=self.env_vars,
            verbose=self._verbose,
            spark_binary=self._spark_binary,
            properties_file=self.properties_file,
            yarn_queue=self._yarn_queue,
            deploy_mode=self._deploy_mode,
            use_krb5ccache=self._use_krb5ccache,
            post_submit_commands=self.post_submit_commands,
            track_driver_via_k8s_api=self._track_driver_via_k8s_api,
            yarn_track_via_rm_api=self._yarn_track_via_rm_api,
            yarn_rm_auth=self._yarn_rm_auth,
        )


class LakeJobOperator(LakeTableJobMixin, LakeWarehouseJobOperator):  # type: ignore[misc]  # as above
    """A job on one table; its other arguments are those of every job.

    :param table: ``database.table``
    """

    template_fields: Sequence[str] = ("table", *LakeWarehouseJobOperator.template_fields)

    def __init__(self, *, table: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.table = table


@cache
def _stock_arguments() -> frozenset[str]:
    return frozenset(argument_names(SparkSubmitOperator.__init__))


def _refuse_what_means_nothing(given: dict[str, Any], engine: str) -> None:
    """What the stock operator takes and this one cannot mean is refused, never ignored."""
    task = f"task {given.get('task_id')!r}"
    if "conn_id" in given:
        raise LakeArgumentError(f"{task}: write spark_conn_id instead of conn_id")
    if "application_args" in given:
        raise LakeArgumentError(f"{task}: application_args are made from the other arguments")
    for_spark = {"spark_conn_id", "result_folder", *_stock_arguments()}
    if engine == "python" and (named := sorted(for_spark & given.keys())):
        raise LakeArgumentError(
            f"{task}: engine 'python' starts no Spark, which {', '.join(named)} is for"
        )
