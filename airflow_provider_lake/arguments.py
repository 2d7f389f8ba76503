"""Checks the arguments of operators when the DAG is parsed, and again after rendering.

The constructor refuses a value of a wrong type, so the DAG does not import. A template is accepted;
its rendered value is converted to the type of the argument, or refused by name before anything is
submitted.
"""

from __future__ import annotations

import inspect
import json
import re
import types
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cache
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Literal,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from airflow_provider_lake.assets.uri import refuse_shortened, refuse_watched, split_table_name
from airflow_provider_lake.compat import AirflowFailException, is_resolved_later
from spark_jobs.job_requests.request import alternatives, is_moment, plain_value, shown

__all__ = [
    "CheckedArguments",
    "LakeArgumentError",
    "argument_names",
    "argument_types",
    "checked_arguments",
    "is_open",
    "named_arguments",
    "rendered_argument",
]

_TEMPLATE_MARKS = ("{{", "{%", "{#")
_AGE = re.compile(r"\d+\s*[A-Za-zµ]+")
# Up to the year 2286: a number with more digits is in microseconds, or a date and time.
_MILLIS = re.compile(r"\d{11,13}")
_NONE = str(None)
_TIME = "a time such as '2024-01-31 10:00', {}or epoch milliseconds"
_WORDS = {
    str: "a non-empty str",
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    datetime: "a datetime",
}


class LakeArgumentError(AirflowFailException, TypeError):
    """An argument is wrong: the DAG does not import, or the task fails without a retry."""


def named_arguments(constructor: Any) -> dict[str, inspect.Parameter]:
    """Return a constructor's arguments by name, also behind Airflow's wrapper for
    ``default_args``.
    """
    return {
        name: parameter
        for name, parameter in inspect.signature(inspect.unwrap(constructor)).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }


def argument_names(constructor: Any) -> list[str]:
    """Return the names of a constructor's arguments."""
    return [*named_arguments(constructor)]


