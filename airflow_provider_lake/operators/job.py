# SPDX-License-Identifier: Apache-2.0
"""The base of all job operators: their common arguments, and the choice of the engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Unpack

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
from airflow_provider_lake.compat import conf
from airflow_provider_lake.hooks.lake import LakeHook
from airflow_provider_lake.jobs.job import attribute_of
from airflow_provider_lake.jobs.spark_job import SparkJob
from airflow_provider_lake.jobs.table_job import LakeTableJobMixin
from airflow_provider_lake.links import LakeSnapshotLink, LakeSparkLink
from airflow_provider_lake.spark.arguments import SPARK_ARGUMENTS, LakeSparkArguments

__all__ = ["Engine", "LakeJobOperator", "LakeWarehouseJobOperator"]


class LakeWarehouseJobOperator(SparkJob, metaclass=RefusingConstruction):
    """Runs a job of ``spark_jobs``, in Python on the worker or through spark-submit.

    :param lake_conn_id: connection of type ``lake``. If ``lake_default`` does not exist, the
        warehouse is ``./warehouse``
    :param engine: ``python`` works on the worker, without Spark; ``spark`` submits the same job.
        ``auto`` uses Spark if ``spark_conn_id`` is given. For ``changelog``, ``check``,
        ``compact``, ``compact_database``, ``ingest``, ``maintain`` and ``rescale`` it also uses
        Spark if the lake's connection has the engine ``spark``, or has ``auto`` and names a Spark
        connection. Otherwise it uses Python
    :param spark_conn_id: connection of type ``spark``. Default: the Spark connection that the
        lake's connection names, or ``spark_default``. If ``spark_default`` does not exist, Spark
        runs on this machine, as ``local[*]``
    :param skip_if_noop: skip the task, and its downstream tasks, if there was nothing to do.
        Default: the task succeeds
    :param on_report: a function, or a list of functions, that gets the result as a dict after the
        work, in the task's process. It is also called if there was nothing to do, or if checks or a
        part of the work failed. If the function fails, its error is logged as a warning, and the
        task's state does not change
    :param result_folder: path or URI of the directory for the driver's result, for deploy mode
        ``cluster``; the driver and this worker must both reach it
    :param deferrable: release the worker slot while a trigger waits for the work. Default:
        Airflow's setting ``[operators] default_deferrable``

    With engine ``spark`` every argument of Airflow's ``SparkSubmitOperator`` may be given, too:
    ``conf``, ``packages``, ``driver_memory``, ``deploy_mode`` and so on. All but ``yarn_rm_auth``
    may be templates. ``application`` replaces the path of the job's script, for example on a
    cluster.
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
    """True if the job reads or writes rows, which Spark can do in parallel. With engine ``auto``, a
    job on metadata uses Spark only if the task has a ``spark_conn_id``.
    """

    result_members: ClassVar[Sequence[str]] = (
        *("job", "table", "database", "skipped", "reason", "snapshot_id", "previous_snapshot_id"),
        *("replayed", "seconds", "report"),
    )
    """The members of the result that other tasks can use, as in ``task.output["snapshot_id"]``."""

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
        super().__init_subclass__(**kwargs)
        if "request" in vars(cls):
            base: type[LakeWarehouseJobOperator] = cls.__mro__[1]
            own = [attribute_of(name) for name in argument_names(vars(cls)["__init__"])]
            cls.template_fields = (*base.template_fields, *own)

    @classmethod
    def partial(cls, **given: Any) -> Any:
        """Check the arguments that all mapped tasks share; return an object to call ``expand`` on.

        Raises ``LakeArgumentError`` for a wrong argument when the DAG is parsed. Overrides
        Airflow's method.
        """
        _refuse_what_means_nothing(given, given.get("engine", "auto"))
        return super().partial(**given)

    @classmethod
    def _argument_types(cls) -> Mapping[str, Any]:
        return argument_types(cls, LakeSparkArguments)

    def _chosen_engine(self) -> str:
        """Return ``python`` or ``spark``; ``auto`` is decided by the Spark connection of the task,
        the kind of job, and the connection of the lake, in this order.
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


class LakeJobOperator(LakeTableJobMixin, LakeWarehouseJobOperator):
    """Runs a job on one table. ``LakeWarehouseJobOperator`` describes the other arguments.

    :param table: the table, ``database.table``
    """

    template_fields: Sequence[str] = ("table", *LakeWarehouseJobOperator.template_fields)

    def __init__(self, *, table: str, **kwargs: Unpack[WarehouseJobArguments]) -> None:
        super().__init__(**kwargs)
        self.table = table


def _refuse_what_means_nothing(given: Mapping[str, object], engine: str) -> None:
    """Raise ``LakeArgumentError`` for arguments that a job operator does not use, such as
    ``conn_id``, and for an ``executor`` that was meant as ``bucket_executor``.
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
    if "reconnect_on_retry" in given:
        raise LakeArgumentError(
            f"{task}: leave out reconnect_on_retry, which lake operators do not support"
        )
    if (executor := given.get("executor")) in ("serial", "threads"):
        raise LakeArgumentError(
            f"{task}: argument 'executor' must be the name of an Airflow executor, and "
            f"{executor!r} is none: leave it out, or write bucket_executor={executor!r} if the "
            "operator compacts"
        )
    for_spark = {"spark_conn_id", "result_folder", *SPARK_ARGUMENTS}
    if engine == "python" and (named := sorted(for_spark & given.keys())):
        raise LakeArgumentError(
            f"{task}: engine 'python' starts no Spark: leave out {', '.join(named)}, or choose "
            "engine 'spark'"
        )
