"""JSON metadata files, read with errors that name the file and what to do."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

from lakeformat.errors import CorruptTableError, InvalidRequestError, UnsupportedError

__all__ = [
    "NO_JSON",
    "Member",
    "Remedy",
    "decode_json_file",
    "newer_version",
    "read_members",
    "write_members",
]

T = TypeVar("T")

NO_JSON = (ValueError, RecursionError)
"""The errors of ``json.loads`` for a text it cannot read, one nested too deep included."""


class Remedy(StrEnum):
    """The remedy for a broken file: a rollback repairs one kind only."""

    RESTORE = "restore the file from a backup"
    SNAPSHOT = (
        "restore the file from a backup. Without one, and if it is the newest: stop all writers "
        "and move it out of the directory, and the table is at the snapshot before it again; no "
        "rollback does that, as it reads what it takes away"
    )
    SCHEMA = "restore the file from a backup: data written under it cannot be read without it"
    TAG = (
        "restore the file from a backup. Without one: move it out of the directory, and create the "
        "tag again if its snapshot is there still; else what only the tag kept is an orphan then"
    )
    CHANGELOG = "restore the file from a backup, or delete it and lose the changes it leads to"
    CONSUMER = "delete the file, or set the consumer to the snapshot it shall read next"
    STREAM = "delete the file: a batch is looked for among the snapshots alone then"
    STATISTICS = "restore the file from a backup, or run ANALYZE again"
    INTENT = "an expiry left it behind: delete it, and remove orphan files afterwards"


def decode_json_file(
    content: bytes,
    uri: str,
    build: Callable[[dict[str, Any]], T],
    remedy: Remedy = Remedy.RESTORE,
) -> T:
    """Parse a metadata file and build its value; every error names the file."""
    try:
        members = json.loads(content)
    except NO_JSON as reason:
        raise CorruptTableError(
            f"{uri} ({len(content)} bytes) is not JSON: {reason}; {remedy}"
        ) from None
    if not isinstance(members, dict):
        raise CorruptTableError(
            f"{uri} holds {type(members).__name__} where an object belongs; {remedy}"
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
    """The error about a file whose members may mean what this version does not know."""
    return UnsupportedError(
        f"its {kind} version is {found}, this version reads up to {known}: "
        "it was written by a newer version; upgrade this one"
    )


_LONG = range(-(1 << 63), 1 << 63)


@dataclass(frozen=True, slots=True)
class Member:
    """One member: its key in the file, its name here, and the type of its value."""

    key: str
    name: str
    type: type
    required: bool = False

    def checked(self, value: Any) -> Any:
        """The value, or ``ValueError`` when no writer can have meant it."""
        if not isinstance(value, self.type) or isinstance(value, bool):
            raise ValueError(f"{self.key} is {value!r}, not {self.type.__name__}")
        if isinstance(value, int) and value not in _LONG:
            raise ValueError(f"{self.key} is {value}, which does not fit 64 bits")
        if isinstance(value, str):
            value.encode()  # half of a surrogate pair is not text
        return value


def read_members(declared: Sequence[Member], members: Mapping[str, Any]) -> dict[str, Any]:
    """Return values by name; null counts as absent, undeclared members are ignored."""
    return {
        member.name: member.checked(members[member.key])
        for member in declared
        if member.required or members.get(member.key) is not None
    }


def write_members(declared: Sequence[Member], values: object) -> dict[str, Any]:
    """Return the members of an object for a file; absent ones are left out."""
    members = {member.key: getattr(values, member.name) for member in declared}
    return {key: value for key, value in members.items() if value is not None}
