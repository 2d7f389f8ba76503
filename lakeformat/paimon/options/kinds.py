# SPDX-License-Identifier: Apache-2.0
"""The values that an option may have, and their parsers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import tzinfo
from typing import Generic, TypeVar

from lakeformat.types.amounts import parse_duration, parse_size

__all__ = [
    "ADDRESSES",
    "BOOLEAN",
    "BUCKETS",
    "COLUMN_NAMES",
    "DURATION",
    "FILE_NAME_PART",
    "OPTIONAL_DURATION",
    "OPTIONAL_MILLIS",
    "OPTIONAL_NUMBER",
    "OPTIONAL_SIZE",
    "OPTIONAL_SNAPSHOT",
    "POSTPONE_BUCKET",
    "RATIO",
    "RELATIVE_PATH",
    "SCHEME",
    "SIZE",
    "STATISTICS_MODE",
    "TEXT",
    "TIME_ZONE",
    "TIME_ZONE_NAME",
    "UNAWARE_BUCKET",
    "WEIGHTS",
    "Kind",
    "one_of",
    "or_unset",
    "per_level",
    "whole_number",
]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """A kind of option value: its name in error messages, and its parser.

    ``parse`` returns the value of a text, and raises ValueError for an invalid text.
    """

    name: str
    parse: Callable[[str], T]


_MOST = 2**63 - 1
"""The latest time in milliseconds since 1970: other engines store a time in 64 bits."""
_INTEGER = re.compile(r"[+-]?[0-9]+")
_LEVEL = re.compile(r"[0-9]{1,9}")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/.*")
_SCHEME_NAME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")


def _integer(text: str) -> int:
    if not _INTEGER.fullmatch(text.strip()):
        raise ValueError("it is not a whole number")
    return int(text)


def whole_number(low: int, high: int) -> Kind[int]:
    """Return the kind of whole numbers from ``low`` to ``high``, both inclusive."""

    def parse(text: str) -> int:
        value = _integer(text)
        if not low <= value <= high:
            raise ValueError("out of range")
        return value

    return Kind(str(low) if low == high else f"a whole number from {low} to {high}", parse)


def one_of(*values: str) -> Kind[str]:
    """Return the kind whose values are the words ``values``; upper case is read as lower case."""

    def parse(text: str) -> str:
        value = text.strip().lower()
        if value not in values:
            raise ValueError("this version supports no other")
        return value

    return Kind(" or ".join(values), parse)


def or_unset(kind: Kind[str]) -> Kind[str]:
    """Return a kind that accepts the values of ``kind``, and the empty text.

    The empty text means that the option is not set.
    """
    return Kind(f"{kind.name}, or empty", lambda text: kind.parse(text) if text else "")


def per_level(kind: Kind[T]) -> Kind[Mapping[int, T]]:
    """Return the kind of texts with one value per level of the LSM tree, as in
    ``0:avro,3:parquet``.
    """

    def parse(text: str) -> Mapping[int, T]:
        values: dict[int, T] = {}
        for item in filter(None, (item.strip() for item in text.split(","))):
            level, colon, value = item.partition(":")
            if not colon or not _LEVEL.fullmatch(level.strip()):
                raise ValueError(f"{item!r} is not a level, a colon and a value")
            if int(level) in values:
                raise ValueError(f"level {int(level)} occurs twice")
            values[int(level)] = kind.parse(value.strip())
        return values

    return Kind(f"level:value, … where a value is {kind.name}", parse)


def _statistics_mode(text: str) -> str:
    value = text.strip().lower()
    found = re.fullmatch(r"truncate\((\d+)\)", value)
    if value in ("none", "counts", "full") or (found and int(found[1]) > 0):
        return value
    raise ValueError("n is a whole number from 1; there are no other modes")


def _file_name_part(text: str) -> str:
    if not text or "/" in text or not text.isprintable():
        raise ValueError("it becomes part of a file name")
    return text


def _buckets(text: str) -> int:
    value = _integer(text)
    if value not in (UNAWARE_BUCKET, POSTPONE_BUCKET) and not 1 <= value < 2**31:
        raise ValueError("a number of buckets is from 1 to 2147483647")
    return value


UNAWARE_BUCKET = -1
"""The value of ``bucket`` for append tables without buckets, and for primary-key tables with
dynamic buckets.
"""

POSTPONE_BUCKET = -2
"""The value of ``bucket`` for tables whose compactions assign the buckets.

