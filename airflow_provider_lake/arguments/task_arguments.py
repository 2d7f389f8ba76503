# SPDX-License-Identifier: Apache-2.0
"""The arguments that operators, sensors and decorators share, for editors and type checkers.

A constructor declares its own arguments, and takes the rest as ``**kwargs: Unpack[...]`` of a class
below. So an editor completes every argument, and a type checker finds a wrong one in a DAG file.
Tests compare these classes with the constructors of this provider and of the installed Airflow.
"""

# Annotations are evaluated here, not kept as text: each text of a TypedDict is compiled on import.

from collections.abc import Callable, Collection, Iterable, Mapping, MutableMapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict

if TYPE_CHECKING:
    from airflow.sdk import DAG, Context, RetryPolicy, TaskGroup
    from jinja2 import StrictUndefined

__all__ = [
    "AnyTaskArguments",
    "Callback",
    "DagArguments",
    "DecoratedArguments",
    "Engine",
    "FunctionArguments",
    "FunctionTaskArguments",
    "OnReport",
    "SparkArguments",
    "SparkTaskArguments",
    "TableJobArguments",
    "TableSensorArguments",
    "TaskArguments",
    "TaskGroupArguments",
    "WaitArguments",
    "WarehouseJobArguments",
]

Engine: TypeAlias = Literal["auto", "python", "spark"]
Callback: TypeAlias = Callable[["Context"], None]
OnReport: TypeAlias = Callable[[dict[str, Any]], object]
"""A function that gets the result of a task as a dict."""


class AnyTaskArguments(TypedDict, total=False):
    """Airflow's arguments of every task; Airflow's ``BaseOperator`` documents most of them."""

    owner: str
    email: str | Sequence[str] | None
    email_on_retry: bool
    email_on_failure: bool
    retries: int | None
    retry_delay: timedelta | float
    retry_exponential_backoff: float
    max_retry_delay: timedelta | float | None
    retry_policy: "RetryPolicy | None"
    start_date: datetime | None
    end_date: datetime | None
    depends_on_past: bool
    ignore_first_depends_on_past: bool
    wait_for_past_depends_before_skipping: bool
    wait_for_downstream: bool
    dag: "DAG | None"
    params: MutableMapping[str, Any] | None
    default_args: dict[str, Any] | None
    priority_weight: int
    weight_rule: Any
    queue: str
    pool: str | None
    pool_slots: int
    sla: timedelta | None
    execution_timeout: timedelta | None
    on_execute_callback: Callback | Collection[Callback] | None
    on_failure_callback: Callback | list[Callback] | None
    on_success_callback: Callback | Collection[Callback] | None
    on_retry_callback: Callback | list[Callback] | None
    on_skipped_callback: Callback | Collection[Callback] | None
    pre_execute: Callback | None
    post_execute: Callable[["Context", Any], None] | None
    trigger_rule: str
    resources: dict[str, Any] | None
    run_as_user: str | None
    map_index_template: str | None
    max_active_tis_per_dag: int | None
    max_active_tis_per_dagrun: int | None
    executor: str | None
    executor_config: dict[str, Any] | None
    do_xcom_push: bool
    inlets: Any
    outlets: Any
    task_group: "TaskGroup | None"
    doc: str | None
    doc_md: str | None
    doc_json: str | None
    doc_yaml: str | None
    doc_rst: str | None
    task_display_name: str | None
    logger_name: str | None
    allow_nested_operators: bool
    render_template_as_native_obj: bool | None


class _OutputArguments(TypedDict, total=False):
    multiple_outputs: bool


class TaskArguments(AnyTaskArguments, _OutputArguments):
    """Airflow's arguments of an operator."""

    task_id: str


class SparkArguments(TypedDict, total=False):
    """The arguments of Airflow's ``SparkSubmitOperator``, which documents most of them."""

    application: str | None
    conf: Mapping[str, Any] | None
    files: str | None
    py_files: str | None
    archives: str | None
    driver_class_path: str | None
    jars: str | None
    java_class: str | None
    packages: str | None
    exclude_packages: str | None
    repositories: str | None
    total_executor_cores: int | None
    executor_cores: int | None
    executor_memory: str | None
    driver_memory: str | None
    keytab: str | None
    principal: str | None
    proxy_user: str | None
    name: str | None
    num_executors: int | None
    status_poll_interval: int | None
    env_vars: Mapping[str, Any] | None
    verbose: bool | None
    spark_binary: str | None
    properties_file: str | None
    yarn_queue: str | None
    deploy_mode: str | None
    use_krb5ccache: bool | None
    post_submit_commands: Sequence[str] | None
    track_driver_via_k8s_api: bool | None
    yarn_track_via_rm_api: bool | None
    yarn_rm_auth: Any
    openlineage_inject_parent_job_info: bool | None
    openlineage_inject_transport_info: bool | None
    durable: bool | None


