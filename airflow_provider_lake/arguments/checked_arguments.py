# SPDX-License-Identifier: Apache-2.0
"""Checks the arguments of operators when the DAG is parsed, and again after rendering.

The constructor raises ``LakeArgumentError`` for a value of a wrong type, so the DAG does not
import. A template is accepted; its rendered value is converted to the type of the argument. If that
is not possible, the task fails before any work is submitted, and the error names the argument.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, get_origin

from airflow_provider_lake.arguments.declared import LakeArgumentError, refuse_unknown
from airflow_provider_lake.arguments.open_values import (
    faults_of,
    is_open,
    is_template,
    rendered_texts,
    sources_of,
)
from airflow_provider_lake.arguments.values import fits, readings
from airflow_provider_lake.assets.uri import refuse_shortened, refuse_watched, split_table_name
from airflow_provider_lake.compat import XComNotFound, is_resolved_later
from spark_jobs.job_requests.request import alternatives, is_moment, plain_value

__all__ = ["CheckedArguments", "check_table_name", "checked_arguments", "rendered_argument"]

_NONE = str(None)


class CheckedArguments:
    """Checks the arguments of an operator or sensor by their types, and rendered templates when the
    task runs.

    Each argument is stored in the attribute that ``_attribute_of`` names; by default the argument
    and its attribute have the same name.
    """

    if TYPE_CHECKING:
        task_id: str
        inlets: list[Any]
        outlets: list[Any]
        template_fields: Collection[str]

        @property
        def output(self) -> Any:
            """The result of the task, for a templated argument of another task."""

    _tables_named: ClassVar[tuple[str, ...]] = ("table",)
    """The arguments that name a table of the lake."""
    _never_missing: ClassVar[tuple[str, ...]] = ("older_than", "overwrite", "read_snapshot")
    """The arguments whose template or task result must not give None. With None the task would use
    the default of the argument, and do different work.
    """
    _before: Mapping[str, object] = MappingProxyType({})
    """The values of arguments before rendering, by name: templates, or references to results of
    tasks.
    """

    @classmethod
    def partial(cls, **given: Any) -> Any:
        """Check the arguments that all mapped tasks share; return an object to call ``expand`` on.

        Raises ``LakeArgumentError`` for a wrong argument when the DAG is parsed. Overrides
        Airflow's method.
        """
        from airflow_provider_lake.arguments.expansion import (
            CheckedExpansion,  # only for mapped tasks
        )

        task_id = str(given.get("task_id"))
        values = cls._checked(task_id, given)
        _check_assets(task_id, given.get("inlets"), given.get("outlets"))
        stock: Any = super()
        mapped = stock.partial(**{**given, **values})
        return CheckedExpansion(task_id, mapped, partial(cls._checked, task_id))

    @classmethod
    def _checked(cls, task_id: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments with their values as ``checked_arguments`` converts them. Raise
        ``LakeArgumentError`` for an unknown name or a wrong value.
        """
        refuse_unknown(cls, task_id, given)
        wanted = {name: hint for name, hint in cls._argument_types().items() if name in given}
        values = checked_arguments(task_id, wanted, given)
        cls._check_values(task_id, values)
        for name in cls._tables_named:
            check_table_name(task_id, name, values.get(name))
        return values

    def _do_render_template_fields(self, *given: Any, **named: Any) -> None:
        """Render the templates. Raise ``LakeArgumentError`` for a wrong template or a missing
        result: the task then fails without a retry, which would fail in the same way.
        """
        from jinja2 import TemplateError

        stock: Any = super()
        self._before = {
            name: getattr(self, self._attribute_of(name)) for name in self._open_arguments()
        }
        try:
            stock._do_render_template_fields(*given, **named)
        except TemplateError as reason:
            raise LakeArgumentError(
                f"task {self.task_id!r}: a template of {self._unrendered()} cannot be rendered: "
                f"{type(reason).__name__}: {reason}"
            ) from reason
        except XComNotFound as reason:
            raise LakeArgumentError(
                f"task {self.task_id!r}: {self._missing_result()}, and this result does not exist: "
                "that task was skipped, or pushed no XCom with this key. A returned dict gives an "
                "XCom for each key only with @task(multiple_outputs=True)"
            ) from reason

    def _unrendered(self) -> str:
        """Return the part of a message about the argument whose rendering failed: the first one
        that is still a template.
        """
        left = next(self._open_arguments(), None)
        return "an argument" if left is None else f"argument {left!r}"

    def _missing_result(self) -> str:
        """Return the part of a message that names the missing result and its argument. The method
        takes the first argument that is not rendered yet.
        """
        name = next(self._open_arguments(), "")
        sources = sources_of(getattr(self, self._attribute_of(name), None))
        found = "".join(f" {key!r} of task {task!r}" for task, key in sources[:1])
        return f"argument {name!r} is the result{found}"

    def _open_arguments(self) -> Iterator[str]:
        """Yield the arguments that are not rendered yet, in the order in which Airflow renders."""
        order = {field: number for number, field in enumerate(self.template_fields)}
        names = sorted(
            self._argument_types(), key=lambda name: order.get(self._attribute_of(name), len(order))
        )
        return (name for name in names if is_open(getattr(self, self._attribute_of(name))))

    @classmethod
    @abstractmethod
    def _argument_types(cls) -> Mapping[str, Any]:
        """Return the types of the arguments, by name."""

    @abstractmethod
    def _check_together(self) -> None:
        """Raise ``LakeArgumentError`` for arguments that are valid alone, but not together."""

    def _asked_together(self) -> Mapping[str, Any]:
        """Return the arguments that ``_check_together`` checks. If one of these arguments is known
        only when the task runs, the check waits until then.
        """
        return {name: getattr(self, self._attribute_of(name)) for name in self._argument_types()}

    @classmethod
    def _check_values(cls, task_id: str, given: Mapping[str, Any]) -> None:
        """Raise ``LakeArgumentError`` for a value that has the right type, but is wrong by itself.

        A value that is known only when the task runs is checked at that time.
        """

    @staticmethod
    def _attribute_of(name: str) -> str:
        return name

    def _check_arguments(self) -> None:
        """Check all arguments at the end of a constructor; raise ``LakeArgumentError`` for a wrong
        value, so that the DAG does not import.
        """
        wanted = self._argument_types()
        found = {name: getattr(self, self._attribute_of(name)) for name in wanted}
        given = checked_arguments(self.task_id, wanted, found)
        for name, value in given.items():
            if value is not found[name]:
                setattr(self, self._attribute_of(name), value)
        self._check_values(self.task_id, given)
        self._check_subject()
        _check_assets(self.task_id, self.inlets, self.outlets)
        if not is_open(self._asked_together()):
            self._check_together()

    def _take_rendered(self) -> None:
        """Convert each rendered argument to its type, and check all arguments; raise
        ``LakeArgumentError`` for a wrong value.
        """
        taken = {}
        for name, hint in self._argument_types().items():
            attribute = self._attribute_of(name)
            value, before = getattr(self, attribute), self._before.get(name)
            if before is not None:
                self._refuse_none(name, hint, value, before)
            if value is None and name in self._never_missing:
                self._refuse_missing(name, before)
            taken[name] = rendered_argument(self.task_id, name, hint, value, before=before)
            setattr(self, attribute, taken[name])
        self._check_values(self.task_id, taken)
        self._check_subject()
        try:
            self._check_together()
        except LakeArgumentError as reason:
            raise LakeArgumentError(f"{reason}{self._missing_results(taken)}") from None

    def _missing_results(self, taken: Mapping[str, Any]) -> str:
        """Return the end of a message: the arguments that are None because another task returned
        nothing. Empty if there are none.
        """
        return "".join(
            f"; argument {name!r} is None, because task {task!r} was skipped or returned None"
            for name, before in self._before.items()
            for task, _ in sources_of(before)[:1]
            if taken[name] is None
        )

    def _refuse_none(self, name: str, hint: Any, value: Any, before: object) -> None:
        """Raise ``LakeArgumentError`` if a template has rendered a missing value as the text
        ``None``, also inside a dict or list.
        """
        found = rendered_texts(before, value)
        if isinstance(value, str):
            is_text = str in alternatives(hint) and not is_moment(hint)
            found = iter([("", value)] if is_text else ())
        for place, text in found:
            parts = text.split(".")[:2] if name in self._tables_named else [text]
            if _NONE in parts:
                raise LakeArgumentError(
                    f"task {self.task_id!r}: argument {name!r} renders to {text!r}{place}: the "
                    "value that its template uses is missing in this run. Correct the template, or "
                    "give the value a default"
                )

    def _refuse_missing(self, name: str, before: object) -> None:
        """Raise ``LakeArgumentError`` for an argument that became None when it was rendered.

        ``before`` is its value before: a template, or the result of another task.
        """
        if is_template(before):
            raise LakeArgumentError(
                f"task {self.task_id!r}: argument {name!r} renders to None. Nothing was done, "
                f"because None would select the default of {name!r}. Correct the template. If you "
                f"want the default, use another task without {name!r}"
            )
        for task, _ in sources_of(before)[:1]:
            raise LakeArgumentError(
                f"task {self.task_id!r}: argument {name!r} is None, because task {task!r} was "
                "skipped or has no such result. Nothing was done, because None would select the "
                f"default of {name!r}. Pass another value, or skip this task"
            )

    def _check_subject(self) -> None:
        """Raise ``LakeArgumentError`` for an invalid table name; skip a name that is known only
        when the task runs.
        """
        for argument in self._tables_named:
            check_table_name(self.task_id, argument, getattr(self, argument, None))