It is also the bucket number of new rows until a compaction assigns their bucket.
"""

BUCKETS: Kind[int] = Kind("-1, -2 or a number of buckets", _buckets)
SIZE: Kind[int] = Kind("a size such as '128 mb'", parse_size)
DURATION: Kind[int] = Kind("a duration such as '10 s'", parse_duration)
OPTIONAL_DURATION: Kind[int | None] = Kind(
    "a duration such as '10 s', or empty", lambda text: DURATION.parse(text) if text else None
)
OPTIONAL_SIZE: Kind[int | None] = Kind(
    "a size such as '128 mb', or empty", lambda text: SIZE.parse(text) if text else None
)
OPTIONAL_NUMBER: Kind[int | None] = Kind(
    "a whole number from 1, or empty",
    lambda text: whole_number(1, 2**63 - 1).parse(text) if text else None,
)
OPTIONAL_MILLIS: Kind[int | None] = Kind(
    "a number of milliseconds since 1970, or empty",
    lambda text: whole_number(-(2**63), _MOST).parse(text) if text else None,
)
OPTIONAL_SNAPSHOT: Kind[int | None] = Kind(
    "the number of a snapshot, 0, or empty",
    lambda text: whole_number(0, 2**63 - 1).parse(text) if text else None,
)
TEXT: Kind[str] = Kind("a text", str)


def _zone(text: str) -> tzinfo:
    # imported late: few tables name a time zone
    from lakeformat.types.java_zones import find_zone

    return find_zone(text)


TIME_ZONE: Kind[tzinfo] = Kind("a time zone such as 'UTC' or 'Europe/Berlin'", _zone)


def _zone_name(text: str) -> str:
    _zone(text)
    return text.strip()


TIME_ZONE_NAME: Kind[str] = Kind(TIME_ZONE.name, _zone_name)


def _boolean(text: str) -> bool:
    value = text.strip().lower()
    if value not in ("true", "false"):
        raise ValueError("it is neither")
    return value == "true"


def _ratio(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ValueError("it is not a number") from None
    if not 0 <= value <= 1:
        raise ValueError("out of range")
    return value


RATIO: Kind[float] = Kind("a number from 0 to 1", _ratio)
BOOLEAN: Kind[bool] = Kind("true or false", _boolean)
STATISTICS_MODE: Kind[str] = Kind("none, counts, truncate(n) or full", _statistics_mode)


_METADATA_DIRECTORIES = frozenset(
    {
        "branch",
        "changelog",
        "consumer",
        "index",
        "manifest",
        "schema",
        "snapshot",
        "staged",
        "statistics",
        "stream",
        "tag",
    }
)


def _relative_path(text: str) -> str:
    parts = text.strip("/").split("/")
    if text and any(part in ("", ".", "..") for part in parts):
        raise ValueError(
            "it has an empty part, '.' or '..' between slashes: write it like 'data/files'"
        )
    if "\0" in text:
        raise ValueError("it has a null character: remove it")
    if parts[0] in _METADATA_DIRECTORIES:
        raise ValueError(f"{parts[0]!r} is for metadata: choose another name, such as 'data'")
    return text.strip("/")


RELATIVE_PATH: Kind[str] = Kind("a path below the table", _relative_path)
FILE_NAME_PART: Kind[str] = Kind("printable text without '/'", _file_name_part)


def _addresses(text: str) -> tuple[str, ...]:
    addresses = tuple(address.strip() for address in text.split(",")) if text else ()
    for address in addresses:
        if not _ADDRESS.fullmatch(address):
            raise ValueError(f"{address!r} does not begin with a scheme such as file:/")
    return addresses


def _column_names(text: str) -> tuple[str, ...]:
    # Names are taken literally, spaces included, as in Paimon's Java code.
    return tuple(text.split(",")) if text else ()


def _weights(text: str) -> tuple[int, ...]:
    weights = tuple(_integer(weight) for weight in text.split(",")) if text else ()
    if any(not 1 <= weight < 2**31 for weight in weights):
        raise ValueError(f"a weight must be from 1 to {2**31 - 1}")
    return weights


def _scheme(text: str) -> str:
    if text and not _SCHEME_NAME.fullmatch(text):
        raise ValueError("it must begin with a letter, then have letters, digits, '+', '.' and '-'")
    return text.lower()


ADDRESSES: Kind[tuple[str, ...]] = Kind("URIs of directories, with commas between", _addresses)
COLUMN_NAMES: Kind[tuple[str, ...]] = Kind("columns, with commas between", _column_names)
WEIGHTS: Kind[tuple[int, ...]] = Kind("whole numbers from 1, with commas between", _weights)
SCHEME: Kind[str] = Kind("the scheme of a URI, such as s3", _scheme)