class CheckedArguments:
    """For an operator or a sensor whose arguments have types; templates are checked after
    rendering.

    Each argument is stored under its name, or under the name that ``_attribute_of`` returns.
    """

    if TYPE_CHECKING:
        task_id: str
        inlets: list[Any]
        outlets: list[Any]

        @property
        def output(self) -> Any:
            """The result of the task, which every argument of another task takes."""

    _tables_named: ClassVar[tuple[str, ...]] = ("table",)
    """The arguments that name a table of the lake."""
    _were_open: frozenset[str] = frozenset()
    """The arguments that were templates, or results of tasks, before this attempt."""

    @classmethod
    def partial(cls, **given: Any) -> Any:
        """Check the shared arguments of mapped tasks when the DAG is parsed; overrides Airflow's
        method.
        """
        wanted = {name: hint for name, hint in cls._argument_types().items() if name in given}
        values = checked_arguments(str(given.get("task_id")), wanted, given)
        cls._check_values(str(given.get("task_id")), values)
        _check_assets(str(given.get("task_id")), given.get("inlets"), given.get("outlets"))
        stock: Any = super()
        return stock.partial(**{**given, **values})

    def _do_render_template_fields(self, *given: Any, **named: Any) -> None:
        """Render templates; a failure is not retried, because a retry would fail the same way."""
        from jinja2 import TemplateError

        stock: Any = super()
        self._were_open = frozenset(self._open_arguments())
        try:
            stock._do_render_template_fields(*given, **named)
        except TemplateError as reason:
            raise LakeArgumentError(
                f"task {self.task_id!r}: a template of {self._unrendered()} cannot be rendered: "
                f"{type(reason).__name__}: {reason}"
            ) from reason

    def _unrendered(self) -> str:
        """Return the first argument that is still a template, which is where rendering failed."""
        left = next(self._open_arguments(), None)
        return "an argument" if left is None else f"argument {left!r}"

    def _open_arguments(self) -> Iterator[str]:
        names = (name for name in self._argument_types())
        return (name for name in names if is_open(getattr(self, self._attribute_of(name))))

    @classmethod
    @abstractmethod
    def _argument_types(cls) -> Mapping[str, Any]:
        """Return the types of the arguments, by name."""

    @abstractmethod
    def _check_together(self) -> None:
        """Refuse arguments that are valid alone, but not together."""

    def _asked_together(self) -> Mapping[str, Any]:
        """Return the values that ``_check_together`` checks, without those that are still
        unknown.
        """
        return {name: getattr(self, self._attribute_of(name)) for name in self._argument_types()}

    @classmethod
    def _check_values(cls, task_id: str, given: Mapping[str, Any]) -> None:
        """Refuse a value of the right type that is wrong for any values of the other arguments.

        A value that is only known when the task runs is checked at that time.
        """

    @staticmethod
    def _attribute_of(name: str) -> str:
        return name

    def _check_arguments(self) -> None:
        """Check all arguments at the end of a constructor: with a wrong value the DAG does not
        import.
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
        """Convert each rendered argument to its type, or fail the task."""
        taken = {}
        for name, hint in self._argument_types().items():
            attribute = self._attribute_of(name)
            if name in self._were_open:
                self._refuse_none(name, hint, getattr(self, attribute))
            taken[name] = rendered_argument(self.task_id, name, hint, getattr(self, attribute))
            setattr(self, attribute, taken[name])
        self._check_values(self.task_id, taken)
        self._check_subject()
        self._check_together()

    def _refuse_none(self, name: str, hint: Any, value: Any) -> None:
        """Refuse the text ``None`` that a template renders from a missing value.

        The text ``None`` in the DAG itself is accepted, because it may be a name.
        """
        if str not in alternatives(hint) or is_moment(hint) or not isinstance(value, str):
            return
        parts = value.split(".")[:2] if name in self._tables_named else ["", value]
        if len(parts) == 2 and _NONE in parts:
            raise LakeArgumentError(
                f"task {self.task_id!r}: argument {name!r} renders to {value!r}: the value that "
                "its template uses is missing in this run"
            )

    def _check_subject(self) -> None:
        """Refuse an invalid table name as soon as it is known."""
        for argument in self._tables_named:
            name = getattr(self, argument, None)
            if name is None or is_open(name):
                continue
            try:
                split_table_name(name)
            except ValueError as reason:
                why = f": {reason}" if name.count(".") == 1 else ""
                raise LakeArgumentError(
                    f"task {self.task_id!r}: argument {argument!r} must be database.table, got "
                    f"{name!r}{why}"
                ) from None


def _check_assets(task_id: str, inlets: Any, outlets: Any) -> None:
    """Refuse an asset whose URI Airflow has shortened, and an outlet that has watchers."""
    try:
        refuse_shortened([*_listed(inlets), *_listed(outlets)])
        refuse_watched(_listed(outlets))
    except ValueError as reason:
        raise LakeArgumentError(f"task {task_id!r}: the asset {reason}") from None


def _listed(assets: Any) -> Sequence[Any]:
    return assets if isinstance(assets, list | tuple) else [assets]


@cache
def argument_types(operator: type[Any], base: type[Any]) -> Mapping[str, Any]:
    """Return the types of the arguments that an operator and its base classes up to ``base``
    declare.
    """
    classes = operator.__mro__[: operator.__mro__.index(base) + 1]
    return {
        name: hint
        for each in reversed(classes)
        if "__init__" in vars(each)
        for name, hint in _declared(vars(each)["__init__"])
    }


def _declared(constructor: Any) -> Iterator[tuple[str, Any]]:
    hints = get_type_hints(inspect.unwrap(constructor))
    return ((name, hints[name]) for name in argument_names(constructor))


def checked_arguments(
    task_id: str, wanted: Mapping[str, Any], given: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the values of arguments, those of Python's own types as text; refuse the first one
    that is wrong and already known.
    """
    values = {name: plain_value(hint, given[name]) for name, hint in wanted.items()}
    for name, hint in wanted.items():
        if not _may_become(hint, values[name]):
            raise LakeArgumentError(_refusal(task_id, name, hint, values[name]))
    return values


def rendered_argument(task_id: str, name: str, hint: Any, value: Any) -> Any:
    """Return the value of an argument after rendering; text is converted to the type of the
    argument.
    """
    for candidate in _readings(hint, value):
        if _fits(hint, candidate):
            return candidate
    raise LakeArgumentError(_refusal(task_id, name, hint, value))


def _refusal(task_id: str, name: str, hint: Any, value: Any) -> str:
    got = _members(hint, value) if isinstance(value, dict) else shown(hint, value)
    return f"task {task_id!r}: argument {name!r} must be {_in_words(hint)}, got {got}"


