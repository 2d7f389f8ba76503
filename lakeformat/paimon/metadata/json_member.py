"""What a member of a JSON metadata file is called and may hold, declared once for both ways."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Member", "read_members", "write_members"]

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
            value.encode()  # half of a surrogate pair is no text
        return value


def read_members(declared: Sequence[Member], members: Mapping[str, Any]) -> dict[str, Any]:
    """Values by name; null counts as absent, whatever is not declared is ignored."""
    return {
        member.name: member.checked(members[member.key])
        for member in declared
        if member.required or members.get(member.key) is not None
    }


def write_members(declared: Sequence[Member], values: object) -> dict[str, Any]:
    """What a file holds of an object; absent members are left out, Java reads null as text."""
    members = {member.key: getattr(values, member.name) for member in declared}
    return {key: value for key, value in members.items() if value is not None}