class SparkTaskArguments(TaskArguments, SparkArguments):
    """Airflow's arguments of an operator, and those of ``SparkSubmitOperator``."""


class _JobArguments(TypedDict, total=False):
    lake_conn_id: str
    engine: Engine
    spark_conn_id: str | None
    skip_if_noop: bool
    on_report: OnReport | Sequence[OnReport] | None
    result_folder: str | None
    deferrable: bool


class WarehouseJobArguments(SparkTaskArguments, _JobArguments):
    """The arguments of every job operator.

    ``LakeWarehouseJobOperator`` documents them, except those of Airflow.
    """


class TableJobArguments(WarehouseJobArguments):
    """The arguments of every operator on one table: ``table``, and those of every job operator."""

    table: str


class _PokeArguments(TypedDict, total=False):
    poke_interval: timedelta | float
    timeout: timedelta | float | None
    soft_fail: bool
    mode: str
    exponential_backoff: bool
    max_wait: timedelta | float | None
    silent_fail: bool
    never_fail: bool


class WaitArguments(TaskArguments, _PokeArguments):
    """Airflow's arguments of a sensor: those of every operator, and those that Airflow's class
    ``BaseSensorOperator`` documents.
    """


class _TableWaitArguments(TypedDict, total=False):
    lake_conn_id: str
    deferrable: bool


class TableSensorArguments(WaitArguments, _TableWaitArguments):
    """The arguments of every sensor; ``LakeTableSensor`` documents them, except those of
    Airflow.
    """

    table: str


class _FunctionArguments(TypedDict, total=False):
    table: str | None
    lake_conn_id: str
    spark_conn_id: str | None
    conf: Mapping[str, Any] | None


class FunctionArguments(AnyTaskArguments, _FunctionArguments, total=False):
    """The arguments of every decorator.

    ``LakeFunctionOperator`` documents them, except those of Airflow.
    """

    task_id: str


class _CallArguments(TypedDict, total=False):
    op_args: Collection[Any] | None
    op_kwargs: Mapping[str, Any] | None
    kwargs_to_upstream: dict[str, Any] | None


class DecoratedArguments(TaskArguments, _CallArguments):
    """The arguments that Airflow's decorators pass to an operator."""

    python_callable: Callable[..., Any]


class FunctionTaskArguments(DecoratedArguments, _FunctionArguments):
    """The arguments of ``LakeFunctionOperator``: those of every decorator, and those that Airflow
    passes.
    """


class TaskGroupArguments(TypedDict, total=False):
    """Airflow's arguments of a task group; Airflow's class ``TaskGroup`` documents each
    argument.
    """

    group_display_name: str
    prefix_group_id: bool
    parent_group: "TaskGroup | None"
    dag: "DAG"
    default_args: Any
    tooltip: str
    doc_md: str | None
    ui_color: str
    ui_fgcolor: str
    add_suffix_on_collision: bool


class DagArguments(TypedDict, total=False):
    """Airflow's arguments of a DAG, for a DAG from a policy; Airflow's class ``DAG`` documents most
    of them.
    """

    description: str | None
    default_args: dict[str, Any]
    start_date: datetime | None
    end_date: datetime | None
    template_searchpath: str | Iterable[str] | None
    template_undefined: "type[StrictUndefined]"
    user_defined_macros: dict[str, Any] | None
    user_defined_filters: dict[str, Any] | None
    max_active_tasks: int
    max_active_runs: int
    max_consecutive_failed_dag_runs: int
    dagrun_timeout: timedelta | None
    deadline: Any
    catchup: bool
    on_success_callback: Callback | list[Callback] | None
    on_failure_callback: Callback | list[Callback] | None
    params: MutableMapping[str, Any] | None
    access_control: dict[str, Any] | None
    is_paused_upon_creation: bool | None
    jinja_environment_kwargs: dict[str, Any] | None
    render_template_as_native_obj: bool
    tags: Collection[str] | None
    owner_links: dict[str, str]
    auto_register: bool
    fail_fast: bool
    allowed_run_types: Any
    dag_display_name: str
    disable_bundle_versioning: bool
    rerun_with_latest_version: bool | None