def _members(hint: Any, value: Mapping[Any, Any]) -> str:
    """Return the names of the wrong members of a dict; its values may be secrets."""
    wrong = {key: each for key, each in value.items() if not _fits(hint, {key: each})} or value
    words = [f"{key!r}{' empty' if each == '' else ''}" for key, each in wrong.items()]
    return f"a dict with {', '.join(words)}"


def _may_become(hint: Any, value: Any) -> bool:
    """Return True if a value is valid, or contains a template or a value that is known at run
    time.
    """
    if is_resolved_later(value) or _is_template(value):
        return True
    if isinstance(value, list | tuple) and any(is_open(each) for each in value):
        return any(get_origin(part) is Sequence for part in alternatives(hint))
    if isinstance(value, dict) and any(is_open(each) for each in value.values()):
        return any(get_origin(part) in (Mapping, Sequence) for part in alternatives(hint))
    return _fits(hint, value)


def _is_template(value: Any) -> bool:
    return isinstance(value, str) and any(mark in value for mark in _TEMPLATE_MARKS)


def is_open(value: Any) -> bool:
    """Return True if a value, or a value inside it, is only known when the task runs."""
    if isinstance(value, dict):
        return any(is_open(each) for each in value.values())
    if isinstance(value, list | tuple):
        return any(is_open(each) for each in value)
    return is_resolved_later(value) or _is_template(value)


def _fits(hint: Any, value: Any) -> bool:
    """Return True if a value is valid; a text for a time must be a valid time."""
    if not _accepts(hint, value):
        return False
    if not (is_moment(hint) and isinstance(value, str)):
        return True
    if _AGE.fullmatch(value.strip()):
        return datetime not in alternatives(hint)
    with suppress(ValueError):
        return bool(datetime.fromisoformat(value.strip()))
    return False


def _accepts(hint: Any, value: Any) -> bool:
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return any(_accepts(part, value) for part in get_args(hint))
    if origin is Literal:
        return isinstance(value, str) and value in get_args(hint)
    if origin is Callable:
        return callable(value)
    if origin is Mapping:
        inner = get_args(hint)[1]
        return isinstance(value, dict) and all(
            isinstance(key, str) and _accepts(inner, each) for key, each in value.items()
        )
    if origin is Sequence:
        inner = get_args(hint)[0]
        return isinstance(value, list | tuple) and all(_accepts(inner, each) for each in value)
    if hint is str:
        return isinstance(value, str) and bool(value.strip())
    if hint is float:
        return type(value) in (int, float)
    if hint is datetime:
        return isinstance(value, datetime)
    return type(value) is hint or hint is Any  # compares exactly, because True is an int


def _readings(hint: Any, value: Any) -> Sequence[Any]:
    """Return the possible values: the value itself, and the values that a rendered text may
    mean.
    """
    value = plain_value(hint, value)
    if not isinstance(value, str):
        return (value,)
    wanted = alternatives(hint)
    if is_moment(hint):  # "7" is not converted, so that the library refuses it and asks for a unit
        return (int(value) if _MILLIS.fullmatch(value.strip()) else value,)
    readings: list[Any] = [value]
    if bool in wanted and value.strip().lower() in ("true", "false"):
        readings.append(value.strip().lower() == "true")
    if any(each in (int, float) or get_origin(each) in (Mapping, Sequence) for each in wanted):
        with suppress(ValueError):
            readings.append(json.loads(value))
    return readings


def _in_words(hint: Any) -> str:
    origin = get_origin(hint)
    if is_moment(hint):
        return _TIME.format("" if datetime in alternatives(hint) else "an age such as '7 d', ")
    if origin in (Union, types.UnionType):
        parts = [part for part in get_args(hint) if part is not type(None)]
        return " or ".join(dict.fromkeys(_in_words(part) for part in parts))
    if origin is Literal:
        return " or ".join(map(repr, get_args(hint)))
    if origin is Callable:
        return "a function"
    if origin is Mapping:
        return "a dict" + (" of str" if get_args(hint)[1] is str else "")
    if origin is Sequence:
        return f"a list, each {_in_words(get_args(hint)[0])}"
    return _WORDS.get(hint, str(hint))
