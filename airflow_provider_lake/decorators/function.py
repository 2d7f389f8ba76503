# SPDX-License-Identifier: Apache-2.0
"""The base of tasks that call a function with the open table, and with Spark if the function has an
argument for it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, Unpack

from airflow.sdk.bases.decorator import DecoratedOperator, task_decorator_factory

from airflow_provider_lake.arguments.construction import RefusingConstruction
from airflow_provider_lake.arguments.declared import LakeArgumentError, argument_types
from airflow_provider_lake.arguments.task_arguments import DecoratedArguments
from airflow_provider_lake.hooks.lake import LakeHook
from airflow_provider_lake.jobs.cleared_tasks import LakeRepeatedMixin
from airflow_provider_lake.links import SPARK_KEY, LakeSnapshotLink, LakeSparkLink

if TYPE_CHECKING:
    from airflow.sdk import Context
    from airflow.sdk.bases.decorator import Task

    from lakeformat import Table

_Returned = TypeVar("_Returned")

__all__ = ["LakeDecorator", "LakeFunctionOperator", "lake_decorator"]

_FOR_SPARK = ("spark_conn_id", "conf")


class LakeDecorator(Protocol):
    """The type of a decorator after its arguments were given.

    In the DAG, a call of the decorated function leaves out the arguments that the task passes, such
    as ``table``.
    """

    def __call__(self, function: Callable[..., _Returned], /) -> Task[..., _Returned]:
        """Return the task that calls ``function``."""


class LakeFunctionOperator(LakeRepeatedMixin, DecoratedOperator, metaclass=RefusingConstruction):
    """Runs a function as a task on a table, in the task's process.

    :param table: the table, ``database.table``; a table in the call of the function, such as
        ``count(table=...)``, overrides it. The function gets the open table as its argument
        ``table``. If ``table`` is given here, positional arguments of the call are never taken for
        the argument ``table``
    :param lake_conn_id: connection of type ``lake``. If ``lake_default`` does not exist, the
        warehouse is ``./warehouse``
    :param spark_conn_id: for a function with the argument ``spark``: connection of type ``spark``.
        Default: the Spark connection that the lake's connection names, or ``spark_default``. If
        ``spark_default`` does not exist, Spark runs on this machine, as ``local[*]``
    :param conf: for a function with the argument ``spark``: settings of its Spark session
    """

    template_fields: Sequence[str] = (
        "table",
        "lake_conn_id",
        *_FOR_SPARK,
        *DecoratedOperator.template_fields,
    )
    template_fields_renderers = {  # noqa: RUF012
        **DecoratedOperator.template_fields_renderers,
        "conf": "json",
    }
    operator_extra_links = (LakeSnapshotLink(), LakeSparkLink())
    ui_color = "#e0f2f1"

    skip_if_noop = False
    is_on_spark = False
    """True once this attempt has started Spark."""
    _is_open = False

    def __init__(
        self,
        *,
        table: str | None = None,
        lake_conn_id: str = LakeHook.default_conn_name,
        spark_conn_id: str | None = None,
        conf: Mapping[str, Any] | None = None,
        **kwargs: Unpack[DecoratedArguments],
    ) -> None:
        function = kwargs["python_callable"]
        ours = {"spark"} if table is None else {"spark", "table"}
        given = kwargs.get("op_args") or (), kwargs.get("op_kwargs") or {}
        args, named = _by_name(function, *given, ours=ours)
        asked = dict.fromkeys(name for name in ("table", "spark") if name in _names(function))
        if "spark" in named:
            raise LakeArgumentError(
                f"call {function.__name__}() without spark=...: the task passes it"
            )
        called = named.pop("table", None)
        kwargs["op_args"], kwargs["op_kwargs"] = args, {**named, **asked}
        super().__init__(**kwargs)
        self.op_kwargs = named
        # An argument of the operator is rendered before the table is opened.
        subject = table if called is None else called
        if subject is None:
            raise LakeArgumentError(
                f"task {self.task_id!r} has no table: write @task.{self.job}(table="
                f"'database.table'), or {function.__name__}(table='database.table')"
            )
        self.table = subject
        self.lake_conn_id = lake_conn_id
        self.spark_conn_id = spark_conn_id
        self.conf = conf

    def _hook_apply_defaults(self, *args: Any, **kwargs: Any) -> Any:
        """Apply the default arguments of the DAG. A ``table`` among them names the table of the
        task, and is not added to the arguments of the function's call.
        """
        is_called = "table" in (kwargs.get("op_kwargs") or {})
        stock: Any = super()
        args, kwargs = stock._hook_apply_defaults(*args, **kwargs)
        if not is_called and kwargs.get("op_kwargs"):
            kwargs["op_kwargs"].pop("table", None)
        return args, kwargs

    @classmethod
    def refuse_function(cls, function: Callable[..., Any], given: Collection[str]) -> None:
        """Raise ``LakeArgumentError`` for a function that cannot be a task of this kind, or for an
        argument in ``given`` that has no effect with this function.
        """
        names, task = _names(function), f"@task.{cls.job}: function {function.__name__!r}"
        if inspect.iscoroutinefunction(inspect.unwrap(function)):
            raise LakeArgumentError(f"{task} is async: write 'def' instead of 'async def'")
        if "spark" not in names and (idle := [name for name in _FOR_SPARK if name in given]):
            raise LakeArgumentError(
                f"{task} has no argument 'spark', so {idle[0]!r} has no effect: add the argument, "
                f"or leave out {idle[0]!r}"
            )

    @classmethod
    def _argument_types(cls) -> Mapping[str, Any]:
        return argument_types(cls, LakeFunctionOperator)

    def _subject(self) -> dict[str, str]:
        return {"table": self.table}

    def _may_come(self) -> bool:
        """Return False if the table itself was not found. Return True for any other object that was
        not found: it may exist in a retry.
        """
        return self._is_open

    def _opened(self) -> Table:
        table = self.lake_hook.table(self.table)
        self._is_open = True
        return table

    @contextmanager
    def _spark(self, context: Context) -> Iterator[dict[str, Any]]:
        """Yield ``{"spark": session}`` if the function has the argument ``spark``, else an empty
        dict; stop Spark after the block.
        """
        if "spark" not in _names(self.python_callable):
            yield {}
            return
        from airflow_provider_lake.spark.here import spark_here

        self.is_on_spark = True
        conn_id = self.spark_conn_id or self.lake_hook.lake.spark_conn_id
        name = f"{self.job}.{self._commit_user(context)}"
        with spark_here(name, self.lake_hook, conn_id, self.conf) as session:
            where = {
                "application_id": session.sparkContext.applicationId,
                "ui": session.sparkContext.uiWebUrl,
            }
            context["ti"].xcom_push(SPARK_KEY, where)
            yield {"spark": session}

    def _call_with(self, context: Context, **ours: Any) -> dict[str, Any]:
        """Return the named arguments for the function: those that the DAG gives in its call,
        those that this operator adds (``ours``), and values of the context.
        """
        from airflow_provider_lake.compat import determine_kwargs

        known = {**context, **self.op_kwargs, **ours}
        return dict(determine_kwargs(self.python_callable, self.op_args, known))


def lake_decorator(
    operator: type[LakeFunctionOperator],
    function: Callable[..., Any] | None,
    *,
    multiple_outputs: bool | None,
    given: Mapping[str, Any],
) -> LakeDecorator:
    """Return a decorator, or the decorated function if the decorator is written without
    parentheses. ``given`` are the arguments of the decorator.

    Raise ``LakeArgumentError`` for a wrong argument or function when the DAG is parsed.
    """
    made: Any = task_decorator_factory(
        multiple_outputs=multiple_outputs, decorated_operator_class=operator, **given
    )

    if function is not None and not callable(function):
        raise LakeArgumentError(
            f"@task.{operator.job} takes only named arguments, got {function!r}: write "
            f"@task.{operator.job}(table='database.table')"
        )

    def decorate(function: Callable[..., Any]) -> Any:
        operator.refuse_function(function, given)
        operator._checked(given.get("task_id") or function.__name__, given)
        return made(function)

    decorator: Any = decorate if function is None else decorate(function)
    return decorator  # type: ignore[no-any-return]


def _names(function: Callable[..., Any]) -> Collection[str]:
    return inspect.signature(function).parameters


def _by_name(
    function: Callable[..., Any],
    args: Collection[Any],
    named: Mapping[str, Any],
    *,
    ours: Collection[str],
) -> tuple[Collection[Any], dict[str, Any]]:
    """Return the positional and the named arguments of a call. Each positional argument is moved to
    the named ones, so that no positional argument remains. The arguments in ``ours``, which the
    task passes, take no position.

    The call of a function with ``*args`` or positional-only arguments is returned unchanged. A call
    that does not fit the function is not changed either: Airflow's error then names the wrong
    argument.
    """
    parameters = inspect.signature(function).parameters.values()
    if any(each.kind in (each.POSITIONAL_ONLY, each.VAR_POSITIONAL) for each in parameters):
        return args, dict(named)
    usual = [each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
    places = [name for name in usual if name not in ours][: len(args)]
    if len(places) < len(args) or not named.keys().isdisjoint(places):
        return args, dict(named)
    return (), {**dict(zip(places, args, strict=True)), **named}
