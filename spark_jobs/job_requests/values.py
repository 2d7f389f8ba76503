# SPDX-License-Identifier: Apache-2.0
"""Rules that the values of a request must obey, in addition to the types of its keys.

The jobs use these rules, and so do the operators when a DAG is parsed. Only the library checks
rules that need the table or the clock.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, TypeAlias

from spark_jobs.job_requests.request import Rule, check_millis

__all__ = [
    "AcceptedValues",
    "AgesByColumn",
    "BucketNumbers",
    "ColumnCasts",
    "ColumnNames",
    "ColumnSources",
    "ConsumerName",
    "DialectCharacter",
    "Duration",
    "Expiration",
    "Interval",
    "KeyColumns",
    "MessageTable",
    "Moment",
    "NewColumnValues",
    "NullValues",
    "Numbered",
    "OptionalCharacter",
    "PastTime",
    "RegularExpression",
    "Retention",
    "RowCount",
    "Share",
    "TableOptionTexts",
    "TextEncoding",
    "TimeFormatter",
    "TimePattern",
    "UniqueColumns",
    "Value",
    "age_millis",
    "check_consumer_name",
]

_DURATION = "a duration such as '10 s'"
_TIME = "a time such as '2024-01-31 10:00'"
_MILLIS = "epoch milliseconds"
_CRON_FIELDS = 5
# A new table may also get its keys as options.
_KEY_OPTIONS = ("primary-key", "partition")


def _duration(value: str) -> int:
    from lakeformat.types.amounts import parse_asked_duration

    words = value.split()
    # The second word of a cron expression is an hour, that of a duration is a unit.
    if value.startswith("@") or (len(words) >= _CRON_FIELDS and not words[1].isalpha()):
        raise ValueError("a cron expression belongs to the schedule of a DAG")
    return parse_asked_duration(value)


def _some_time(value: str) -> None:
    if _duration(value) == 0:
        raise ValueError("it is zero")


def _moment(value: str | int) -> None:
    if not isinstance(value, str):
        check_millis(value)
        return
    try:
        datetime.fromisoformat(value.strip())
    except ValueError:
        raise ValueError from None  # Python's words would only repeat the value


def age_millis(value: str | int) -> int | None:
    """Return an age such as ``"7 d"`` in milliseconds; None if the value is a time.

    Raise ``ValueError`` if the value is neither an age nor a time.
    """
    try:
        _moment(value)
    except ValueError as reason:
        if isinstance(value, int):
            raise ValueError(f"{reason}: write '90 d' for an age") from None
        return _duration(value)
    return None


def _expiration(value: str | int) -> None:
    if age_millis(value) == 0:
        raise ValueError("every partition would have expired")


def _from_one(value: int) -> None:
    if value < 1:
        raise ValueError


def _buckets(value: Sequence[int]) -> None:
    if min(value, default=0) < 0:
        raise ValueError("buckets start at 0")


def _columns(value: Sequence[str]) -> None:
    if not value:
        raise ValueError("the list is empty")
    _key_columns(value)


def _key_columns(value: Sequence[str]) -> None:
    if twice := [name for name in value if value.count(name) > 1]:
        raise ValueError(f"{twice[0]!r} appears twice")


def _from_zero(value: int) -> None:
    if value < 0:
        raise ValueError


def _unique_columns(value: Sequence[str | Sequence[str]]) -> None:
    for columns in (value, *(each for each in value if not isinstance(each, str))):
        if not columns:
            raise ValueError("a list is empty")


def _accepted_values(value: Mapping[str, Sequence[Value]]) -> None:
    for column, accepted in value.items():
        if not accepted:
            raise ValueError(f"the list of column {column!r} is empty")


def _some_values(value: Mapping[str, Value]) -> None:
    if not value:
        raise ValueError("the object is empty")


def _ages(value: Mapping[str, str]) -> None:
    from lakeformat.tables.checks import age_millis

    for column, age in value.items():
        age_millis(column, age)


def _share(value: float) -> None:
    if not 0 < value <= 1:
        raise ValueError


def check_consumer_name(value: str) -> None:
    """Raise ``InvalidRequestError`` for a name that cannot be the name of a file, because a
    consumer is stored as a file.
    """
    from lakeformat.tables.file_name_part import check_new_file_name_part

    check_new_file_name_part("consumer id", value)


def _message_table(value: str) -> None:
    if "" in value.split(".") or "." not in value:
        raise ValueError("messages name a table with its database")


def _encoding(value: str) -> None:
    from lakeformat.files.foreign.dialect import TextDialect

    TextDialect(encoding=value)


def _dialect_character(value: str) -> None:
    r"""Raise ``ValueError`` if the text has more than one character.

    The two characters ``\t``, a backslash and a t, stand for a tab and are accepted.
    ``TextDialect`` checks which characters are allowed.
    """
    if len(value) > 1 and value != r"\t":
        raise ValueError(f"it has {len(value)} characters")


def _any_texts(value: object) -> None:
    """Accept every list of strings, also one with empty strings."""


def _time_formatter(value: str) -> None:
    from lakeformat.tables.time_format import time_format

    time_format(value)


def _time_pattern(value: str) -> None:
    if "$" not in value:
        raise ValueError("it names no partition column")


def _table_options(value: Mapping[str, str]) -> None:
    from lakeformat import TableOptions

    TableOptions({k: each for k, each in value.items() if k not in _KEY_OPTIONS}).validate()


def _sources(value: Mapping[str, str]) -> None:
    _key_columns([*value.values()])


def _casts(value: Mapping[str, str]) -> None:
    from lakeformat.types.type_text import parse_type

    for text in value.values():
        parse_type(text)


def _expression(value: str) -> None:
    try:
        re.compile(value)
    except re.error as reason:
        raise ValueError(str(reason)) from None


def _position(value: str) -> None:
    from lakeformat.tables.position import Position

    Position.parse(value)


Value: TypeAlias = str | int | float | bool | None
Duration: TypeAlias = Annotated[str, Rule(_DURATION, _duration)]
Retention: TypeAlias = Annotated[str, Rule(_DURATION, _some_time)]
"""The lifetime of a tag."""
Interval: TypeAlias = Annotated[str, Rule(_DURATION, _some_time)]
"""The time between two searches for new files or changes."""
Moment: TypeAlias = Annotated[str | int, Rule(f"{_TIME} or {_MILLIS}", _moment)]
"""A time: ISO 8601 text, in UTC unless it has a zone, or epoch milliseconds."""
PastTime: TypeAlias = Annotated[
    str | int, Rule(f"{_TIME}, an age such as '7 d', or {_MILLIS}", age_millis)
]
"""A time, or an age such as ``"7 d"``."""
Expiration: TypeAlias = Annotated[
    str | int, Rule(f"an age such as '7 d', {_TIME} or {_MILLIS}", _expiration)
]
Numbered: TypeAlias = Annotated[int, Rule("a whole number from 1 on", _from_one)]
BucketNumbers: TypeAlias = Annotated[Sequence[int], Rule("a list of bucket numbers", _buckets)]
ColumnNames: TypeAlias = Annotated[Sequence[str], Rule("a list of column names", _columns)]
KeyColumns: TypeAlias = Annotated[Sequence[str], Rule("a list of column names", _key_columns)]
"""Names of columns; the list may be empty."""
RowCount: TypeAlias = Annotated[int, Rule("a number of rows, 0 or more", _from_zero)]
UniqueColumns: TypeAlias = Annotated[
    Sequence[str | Sequence[str]],
    Rule("a list of columns, or of lists of columns", _unique_columns),
]
AcceptedValues: TypeAlias = Annotated[
    Mapping[str, Sequence[Value]], Rule("an object with a list for each column", _accepted_values)
]
NewColumnValues: TypeAlias = Annotated[
    Mapping[str, Value], Rule("an object with a new value for each column", _some_values)
]
AgesByColumn: TypeAlias = Annotated[
    Mapping[str, str], Rule("an object with an age such as '1 d' for each column", _ages)
]
Share: TypeAlias = Annotated[float, Rule("a share above 0 and up to 1", _share)]
ConsumerName: TypeAlias = Annotated[str, Rule("the name of a consumer", check_consumer_name)]
TablePosition: TypeAlias = Annotated[
    str, Rule("a position, as str(table.position()) returns it", _position)
]
TimeFormatter: TypeAlias = Annotated[
    str, Rule("the format of a time, such as 'yyyyMMdd'", _time_formatter)
]
TimePattern: TypeAlias = Annotated[
    str, Rule("a pattern with columns, such as '$dt $hour:00:00'", _time_pattern)
]
TableOptionTexts: TypeAlias = Annotated[
    Mapping[str, str], Rule("an object of table options", _table_options)
]
ColumnSources: TypeAlias = Annotated[
    Mapping[str, str],
    Rule("an object of table columns, each with a source column of its own", _sources),
]
ColumnCasts: TypeAlias = Annotated[
    Mapping[str, str], Rule("an object of table columns, each with a type", _casts)
]
MessageTable: TypeAlias = Annotated[str, Rule("a table as database.table", _message_table)]
"""A table of another system as ``database.table``; the names may have any characters."""
RegularExpression: TypeAlias = Annotated[str, Rule("a regular expression", _expression)]
DialectCharacter: TypeAlias = Annotated[
    str, Rule("one ASCII character", _dialect_character, takes_blanks=True)
]
OptionalCharacter: TypeAlias = Annotated[
    str, Rule("one ASCII character, or empty", _dialect_character, takes_blanks=True)
]
NullValues: TypeAlias = Annotated[
    Sequence[str], Rule("a list of strings", _any_texts, takes_blanks=True)
]
TextEncoding: TypeAlias = Annotated[str, Rule("the name of an encoding", _encoding)]