def check_table_name(task_id: str, argument: str, name: Any) -> None:
    """Raise ``LakeArgumentError`` unless ``name`` is ``database.table``. None, and a name that is
    known only when the task runs, are accepted.
    """
    if name is None or is_open(name):
        return
    try:
        split_table_name(name)
    except ValueError as reason:
        advice = {0: "", 1: f": {reason}"}.get(name.count("."), _without_catalog(name))
        if name.startswith("lake://"):
            place = name.partition("?")[0].split("/")[2:]
            advice = f": write {'.'.join(place)!r} instead of the asset's URI"
        elif "$" in name and "$branch_" not in name:
            advice = f": a job works on the table itself: write {name.partition('$')[0]!r}"
        raise LakeArgumentError(
            f"task {task_id!r}: argument {argument!r} must be database.table, got {name!r}{advice}"
        ) from None


def _without_catalog(name: str) -> str:
    return f": write {'.'.join(name.split('.')[-2:])!r}, because the connection names the lake"


def _check_assets(task_id: str, inlets: Any, outlets: Any) -> None:
    """Raise ``LakeArgumentError`` if Airflow has dropped a part of an asset's URI, and for outlets
    that have watchers or that Airflow would ignore.
    """
    try:
        refuse_shortened([*_listed(inlets), *_listed(outlets)])
        refuse_watched(_listed(outlets))
    except ValueError as reason:
        raise LakeArgumentError(f"task {task_id!r}: the asset {reason}") from None
    _check_outlets(task_id, _listed(outlets))


