# SPDX-License-Identifier: Apache-2.0
"""Refuses arguments that a function does not have, and names the most similar argument."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Sequence

from lakeformat.errors import InvalidRequestError
from lakeformat.types.closest import closest

__all__ = ["refuse_call", "refuse_unknown"]

_OF_OTHER_LIBRARIES = {
    ("write", "mode"): "rows are added by default; overwrite='table', overwrite='partitions' or "
    "overwrite={'dt': '2024-01-01'} replaces rows",
    ("scan", "filter"): 'write the condition in where, as in where="amount > 10"',
    ("update", "updates"): "write the new values in set, as in set={'amount': 0}",
}
"""Advice for arguments that other libraries have, by method and argument."""


def refuse_call(
    function: Callable[..., object], args: Sequence[object], named: Collection[str]
) -> None:
    """Raise ``InvalidRequestError`` for an argument in ``named`` that the function does not have.

    Also raise it for an argument in ``named`` that ``args`` already gives by position. Do nothing
    if the call is wrong for another reason.
    """
    parameters = inspect.signature(function).parameters.values()
    if any(each.kind is each.VAR_KEYWORD for each in parameters):
        return  # the function itself refuses an unknown argument
    refuse_unknown(function, named)
    in_order = [each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
    for name in in_order[: len(args)]:
        if name in named:
            order = ", ".join(each for each in in_order if each != "self")
            raise InvalidRequestError(
                f"{function.__name__} got {name!r} twice, by position and by name. The order of "
                f"its arguments is {order}: give each by name"
            )


def refuse_unknown(method: Callable[..., object], given: Iterable[str]) -> None:
    """Raise ``InvalidRequestError`` for the first name in ``given`` that is not an argument of a
    method.
    """
    parameters = inspect.signature(method).parameters.values()
    known = [
        each.name
        for each in parameters
        if each.name != "self" and each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)
    ]
    operation = getattr(method, "__name__", "the call")
    for name in given:
        if name in known:
            continue
        advice = _OF_OTHER_LIBRARIES.get((operation, name))
        others = f": use one of {', '.join(known)}" if known else ": it takes no arguments"
        near = f": {advice}" if advice else closest(name, known) or others
        raise InvalidRequestError(f"{operation} has no argument {name!r}{near}")
