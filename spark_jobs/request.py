"""How a request is read: each key declared once, everything else refused by name."""

from __future__ import annotations

import difflib
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

if TYPE_CHECKING:
    from lakeformat import InvalidRequestError

__all__ = ["SourceFormat", "declared_keys", "read_request", "refusal", "wanted_text"]

SourceFormat = Literal["parquet", "csv", "json"]

_Request = TypeVar("_Request")


def read_request(kind: type[_Request], given: Mapping[str, Any]) -> _Request:
    """Build a request, or raise an ``InvalidRequestError`` that names everything wrong with it."""
    if not isinstance(given, Mapping):
        raise refusal(f"a request is an object with keys and values, got {given!r}")
    problems = [*_unknown_keys(kind, given), *_missing_keys(kind, given), *_values(kind, given)]
    if problems:
        raise refusal("; ".join(problems))
    return kind(**given)


def declared_keys(kind: type[Any]) -> list[Field[Any]]:
    """The keys of a request, those that must be given first."""
    return sorted(fields(kind), key=lambda field: field.default is not MISSING)


def wanted_text(hint: Any) -> str:
    """What a key takes, in words."""
    if get_origin(hint) in (Union, types.UnionType):
        parts = [part for part in get_args(hint) if part is not type(None)]
        return " or ".join(wanted_text(part) for part in parts)
    if get_origin(hint) is Literal:
        return " or ".join(map(repr, get_args(hint)))
    if get_origin(hint) is Mapping:
        return "an object of texts" if get_args(hint)[1] is str else "an object of values"
    if get_origin(hint) is Sequence:
        return f"a list, each of {wanted_text(get_args(hint)[0])}"
    return _WORDS[hint]


def refusal(reason: str) -> InvalidRequestError:
    """The error of a request that cannot be right; the library is loaded only then."""
    from lakeformat import InvalidRequestError

    return InvalidRequestError(reason)


_WORDS = {
    str: "a text that is not empty",
    bool: "true or false",
    int: "a whole number",
    float: "a number with a point",
}


def _unknown_keys(kind: type[Any], given: Mapping[str, Any]) -> Iterator[str]:
    known = [field.name for field in declared_keys(kind)]
    for key in given:
        if key not in known:
            close = difflib.get_close_matches(str(key), known, n=1)
            meant = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(known)}"
            yield f"unknown key {key!r}: {meant}"


def _missing_keys(kind: type[Any], given: Mapping[str, Any]) -> Iterator[str]:
    for field in fields(kind):
        if field.default is MISSING and field.name not in given:
            yield f"missing key {field.name!r}"


def _values(kind: type[Any], given: Mapping[str, Any]) -> Iterator[str]:
    hidden = {field.name for field in fields(kind) if not field.repr}
    for key, hint in get_type_hints(kind).items():
        if key in given and not _accepts(hint, given[key]):
            got = "what is not shown here" if key in hidden else repr(given[key])
            yield f"key {key!r} wants {wanted_text(hint)}, got {got}"


def _accepts(hint: Any, value: Any) -> bool:
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
        return isinstance(value, list | tuple) and all(_accepts(inner, each) for each in value)
    if hint is str:
        return isinstance(value, str) and bool(value.strip())
    return type(value) is hint  # exact, because True is an int