def _check_outlets(task_id: str, outlets: Sequence[Any]) -> None:
    """Raise ``LakeArgumentError`` for outlets given as text, which Airflow ignores, and for two
    assets of one table, because Airflow keeps only one.
    """
    if any(isinstance(outlet, str) for outlet in outlets):
        raise LakeArgumentError(
            f"task {task_id!r}: argument 'outlets' must be a list of assets, and Airflow ignores a "
            "str: write [lake_asset('database.table')]"
        )
    found: dict[str, Any] = {}
    for outlet in outlets:
        uri = getattr(outlet, "uri", None)
        if uri is not None and found.setdefault(uri, outlet) is not outlet:
            raise LakeArgumentError(
                f"task {task_id!r}: argument 'outlets' has two assets of {uri!r}: keep one of them"
            )


def _listed(assets: Any) -> Sequence[Any]:
    return assets if isinstance(assets, list | tuple) else [assets]


def checked_arguments(
    task_id: str, wanted: Mapping[str, Any], given: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the ``given`` values by name, with dates, durations and paths as text.

    Raise ``LakeArgumentError`` for the first value that does not have the type in ``wanted``.
    Values that are known only when the task runs are accepted.
    """
    values = {name: plain_value(hint, given[name]) for name, hint in wanted.items()}
    for name, hint in wanted.items():
        _warn_of_no_zone(task_id, name, hint, given[name])
        for fault in faults_of(values[name]):
            raise LakeArgumentError(f"task {task_id!r}: argument {name!r} {fault}")
        if not _may_become(hint, values[name]):
            raise _refusal(task_id, name, hint, values[name])
    return values


def _warn_of_no_zone(task_id: str, name: str, hint: Any, value: Any) -> None:
    if isinstance(value, datetime) and value.tzinfo is None and is_moment(hint):
        warnings.warn(
            f"task {task_id!r}: argument {name!r} is {value}, which has no time zone and is read "
            "as UTC: write datetime(…, tzinfo=UTC)",
            stacklevel=2,
        )


def rendered_argument(
    task_id: str, name: str, hint: Any, value: Any, *, before: object = None
) -> Any:
    """Return the rendered value of an argument, converted to the type ``hint``.

    Raise ``LakeArgumentError`` if the value cannot be converted. ``before`` is the template, or the
    reference to a task's result, for the message.
    """
    for candidate in readings(hint, value):
        if fits(hint, candidate):
            return candidate
    raise _refusal(task_id, name, hint, value, before)


def _refusal(
    task_id: str, name: str, hint: Any, value: Any, before: object = None
) -> LakeArgumentError:
    from airflow_provider_lake.arguments.refusal import refusal_of  # only for a message

    return LakeArgumentError(f"task {task_id!r}: {refusal_of(name, hint, value, before=before)}")


def _may_become(hint: Any, value: Any) -> bool:
    """Return True if a value has the type ``hint``, or may have it once the templates and task
    results inside are known.
    """
    if is_resolved_later(value) or is_template(value):
        return True
    if isinstance(value, list | tuple) and any(is_open(each) for each in value):
        return any(get_origin(part) is Sequence for part in alternatives(hint))
    if isinstance(value, dict) and any(is_open(each) for each in value.values()):
        return any(get_origin(part) in (Mapping, Sequence) for part in alternatives(hint))
    return fits(hint, value)
