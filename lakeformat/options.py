"""Every table option, declared once: key, type, default, meaning, and whether it may change.

Parsing, validation, the typed accessor and ``docs/reference/options.md`` come from the
declarations in ``TableOptions``. Code takes a ``TableOptions``, never a raw dictionary.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, TypeVar, overload

from lakeformat.errors import InvalidRequestError

__all__ = ["Group", "Option", "TableOptions", "declared_options", "unknown_option_message"]

T = TypeVar("T")


class Group(StrEnum):
    """Why somebody sets an option."""

    BEHAVIOUR = "behaviour"
    PERFORMANCE = "performance"


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """How the text of an option becomes a value."""

    name: str
    parse: Callable[[str], T]


class Option(Generic[T]):
    """One declared option; read on a ``TableOptions`` it is the typed value."""

    def __init__(
        self,
        key: str,
        kind: Kind[T],
        default: str,
        description: str,
        *,
        group: Group = Group.BEHAVIOUR,
        mutable: bool = True,
    ) -> None:
        self.key = key
        self.kind = kind
        self.default = default
        self.description = description
        self.group = group
        self.mutable = mutable

    @overload
    def __get__(self, instance: None, owner: type[TableOptions]) -> Option[T]: ...
    @overload
    def __get__(self, instance: TableOptions, owner: type[TableOptions]) -> T: ...
    def __get__(self, instance: TableOptions | None, owner: type[TableOptions]) -> Option[T] | T:
        return self if instance is None else self.parse(instance.text(self))

    def parse(self, text: str) -> T:
        """The typed value of a text, or an error that names the option."""
        try:
            return self.kind.parse(text)
        except ValueError as reason:
            raise InvalidRequestError(
                f"option {self.key!r} is {text!r}, but must be {self.kind.name}: {reason}"
            ) from None


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


def _whole_number(low: int, high: int) -> Kind[int]:
    def parse(text: str) -> int:
        value = int(text)
        if not low <= value <= high:
            raise ValueError("out of range")
        return value

    return Kind(str(low) if low == high else f"a whole number from {low} to {high}", parse)


def _one_of(*values: str) -> Kind[str]:
    def parse(text: str) -> str:
        value = text.strip().lower()
        if value not in values:
            raise ValueError("this version writes no other")
        return value

    return Kind(" or ".join(values), parse)


def _file_name_part(text: str) -> str:
    if not text or "/" in text:
        raise ValueError("it becomes part of a file name")
    return text


SIZE: Kind[int] = Kind("a size such as '128 mb'", _with_unit(_SIZE_UNITS))
DURATION: Kind[int] = Kind("a duration such as '10 s'", _with_unit(_DURATION_UNITS))
FILE_NAME_PART: Kind[str] = Kind("text without '/'", _file_name_part)


class TableOptions:
    """The options of one table, typed; keys that are not declared are kept as they are."""

    bucket = Option(
        "bucket",
        _whole_number(-1, -1),
        "-1",
        "Number of buckets; -1 gives an append table without buckets.",
    )
    file_format = Option(
        "file.format",
        _one_of("parquet"),
        "parquet",
        "Format of new data files; files that exist are read by their own name's ending.",
    )
    file_compression = Option(
        "file.compression",
        _one_of("zstd", "snappy", "lz4", "gzip"),
        "zstd",
        "Compression of new data files; lz4 when processor time is scarcer than storage.",
        group=Group.PERFORMANCE,
    )
    file_compression_zstd_level = Option(
        "file.compression.zstd-level",
        _whole_number(1, 22),
        "1",
        "Level of zstd for data files and manifests; higher is smaller and slower.",
        group=Group.PERFORMANCE,
    )
    target_file_size_bytes = Option(
        "target-file-size",
        SIZE,
        "256 mb",
        "A writer starts a new data file once the current one has reached this size.",
        group=Group.PERFORMANCE,
    )
    data_file_prefix = Option(
        "data-file.prefix",
        FILE_NAME_PART,
        "data-",
        "How names of new data files begin; set it to tell the files of several writers apart.",
    )
    manifest_compression = Option(
        "manifest.compression",
        _one_of("zstd", "snappy", "deflate", "null"),
        "zstd",
        "Compression of new manifests; every reader of the format knows all four.",
        group=Group.PERFORMANCE,
    )
    commit_max_retries = Option(
        "commit.max-retries",
        _whole_number(0, 1_000_000),
        "10",
        "How often a commit tries again after another writer was first; raise it for many writers.",
    )
    commit_min_retry_wait_millis = Option(
        "commit.min-retry-wait",
        DURATION,
        "10 ms",
        "Pause before the first retry of a commit; it doubles with each further one.",
        group=Group.PERFORMANCE,
    )
    commit_max_retry_wait_millis = Option(
        "commit.max-retry-wait",
        DURATION,
        "10 s",
        "Longest pause between two attempts of a commit.",
        group=Group.PERFORMANCE,
    )

    def __init__(self, raw: Mapping[str, str] | None = None) -> None:
        self._raw = dict(raw or {})

    def text(self, option: Option[Any]) -> str:
        """The text of an option as the table sets it, or its default."""
        return self._raw.get(option.key, option.default)

    def to_dict(self) -> dict[str, str]:
        """What the table sets explicitly, declared or not."""
        return dict(self._raw)

    def unknown(self) -> list[str]:
        """Keys this version does not know; it must not write where they are set."""
        known = {option.key for option in declared_options()}
        return sorted(key for key in self._raw if key not in known)

    def validate(self) -> None:
        """Raise unless every option is known and its value is one this version can honour."""
        for key in self.unknown():
            raise InvalidRequestError(unknown_option_message(key))
        for option in declared_options():
            option.parse(self.text(option))


def declared_options() -> list[Option[Any]]:
    """Every declaration, by key."""
    found = [value for value in vars(TableOptions).values() if isinstance(value, Option)]
    return sorted(found, key=lambda option: option.key)


def unknown_option_message(key: str) -> str:
    """Say that an option cannot be honoured, and which one may have been meant."""
    close = difflib.get_close_matches(key, [option.key for option in declared_options()], n=1)
    meant = f"; did you mean {close[0]!r}?" if close else ""
    return f"option {key!r} is not supported by this version{meant}"
