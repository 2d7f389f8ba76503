# SPDX-License-Identifier: Apache-2.0
"""The arguments of an operator: the names and types in its constructors."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, get_type_hints

from airflow_provider_lake.compat import AirflowFailException

__all__ = [
    "LakeArgumentError",
    "all_arguments",
    "argument_names",
    "argument_types",
    "named_arguments",
    "refuse_unknown",
]


_OF_OTHER_OPERATORS = {
    "csv_options": ("delimiter", "quote", "escape", "header", "null_values", "encoding"),
    "copy_options": ("overwrite", "on_schema_change"),
    "field_delimiter": ("delimiter",),
    "file_format": ("format",),
    "mode": ("overwrite",),
    "sep": ("delimiter",),
}
"""Names of arguments in operators of other providers, each with the arguments to use here."""


class LakeArgumentError(AirflowFailException, TypeError):
    """An argument of an operator is wrong: the DAG does not import, or the task fails without a
    retry.
    """


def named_arguments(constructor: Any) -> dict[str, inspect.Parameter]:
    """Return the keyword arguments of a constructor by name, also if Airflow has wrapped the
    constructor to fill in ``default_args``.
    """
    return {
        name: parameter
        for name, parameter in inspect.signature(inspect.unwrap(constructor)).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }


def argument_names(constructor: Any) -> list[str]:
    """Return the names of a constructor's keyword arguments."""
    return [*named_arguments(constructor)]


def all_arguments(operator: type[Any]) -> dict[str, inspect.Parameter]:
    """Return all arguments of an operator and its base classes by name, those of its own class
    first.
    """
    known: dict[str, inspect.Parameter] = {}
    for each in operator.__mro__:
        if "__init__" in vars(each):
            for name, parameter in named_arguments(vars(each)["__init__"]).items():
                known.setdefault(name, parameter)
    return known


def refuse_unknown(operator: type[Any], task_id: object, given: Iterable[str]) -> None:
    """Raise ``LakeArgumentError`` for the first name in ``given`` that is not an argument of the
    operator; the message suggests a similar name, if there is one.
    """
    known = all_arguments(operator)
    for name in given:
        if name not in known:
            raise LakeArgumentError(
                f"task {task_id!r}: {_shown_name(operator)} has no argument {name!r}"
                f"{_instead(name, known)}"
            )


def _instead(name: str, known: Mapping[str, object]) -> str:
    from lakeformat.types.closest import closest  # only for a message

    ours = [each for each in _OF_OTHER_OPERATORS.get(name, ()) if each in known]
    return f": use {', '.join(ours)}" if ours else closest(name, known)


def _shown_name(operator: type[Any]) -> str:
    return getattr(operator, "custom_operator_name", None) or operator.__name__


@cache
def argument_types(operator: type[Any], base: type[Any]) -> Mapping[str, Any]:
    """Return the types of an operator's arguments, by name. The arguments are those of its own
    class and of the base classes up to and including ``base``.
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
