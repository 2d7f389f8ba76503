"""What the text of an option may be, and how it becomes a value."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

__all__ = [
    "BOOLEAN",
    "BUCKETS",
    "DURATION",
    "FILE_NAME_PART",
    "RELATIVE_PATH",
    "SIZE",
    "STATISTICS_MODE",
    "Kind",
    "one_of",
    "whole_number",
]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """How the text of an option becomes a value."""

    name: str
    parse: Callable[[str], T]


_SIZE = re.compile(r"(\d+)\s*([a-z]*)")
_SIZE_UNITS = {
    **dict.fromkeys(("", "b", "bytes"), 1),
    **dict.fromkeys(("k", "kb", "kibibytes"), 1 << 10),
    **dict.fromkeys(("m", "mb", "mebibytes"), 1 << 20),
    **dict.fromkeys(("g", "gb", "gibibytes"), 1 << 30),
    **dict.fromkeys(("t", "tb", "tebibytes"), 1 << 40),
}
_DURATION_UNITS = {
    **dict.fromkeys(("", "ms", "milli", "millis", "millisecond", "milliseconds"), 1),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1_000),
    **dict.fromkeys(("min", "m", "minute", "minutes"), 60_000),
    **dict.fromkeys(("h", "hour", "hours"), 3_600_000),
    **dict.fromkeys(("d", "day", "days"), 86_400_000),
}


def _with_unit(units: Mapping[str, int]) -> Callable[[str], int]:
    def parse(text: str) -> int:
        found = _SIZE.fullmatch(text.strip().lower())
        if found is None or found[2] not in units:
            known = ", ".join(unit for unit in units if unit)
            raise ValueError(f"write a number and a unit out of {known}")
        return int(found[1]) * units[found[2]]

    return parse


def whole_number(low: int, high: int) -> Kind[int]:
    """A number between two bounds, both included."""

    def parse(text: str) -> int:
        value = int(text)
        if not low <= value <= high:
            raise ValueError("out of range")
        return value

    return Kind(str(low) if low == high else f"a whole number from {low} to {high}", parse)


def one_of(*values: str) -> Kind[str]:
    """One word out of a list, whatever its letter case."""

    def parse(text: str) -> str:
        value = text.strip().lower()
        if value not in values:
            raise ValueError("this version writes no other")
        return value

    return Kind(" or ".join(values), parse)


def _statistics_mode(text: str) -> str:
    value = text.strip().lower()
    found = re.fullmatch(r"truncate\((\d+)\)", value)
    if value in ("none", "counts", "full") or (found and int(found[1]) > 0):
        return value
    raise ValueError("nothing else says which statistics to keep")


def _file_name_part(text: str) -> str:
    if not text or "/" in text or not text.isprintable():
        raise ValueError("it becomes part of a file name")
    return text


def _buckets(text: str) -> int:
    value = int(text)
    if value not in (UNAWARE, POSTPONE) and not 1 <= value < 2**31:
        raise ValueError("there is no such number of buckets")
    return value


UNAWARE, POSTPONE = -1, -2
BUCKETS: Kind[int] = Kind("-1, -2 or a number of buckets", _buckets)
SIZE: Kind[int] = Kind("a size such as '128 mb'", _with_unit(_SIZE_UNITS))
DURATION: Kind[int] = Kind("a duration such as '10 s'", _with_unit(_DURATION_UNITS))


def _boolean(text: str) -> bool:
    value = text.strip().lower()
    if value not in ("true", "false"):
        raise ValueError("it is neither")
    return value == "true"


BOOLEAN: Kind[bool] = Kind("true or false", _boolean)
STATISTICS_MODE: Kind[str] = Kind("none, counts, truncate(n) or full", _statistics_mode)


def _relative_path(text: str) -> str:
    parts = text.strip("/").split("/")
    if text and any(part in ("", ".", "..") for part in parts):
        raise ValueError("it leads out of the table")
    return text.strip("/")


RELATIVE_PATH: Kind[str] = Kind("a path below the table", _relative_path)
FILE_NAME_PART: Kind[str] = Kind("printable text without '/'", _file_name_part)
