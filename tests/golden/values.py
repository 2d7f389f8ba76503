"""Rows as plain Python values that compare and print the same for every reader.

Arrow's own ``to_pylist`` is nearly that, but it turns nanoseconds into pandas values and needs
a time zone object where one bit is enough. Everything else is what ``to_pylist`` gives.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

__all__ = ["Row", "Timestamp", "assert_same_rows", "format_difference", "map_of", "rows_of"]

Row = dict[str, Any]
"""The values of one row by column name, in column order."""

NANOS_PER_SECOND = 1_000_000_000
_NANOS_PER_UNIT = {"s": NANOS_PER_SECOND, "ms": 1_000_000, "us": 1_000, "ns": 1}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ROWS_SHOWN = 10


@dataclass(frozen=True, slots=True, repr=False)
class Timestamp:
    """A wall clock, or an instant in UTC, of any precision."""

    nanos_of_epoch: int
    is_instant: bool

    def __repr__(self) -> str:
        seconds, nanos = divmod(self.nanos_of_epoch, NANOS_PER_SECOND)
        clock = (_EPOCH + timedelta(seconds=seconds)).replace(tzinfo=None).isoformat()
        return f"<{clock}.{nanos:09d}{'Z' if self.is_instant else ''}>"

    @classmethod
    def parse(cls, text: str, *, is_instant: bool) -> Timestamp:
        """Read ``2024-01-01T00:00:01`` with up to nine digits of a second after it."""
        clock, _, fraction = text.partition(".")
        since_epoch = datetime.fromisoformat(clock).replace(tzinfo=UTC) - _EPOCH
        seconds = since_epoch // timedelta(seconds=1)
        return cls(seconds * NANOS_PER_SECOND + int(fraction.ljust(9, "0")), is_instant)


def rows_of(table: pa.Table) -> list[Row]:
    """Every row of an Arrow table: a ROW is a dict, a MAP what ``map_of`` makes of it."""
    columns = [[_plain(value) for value in column] for column in table.columns]
    names = table.column_names
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def map_of(entries: Iterable[Sequence[Any]]) -> list[tuple[Any, Any]]:
    """A MAP: pairs of key and value; their order has no meaning."""
    return sorted(((key, value) for key, value in entries), key=repr)


def assert_same_rows(actual: Sequence[Row], expected: Sequence[Row]) -> None:
    """Fail with the rows that are missing or unexpected; their order does not matter."""
    difference = format_difference(actual, expected)
    assert not difference, difference


def format_difference(actual: Sequence[Row], expected: Sequence[Row]) -> str:
    """Describe the differences of rows that should be equal; empty if they are.

    Values are compared as they print: 1, 1.0 and True differ, and so do 0.0 and -0.0, or two
    decimals of another scale; NaN equals NaN.
    """
    missing, unexpected = _without(expected, actual), _without(actual, expected)
    if not missing and not unexpected:
        return ""
    lines = [f"{len(actual)} rows were read, {len(expected)} were expected:"]
    for row in missing[:_ROWS_SHOWN]:
        twin = max(unexpected, key=lambda other: _count_equal(row, other), default={})
        if 2 * _count_equal(row, twin) < len(row):
            lines.append(f"  missing    {row}")
        else:
            unexpected.remove(twin)
            lines.extend(_changed(row, twin))
    lines.extend(f"  unexpected {row}" for row in unexpected[:_ROWS_SHOWN])
    hidden = max(0, len(missing) - _ROWS_SHOWN) + max(0, len(unexpected) - _ROWS_SHOWN)
    return "\n".join([*lines, f"  and {hidden} more"] if hidden else lines)


def _without(rows: Sequence[Row], others: Sequence[Row]) -> list[Row]:
    """Return the rows without an equal in the second list, repeated by their surplus."""
    left = Counter(map(repr, others))
    kept = []
    for row in rows:
        if left[repr(row)]:
            left[repr(row)] -= 1
        else:
            kept.append(row)
    return kept


def _count_equal(row: Row, other: Row) -> int:
    return sum(name in other and repr(value) == repr(other[name]) for name, value in row.items())


def _changed(row: Row, found: Row) -> Iterator[str]:
    """Only what differs between two wide rows that are mostly equal."""
    first = next(iter(row.items()))
    yield f"  the row with {first[0]} = {first[1]!r}:"
    if list(row) != list(found):
        yield f"    expected the columns {', '.join(row)}, got {', '.join(found)}"
    for name in row.keys() & found.keys():
        if repr(row[name]) != repr(found[name]):
            yield f"    {name}: expected {row[name]!r}, got {found[name]!r}"


def _plain(value: pa.Scalar) -> Any:
    """The type decides, so that nothing is guessed from the value."""
    kind = value.type
    if not value.is_valid:
        return None
    if pa.types.is_timestamp(kind):
        return Timestamp(value.value * _NANOS_PER_UNIT[kind.unit], kind.tz is not None)
    if pa.types.is_struct(kind):
        return {name: _plain(part) for name, part in value.items()}
    if pa.types.is_map(kind):
        return map_of([_plain(part) for _, part in entry.items()] for entry in value.values)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [_plain(element) for element in value.values]
    return value.as_py()
