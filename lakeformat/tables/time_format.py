# SPDX-License-Identifier: Apache-2.0
"""Parses times in partition values with the patterns of Java's ``DateTimeFormatter``.

A value that does not match the pattern has no time; the expiry then keeps its partition.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from lakeformat.errors import InvalidRequestError

__all__ = ["TimeFormat", "fill_pattern", "time_format"]

_DEFAULT = re.compile(
    r"(?P<year>\d{1,4})-(?P<month>\d{1,2})-(?P<day>\d{1,2})"
    r"(?: (?P<hour>\d{1,2}):(?P<minute>\d{1,2}):(?P<second>\d{1,2})(?:\.(?P<fraction>\d{0,9}))?)?"
)
_DEFAULT_FORMATTER = "yyyy-MM-dd[ HH:mm:ss]"
"""The pattern ``_DEFAULT`` as Java writes it, for messages. ``_DEFAULT`` also accepts single digits
and fractions.
"""
_LETTERS = {
    "y": "year",
    "u": "year",
    "M": "month",
    "d": "day",
    "H": "hour",
    "m": "minute",
    "s": "second",
    "S": "fraction",
}
_NEEDED = ("year", "month", "day")
_TOKEN = re.compile(r"'(?:[^']|'')*'|([A-Za-z])\1*|[\[\]]|[^A-Za-z'\[\]]")
_CENTURY = 2000
_MICRO_DIGITS = 6


@dataclass(frozen=True, slots=True)
class TimeFormat:
    """A pattern that parses times from texts."""

    shape: re.Pattern[str]
    formatter: str
    """The pattern as Java writes it."""

    def parse(self, text: str) -> datetime | None:
        """Return the time in a text; None if the text does not match, or the time does not exist.

        A text with only a day becomes midnight of that day.
        """
        found = self.shape.fullmatch(text)
        if found is None:
            return None
        parts = {name: digits for name, digits in found.groupdict().items() if digits}
        fraction = parts.pop("fraction", "")
        short = len(parts.get("year", "")) == len("yy") and "(?P<year>\\d{2})" in self.shape.pattern
        numbers = {name: int(digits) for name, digits in parts.items()}
        numbers["year"] = numbers.get("year", 0) + (_CENTURY if short else 0)
        micros = int(fraction[:_MICRO_DIGITS].ljust(_MICRO_DIGITS, "0"))
        try:
            return datetime(**numbers, microsecond=micros)  # type: ignore[arg-type]  # noqa: DTZ001
        except (ValueError, TypeError):  # for example month 13, or no day
            return None


def time_format(formatter: str) -> TimeFormat:
    """Return the parser for the option ``partition.timestamp-formatter``.

    If the option is empty, the parser reads days and times in the form of SQL. A pattern that this
    version cannot parse raises ``InvalidRequestError``.
    """
    if not formatter:
        return TimeFormat(_DEFAULT, _DEFAULT_FORMATTER)
    pattern = "".join(_parts(formatter))
    missing = [name for name in _NEEDED if f"(?P<{name}>" not in pattern]
    try:
        shape = re.compile(pattern)
    except re.error:
        why = "a part such as the year appears twice, or a bracket has no partner"
        raise _refused(formatter, why) from None
    if missing:
        raise _refused(formatter, f"it has no {missing[0]}, and a time needs one")
    return TimeFormat(shape, formatter)


def fill_pattern(pattern: str, values: Mapping[str, str | None]) -> str | None:
    """Return the pattern with each ``$column`` replaced by its value.

    An empty pattern returns the first value. If a column in the pattern has a null, return None. A
    pattern without any partition column raises ``InvalidRequestError``.
    """
    if not pattern:
        return next(iter(values.values()))
    # Replace the longer name first: $hour before $h.
    names = sorted(values, key=len, reverse=True)
    asked = re.compile(r"\$(" + "|".join(map(re.escape, names)) + ")")
    found = asked.findall(pattern)
    if not found:
        raise InvalidRequestError(
            f"option 'partition.timestamp-pattern' is {pattern!r} and names no partition column: "
            f"write at least one of {', '.join('$' + name for name in values)}"
        )
    if any(values[name] is None for name in found):
        return None
    return asked.sub(lambda match: values[match[1]] or "", pattern)


def _parts(formatter: str) -> Iterator[str]:
    end = 0
    for token in _TOKEN.finditer(formatter):
        if token.start() != end:
            break
        end = token.end()
        yield _part(formatter, token[0], is_letters=token[1] is not None)
    if end != len(formatter):
        raise _refused(formatter, f"{formatter[end:]!r} is not closed")


def _part(formatter: str, token: str, *, is_letters: bool) -> str:
    if token == "[":
        return "(?:"
    if token == "]":
        return ")?"
    if not is_letters:
        plain = token[1:-1].replace("''", "'") or "'" if token.startswith("'") else token
        return re.escape(plain)
    name = _LETTERS.get(token[0])
    if name is None:
        known = ", ".join(_LETTERS)
        raise _refused(formatter, f"the letter {token[0]!r} is not supported, only {known} are")
    return f"(?P<{name}>{_digits(name, len(token))})"


def _digits(name: str, width: int) -> str:
    if width == 1:
        return r"\d{1,9}" if name == "year" else r"\d{1,2}" if name != "fraction" else r"\d"
    return rf"\d{{{width}}}"


def _refused(formatter: str, why: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"option 'partition.timestamp-formatter' is {formatter!r}: {why}; write something like "
        "'yyyy-MM-dd HH:mm:ss', 'yyyyMMdd' or \"yyyy-MM-dd'T'HH\""
    )
