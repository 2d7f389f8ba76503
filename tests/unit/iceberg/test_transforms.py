"""Transforms of partition specs: the vectors of the specification, and plain rules row by row."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa
import pytest

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.iceberg.transforms import TransformKind, parse_transform

# The hashes of appendix B of the specification.
VECTORS: dict[str, tuple[pa.Array, int]] = {
    "int": (pa.array([34], pa.int32()), 2017239379),
    "long": (pa.array([34], pa.int64()), 2017239379),
    "decimal": (pa.array([Decimal("14.20")], pa.decimal128(9, 2)), -500754589),
    "date": (pa.array([date(2017, 11, 16)], pa.date32()), -653330422),
    "time": (pa.array([time(22, 31, 8)], pa.time64("us")), -662762989),
    "timestamp": (pa.array([datetime(2017, 11, 16, 22, 31, 8)], pa.timestamp("us")), -2047944441),
    "timestamp in ms": (
        pa.array([datetime(2017, 11, 16, 22, 31, 8)], pa.timestamp("ms")),
        -2047944441,
    ),
    "timestamptz_ns": (
        pa.array([datetime(2017, 11, 16, 22, 31, 8, tzinfo=UTC)], pa.timestamp("ns", "UTC")),
        -2047944441,
    ),
    "string": (pa.array(["iceberg"]), 1210000089),
    "uuid": (
        pa.array([uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7").bytes], pa.binary(16)),
        1488055340,
    ),
    "fixed": (pa.array([bytes(range(4))], pa.binary(4)), -188683207),
    "binary": (pa.array([bytes(range(4))], pa.binary()), -188683207),
}
LARGEST = 2**31 - 1
WIDE = Context(prec=38)


def applied(text: str, values: pa.Array) -> list[Any]:
    """The results of a transform; its declared type must be the type of the results."""
    transform = parse_transform(text)
    found = transform.apply(values)
    found.validate(full=True)
    assert found.type == transform.result_type(values.type)
    return list(found.to_pylist())


@pytest.mark.parametrize("kind", VECTORS)
def test_a_bucket_is_the_remainder_of_the_hash_in_the_specification(kind: str) -> None:
    values, expected = VECTORS[kind]
    for count in (LARGEST, 16, 1):
        assert applied(f"bucket[{count}]", values) == [(expected & LARGEST) % count]


def murmur3(data: bytes) -> int:
    """The algorithm in its plainest form, one value at a time."""
    lane = 0
    whole = len(data) // 4 * 4
    for start in range(0, len(data), 4):
        word = int.from_bytes(data[start : start + 4], "little") * 0xCC9E2D51 & 0xFFFFFFFF
        lane ^= (word << 15 | word >> 17) * 0x1B873593 & 0xFFFFFFFF
        if start < whole:
            lane = ((lane << 13 | lane >> 19) * 5 + 0xE6546B64) & 0xFFFFFFFF
    lane ^= len(data)
    lane = (lane ^ lane >> 16) * 0x85EBCA6B & 0xFFFFFFFF
    lane = (lane ^ lane >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    return lane ^ lane >> 16


def test_buckets_of_texts_of_many_sizes_follow_the_plain_algorithm() -> None:
    source = random.Random(7)
    texts = [None, "", "é", *("x" * size for size in range(40))]
    texts += ["".join(source.choices("abcé€😀", k=source.randrange(30))) for _ in range(200)]
    source.shuffle(texts)
    array = pa.array(["before", *texts, "after"]).slice(1, len(texts))
    expected = [None if text is None else (murmur3(text.encode()) & LARGEST) % 97 for text in texts]
    assert applied("bucket[97]", array) == expected


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        ("truncate[10]", pa.array([1, 0, -1, -10, None], pa.int32()), [0, 0, -10, -10, None]),
        ("truncate[10]", pa.array([19, -11], pa.int64()), [10, -20]),
        ("truncate[3]", pa.array(["iceberg", "ab", "😀é€x", None]), ["ice", "ab", "😀é€", None]),
        ("truncate[2]", pa.array([b"\x00\x01\x02", b""]), [b"\x00\x01", b""]),
    ],
)
def test_truncate(text: str, values: pa.Array, expected: list[Any]) -> None:
    assert applied(text, values) == expected


@pytest.mark.parametrize("width", [1, 10, 50, 2**31 - 1])
def test_truncated_decimals_have_the_next_smaller_multiple_of_the_width(width: int) -> None:
    source = random.Random(width)
    digits = [source.randrange(-(10**size), 10**size) for size in range(1, 38) for _ in range(5)]
    kind = pa.decimal128(38, 4)
    numbers = [Decimal(number).scaleb(-4, WIDE) for number in digits]
    array = pa.array([None, *numbers, None], kind).slice(1)
    expected = [Decimal(number - number % width).scaleb(-4, WIDE) for number in digits]
    assert applied(f"truncate[{width}]", array) == [*expected, None]


def moments() -> list[datetime]:
    """Instants around the turns of hours, days, months and years, on both sides of 1970."""
    turns = [datetime(year, month, 1) for year in (1, 1969, 1970, 1971, 2024) for month in (1, 3)]
    around = [timedelta(microseconds=1), timedelta(hours=1), timedelta(days=1)]
    found = [turn + step for turn in turns for step in around]
    return found + [turn - step for turn in turns[1:] for step in around] + turns


EPOCH = datetime(1970, 1, 1)
IN_TIME: dict[str, Callable[[datetime], Any]] = {
    "year": lambda moment: moment.year - 1970,
    "month": lambda moment: (moment.year - 1970) * 12 + moment.month - 1,
    "day": lambda moment: moment.date(),
    "hour": lambda moment: (moment - EPOCH) // timedelta(hours=1),
}


@pytest.mark.parametrize("text", IN_TIME)
@pytest.mark.parametrize("kind", [pa.timestamp("us"), pa.timestamp("us", "UTC")])
def test_times_are_counted_from_1970_and_rounded_down(text: str, kind: pa.DataType) -> None:
    array = pa.array([*moments(), None], pa.timestamp("us")).cast(kind)
    expected = [*map(IN_TIME[text], moments()), None]
    assert applied(text, array) == expected
    assert applied(f"{text}s", array) == expected


def test_nanoseconds_before_1970_are_rounded_down() -> None:
    array = pa.array([-1, 0], pa.int64()).view(pa.timestamp("ns"))
    assert applied("day", array) == [date(1969, 12, 31), date(1970, 1, 1)]
    assert applied("year", array) == [-1, 0]


@pytest.mark.parametrize("text", ["year", "month", "day"])
def test_dates_are_counted_like_timestamps(text: str) -> None:
    days = [moment.date() for moment in moments()]
    expected = [IN_TIME[text](datetime(d.year, d.month, d.day)) for d in days]
    assert applied(text, pa.array(days, pa.date32())) == expected


def test_void_is_always_null_and_identity_changes_nothing() -> None:
    array = pa.array([1, None])
    assert applied("void", array) == [None, None]
    assert applied("identity", array) == [1, None]


@pytest.mark.parametrize(
    "text",
    ["zorder", "bucket", "bucket[0]", "truncate[x]", "bucket[9999999999]", f"bucket[{'9' * 5000}]"],
    ids=lambda text: text[:20],
)
def test_a_transform_that_is_not_known_is_named_when_it_is_used(text: str) -> None:
    transform = parse_transform(text)
    assert transform.kind is TransformKind.UNKNOWN
    with pytest.raises(UnsupportedError, match=r"does not know the partition transform"):
        transform.apply(pa.array([1]))


@pytest.mark.parametrize("hours", [LARGEST, -LARGEST - 1])
def test_an_hour_of_more_than_32_bits_is_refused(hours: int) -> None:
    def at(number: int) -> pa.Array:
        return pa.array([None, number * 3_600_000_000], pa.timestamp("us"))

    assert applied("hour", at(hours)) == [None, hours]
    beyond = hours + (1 if hours > 0 else -1)
    with pytest.raises(InvalidRequestError, match=r"more than 2147483647 hours .* use .* 'day'"):
        parse_transform("hour").apply(at(beyond))
