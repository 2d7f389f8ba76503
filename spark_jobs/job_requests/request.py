# SPDX-License-Identifier: Apache-2.0
"""Reads a request: each key is declared once as a field of a dataclass, and an unknown key is
refused with the nearest name.
"""

from __future__ import annotations

import os
import types
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from datetime import UTC, date, datetime, timedelta
from functools import cache
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    TypeAlias,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

if TYPE_CHECKING:
    from lakeformat import InvalidRequestError

__all__ = [
    "JsonObject",
    "Rule",
    "alternatives",
    "check_millis",
    "check_values",
    "declared_keys",
    "given_keys",
    "is_moment",
    "key_hints",
    "plain_value",
    "read_request",
    "refusal",
    "shown",
    "wanted_text",
]

_Request = TypeVar("_Request")

JsonObject: TypeAlias = Mapping[str, Any]
"""A request before its check: plain values by key."""

_MILLIS = range(10**10, 10**13)
"""The numbers that are accepted as epoch milliseconds: times from April 1970 to the year 2286. The
present time has ten digits in epoch seconds and sixteen in microseconds, so both are outside.
"""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that the values of a key must obey, in addition to the type of the key. It is the
    second argument of ``Annotated``.
    """

    wanted: str
    """The allowed values as words of a message, such as ``a list of column names``."""
    check: Callable[[Any], object]
    """A function that raises ``ValueError`` or ``LakeError``, with the reason, for a value that is
    not allowed.
    """
    takes_blanks: bool = False
    """True if the texts may be empty or blank, as in the key ``quote``."""


def read_request(kind: type[_Request], given: _Request | JsonObject) -> _Request:
    """Return the request of class ``kind`` with the ``given`` keys; a request of this class is
    returned unchanged.

    Raise one ``InvalidRequestError`` that lists all unknown, missing and wrong keys.
    """
    if isinstance(given, kind):
        return given
    if not isinstance(given, Mapping):
        raise refusal(f"a request must be a JSON object, got {shown(Mapping, given)}")
    hints = key_hints(kind)
    given = {key: plain_value(hints.get(key), value) for key, value in given.items()}
    if strange := [*_unknown_keys(kind, given), *_missing_keys(kind, given)]:
        raise refusal("; ".join([*strange, *_values(kind, given)]))
    return kind(**given)  # checks the values


def given_keys(request: Any) -> dict[str, Any]:
    """Return the keys of a request with their values as a dict for JSON, without values of None.
    ``read_request`` makes an equal request from the dict.
    """
    values = {field.name: getattr(request, field.name) for field in fields(request)}
    return {name: value for name, value in values.items() if value is not None}


def check_values(kind: type[Any], given: JsonObject) -> None:
    """Raise one ``InvalidRequestError`` that lists all ``given`` values that have a wrong type or
    break the rule of their key. Missing and unknown keys, and combinations of keys, are not
    checked.
    """
    if problems := [*_values(kind, given)]:
        raise refusal("; ".join(problems))


def declared_keys(kind: type[Any]) -> list[Field[Any]]:
    """Return the fields of a request class, those without a default first."""
    return sorted(fields(kind), key=lambda field: field.default is not MISSING)


def key_hints(kind: type[Any]) -> Mapping[str, Any]:
    """Return the type hint of each key of a request class; the hint includes the ``Rule`` of the
    key.
    """
    return _hints_of(cast("Hashable", kind))


@cache
def _hints_of(kind: object) -> Mapping[str, Any]:
    return get_type_hints(kind, include_extras=True)


def wanted_text(hint: Any) -> str:
    """Return the values that a type hint allows, as words of a message."""
    if get_origin(hint) is Annotated:
        wanted: str = get_args(hint)[1].wanted
        return wanted
    if get_origin(hint) in (Union, types.UnionType):
        parts = [part for part in get_args(hint) if part is not type(None)]
        return " or ".join(wanted_text(part) for part in parts)
    if get_origin(hint) is Literal:
        return " or ".join(map(repr, get_args(hint)))
    if get_origin(hint) is Mapping:
        return "an object of strings" if get_args(hint)[1] is str else "an object of column values"
    if get_origin(hint) is Sequence:
        return f"a list, each item {wanted_text(get_args(hint)[0])}"
    return _WORDS[hint]


def shown(hint: Any, value: Any) -> str:
    """Format a wrong value for a message; ``hint`` is the type of the key.

    Values that may be secrets are not shown: those of a dict, a text in place of a dict, and a list
    of dicts.
    """
    if isinstance(value, dict):
        return f"a dict with {', '.join(map(repr, value)) or 'nothing in it'}"
    kinds = {get_origin(part) or part for part in alternatives(hint)}
    if isinstance(value, list | tuple):
        fits = Sequence in kinds or kinds.isdisjoint({Mapping, str})
        plain = fits and not any(isinstance(each, dict) for each in value)
        return repr(value) if plain else "a list"
    if isinstance(value, str) and Mapping in kinds:
        return "a str"
    return "bytes" if isinstance(value, bytes) else repr(value)


def alternatives(hint: Any) -> tuple[Any, ...]:
    """Return the types that a value may have: the members of a union, without the rules of
    ``Annotated``.
    """
    if get_origin(hint) is Annotated:
        return alternatives(get_args(hint)[0])
    if get_origin(hint) in (Union, types.UnionType):
        return tuple(part for each in get_args(hint) for part in alternatives(each))
    return (hint,)


def is_moment(hint: Any) -> bool:
    """Return True if ``hint`` is the type of a time: only keys for times take both a text and an
    int.
    """
    return {int, str} <= {*alternatives(hint)}


def plain_value(hint: Any, value: Any) -> Any:
    """Return a date, time, duration or path as the text that ``hint`` takes.

    Values inside a dict, or inside the dicts of a list, are converted, too. Any other value is
    returned unchanged.
    """
    if isinstance(value, date) and is_moment(hint):
        return _moment_text(hint, value)
    kinds = alternatives(hint)
    if isinstance(value, timedelta | os.PathLike) and str in kinds:
        return _text(value)
    if isinstance(value, dict) and Mapping[str, str] in kinds:
        return {key: _text(each) for key, each in value.items()}
    if isinstance(value, dict) and any(map(_names_values, kinds)):
        return {key: _day_text(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        inner = [get_args(kind)[0] for kind in kinds if get_origin(kind) is Sequence]
        if any(map(_names_values, inner)):
            return [plain_value(inner[0], each) for each in value]
    return value


def _names_values(kind: Any) -> bool:
    """Return True for a dict type that allows text as a value, such as the type of a partition."""
    return get_origin(kind) is Mapping and str in alternatives(get_args(kind)[1])


def _day_text(value: Any) -> Any:
    is_day = isinstance(value, date) and not isinstance(value, datetime)
    return value.isoformat() if is_day else value


def _moment_text(hint: Any, value: date) -> Any:
    if not isinstance(value, datetime):
        return value.isoformat()
    if datetime in alternatives(hint):
        return value
    aware = value if value.tzinfo else value.replace(tzinfo=UTC)
    return aware.astimezone(UTC).isoformat()


def _text(value: Any) -> Any:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, bool | int | float | timedelta):
        from lakeformat.types.amounts import setting_text

        return setting_text("a value", value)
    return value


def check_millis(number: int) -> None:
    """Raise ``ValueError`` for a number that is too small or too large for epoch milliseconds."""
    if number < _MILLIS.start:
        raise ValueError(
            "it is too small for epoch milliseconds; it looks like seconds or a number of days"
        )
    if number >= _MILLIS.stop:
        raise ValueError("it is too large for epoch milliseconds; it looks like microseconds")


def refusal(reason: str) -> InvalidRequestError:
    """Return the ``InvalidRequestError`` with this message. ``lakeformat`` is imported only here,
    because a DAG file without mistakes does not need it.
    """
    from lakeformat import InvalidRequestError

    return InvalidRequestError(reason)


_WORDS = {
    str: "a non-empty string",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
}


def _unknown_keys(kind: type[Any], given: JsonObject) -> Iterator[str]:
    known = [field.name for field in declared_keys(kind)]
    for key in given:
        if key not in known:
            import difflib  # only for a message

            close = difflib.get_close_matches(str(key), known, n=1)
            meant = f"did you mean {close[0]!r}?" if close else f"the keys are {', '.join(known)}"
            yield f"unknown key {key!r}: {meant}"


def _missing_keys(kind: type[Any], given: JsonObject) -> Iterator[str]:
    for field in fields(kind):
        if field.default is MISSING and field.name not in given:
            yield f"missing key {field.name!r}"


def _values(kind: type[Any], given: JsonObject) -> Iterator[str]:
    hidden = {field.name for field in fields(kind) if not field.repr}
    for key, hint in key_hints(kind).items():
        if key not in given:
            continue
        value = given[key]
        got = "a value that is not shown" if key in hidden else shown(hint, value)
        if not _accepts(hint, value):
            yield f"key {key!r} must be {wanted_text(hint)}, got {got}"
            continue
        rule = _rule_of(hint, value)
        reason = None if rule is None else _broken(rule, value)
        if rule is not None and reason is not None:
            yield f"key {key!r} must be {rule.wanted}, got {got}" + (
                f": {reason}" if reason else ""
            )


def _rule_of(hint: Any, value: Any) -> Rule | None:
    """Return the rule of the union member that accepts the value; None if that member has no
    rule.
    """
    if get_origin(hint) in (Union, types.UnionType):
        [meant, *_] = [part for part in get_args(hint) if _accepts(part, value)]
        return _rule_of(meant, value)
    if get_origin(hint) is not Annotated:
        return None
    rule: Rule = get_args(hint)[1]
    return rule


def _broken(rule: Rule, value: Any) -> str | None:
    """Return the reason why a value breaks a rule, as text that may be empty; None if the value is
    allowed.
    """
    from lakeformat.errors import LakeError

    try:
        rule.check(value)
    except (ValueError, LakeError) as reason:
        return str(reason)
    return None


def _accepts(hint: Any, value: Any, *, blanks: bool = False) -> bool:
    if get_origin(hint) is Annotated:
        inner, rule = get_args(hint)[:2]
        return _accepts(inner, value, blanks=rule.takes_blanks)
    if get_origin(hint) in (Union, types.UnionType):
        return any(_accepts(part, value) for part in get_args(hint))
    if get_origin(hint) is Literal:
        return isinstance(value, str) and value in get_args(hint)
    if get_origin(hint) is Mapping:
        inner = get_args(hint)[1]
        return isinstance(value, dict) and all(
            isinstance(key, str) and _accepts(inner, each) for key, each in value.items()
        )
    if get_origin(hint) is Sequence:
        inner = get_args(hint)[0]
        return isinstance(value, list | tuple) and all(
            _accepts(inner, each, blanks=blanks) for each in value
        )
    if hint is str:
        return isinstance(value, str) and (blanks or bool(value.strip()))
    if hint is float:
        return type(value) in (int, float)
    return type(value) is hint  # compares exactly, because True is an int
