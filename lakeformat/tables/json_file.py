# SPDX-License-Identifier: Apache-2.0
"""Reads and writes JSON metadata files; errors name the file and the next step."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from lakeformat.errors import CorruptTableError, InvalidRequestError, UnsupportedError

__all__ = [
    "NO_JSON",
    "RESTORE",
    "Member",
    "decode_json_file",
    "newer_version",
    "read_members",
    "unknown_members",
    "write_members",
]

T = TypeVar("T")

RESTORE = "restore the file from a backup"
"""The usual next step if a file is damaged."""
NO_JSON = (ValueError, RecursionError)
"""The errors of ``json.loads`` for text that is not JSON or is nested too deeply."""


def decode_json_file(
    content: bytes,
    uri: str,
    build: Callable[[dict[str, Any]], T],
    remedy: str = RESTORE,
) -> T:
    """Parse a metadata file, and return what ``build`` makes of its JSON object.

    A damaged file, or a value that ``build`` refuses, raises ``CorruptTableError``, whose message
    ends with ``remedy``. An ``UnsupportedError`` of ``build`` is raised again. ``uri`` names the
    file in each error.
    """
    try:
        members = json.loads(content)
    except NO_JSON as reason:
        raise CorruptTableError(
            f"{uri} ({len(content)} bytes) is not JSON: {reason}; {remedy}"
        ) from None
    if not isinstance(members, dict):
        raise CorruptTableError(
            f"{uri} holds {_KINDS[type(members)]} instead of a JSON object; {remedy}"
        )
    try:
        return build(members)
    except UnsupportedError as reason:
        raise UnsupportedError(f"{uri}: {reason}") from None
    except KeyError as missing:
        raise CorruptTableError(f"{uri} lacks the member {missing}; {remedy}") from None
    except (InvalidRequestError, TypeError, ValueError, AttributeError) as reason:
        raise CorruptTableError(
            f"{uri} holds a value that is not allowed: {reason}; {remedy}"
        ) from None


def newer_version(kind: str, found: int, known: int) -> UnsupportedError:
    """Return the error for a file of format version ``found``; ``known`` is the highest known
    version.
    """
    return UnsupportedError(
        f"its {kind} version is {found}, but this library reads up to {known}: a newer program "
        "wrote it; upgrade this library"
    )


_LONG = range(-(1 << 63), 1 << 63)
_KINDS: Mapping[type, str] = {
    bool: "a boolean",
    dict: "an object",
    float: "a number",
    int: "a whole number",
    list: "a list",
    str: "a string",
    type(None): "null",
}


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a JSON object: its key, its Python name, and the type of its value."""

    key: str
    name: str
    type: type
    required: bool = False

    def checked(self, value: Any) -> Any:
        """Return the value; raise ``ValueError`` if it has another type or does not fit 64 bits."""
        if not isinstance(value, self.type) or isinstance(value, bool):
            raise ValueError(f"{self.key} is {value!r}, not {_KINDS[self.type]}")
        if isinstance(value, int) and value not in _LONG:
            raise ValueError(f"{self.key} is {value}, which does not fit 64 bits")
        if isinstance(value, str):
            value.encode()  # raises for half of a surrogate pair, which is not text
        return value


def read_members(declared: Sequence[Member], members: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the declared members by their Python names.

    A missing required member raises ``KeyError``. A value of another type, or null for a required
    member, raises ``ValueError``. The result lacks undeclared members, and optional members
    that are missing or null.
    """
    return {
        member.name: member.checked(members[member.key])
        for member in declared
        if member.required or members.get(member.key) is not None
    }


def unknown_members(
    declared: Sequence[Member], members: Mapping[str, Any], undeclared: Iterable[str] = ()
) -> dict[str, Any]:
    """Return the members whose keys are neither in ``declared`` nor in ``undeclared``.

    ``undeclared`` has the known keys that no ``Member`` declares.
    """
    known = {*undeclared, *[member.key for member in declared]}
    return {key: value for key, value in members.items() if key not in known}


def write_members(declared: Sequence[Member], values: object) -> dict[str, Any]:
    """Return a JSON object with the declared attributes of ``values``. Attributes that are None are
    left out.
    """
    members = {member.key: getattr(values, member.name) for member in declared}
    return {key: value for key, value in members.items() if value is not None}
