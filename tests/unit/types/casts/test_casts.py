"""Casts give what Java gives: each line is a value before and after a change of type."""

from __future__ import annotations

import math
from decimal import Decimal
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.types.arrow_types import to_arrow_type
from lakeformat.types.casts import can_cast, cast_array, keeps_distinct, keeps_order
from lakeformat.types.type_text import parse_type
from lakeformat.types.values import values_from_arrow, values_to_arrow

NAN, INF = math.nan, math.inf
DAY = 86_400 * 10**9
D = Decimal


def cast(values, stored, wanted):
    """Values as ``binary_row`` has them: timestamps are nanoseconds, dates days."""
    before, after = parse_type(stored), parse_type(wanted)
    # A null in front, cut off again: offsets and validity are those of a slice.
    array = values_to_arrow([None, *values], before)[1:]
    found = cast_array(array, before, after)
    assert found.type == to_arrow_type(after)
    return values_from_arrow(found, after)


CASES = [
    # integers wrap
    ("INT", "TINYINT", [(300, 44), (-129, 127), (70_000, 112), (None, None)]),
    ("BIGINT", "INT", [(2**31, -(2**31)), (-1, -1)]),
    ("TINYINT", "BIGINT", [(-5, -5)]),
    ("BIGINT", "FLOAT", [(2**53 + 1, float(2**53))]),
    ("INT", "BOOLEAN", [(0, False), (-3, True), (None, None)]),
    ("BOOLEAN", "INT", [(True, 1), (False, 0), (None, None)]),
    ("BOOLEAN", "DECIMAL(1, 1)", [(True, None), (False, D("0.0"))]),
    # floats stop at the end of int and long; the narrower go by way of int
    ("DOUBLE", "INT", [(1e30, 2**31 - 1), (-1e30, -(2**31)), (NAN, 0), (-3.9, -3), (None, None)]),
    ("DOUBLE", "BIGINT", [(1e30, 2**63 - 1), (-INF, -(2**63)), (2.0**53, 2**53)]),
    ("DOUBLE", "SMALLINT", [(70_000.5, 4_464), (1e30, -1)]),
    ("DOUBLE", "FLOAT", [(1e300, INF), (0.1, 0.10000000149011612)]),
    # decimals round half up, and too many digits are null
    ("DECIMAL(10, 3)", "DECIMAL(5, 2)", [(D("1.235"), D("1.24")), (D("-1.235"), D("-1.24"))]),
    ("DECIMAL(10, 3)", "DECIMAL(5, 2)", [(D("999.995"), None), (None, None)]),
    ("DECIMAL(38, 0)", "DECIMAL(38, 2)", [(D("9" * 38), None), (D(1), D("1.00"))]),
    ("DECIMAL(38, 2)", "DECIMAL(36, 0)", [(D("9" * 36 + ".99"), None)]),
    ("DECIMAL(38, 2)", "DECIMAL(38, 1)", [(D("9" * 36 + ".99"), D("1" + "0" * 36 + ".0"))]),
    ("SMALLINT", "DECIMAL(4, 2)", [(99, D("99.00")), (100, None)]),
    ("DOUBLE", "DECIMAL(10, 2)", [(1.005, D("1.01")), (-0.125, D("-0.13")), (1e22, None)]),
    ("DOUBLE", "DECIMAL(38, 38)", [(1.5e-38, D("2E-38")), (1e-300, D("0E-38"))]),
    ("FLOAT", "DECIMAL(10, 2)", [(1.23456, D("1.23"))]),
    ("DECIMAL(10, 2)", "INT", [(D("-1.99"), -1), (D("99999999.99"), 99_999_999)]),
    ("DECIMAL(30, 0)", "BIGINT", [(D("123456789012345678901234567890"), -4362896299872285998)]),
    ("DECIMAL(10, 2)", "DOUBLE", [(D("1.10"), 1.1)]),
    ("DECIMAL(30, 2)", "DOUBLE", [(D("12345678901234567890.10"), 12345678901234567890.10)]),
    # to text
    ("BIGINT", "STRING", [(-5, "-5"), (None, None)]),
    ("INT", "VARCHAR(3)", [(12_345, "123")]),
    ("BOOLEAN", "CHAR(5)", [(True, "true ")]),
    (
        "DOUBLE",
        "STRING",
        [(1.0, "1.0"), (1e7, "1.0E7"), (1.23456e-4, "1.23456E-4"), (0.001, "0.001")],
    ),
    ("DOUBLE", "STRING", [(NAN, "NaN"), (-INF, "-Infinity"), (-0.0, "-0.0"), (100.0, "100.0")]),
    ("FLOAT", "STRING", [(1.100000023841858, "1.1"), (1e10, "1.0E10"), (123456.7, "123456.7")]),
    ("DECIMAL(38, 20)", "STRING", [(D("1E-10"), "0.00000000010000000000")]),
    ("DATE", "STRING", [(19_516, "2023-06-08"), (-1, "1969-12-31"), (-719_162, "0001-01-01")]),
    ("TIME(2)", "STRING", [(36_115_615, "10:01:55.61"), (36_115_000, "10:01:55.0")]),
    ("TIME(2)", "STRING", [(36_115_600, "10:01:55.6"), (36_115_605, "10:01:55.60")]),
    ("TIME(0)", "STRING", [(36_115_615, "10:01:55")]),
    ("TIMESTAMP(6)", "STRING", [(-1_000, "1969-12-31 23:59:59.999999"), (None, None)]),
    ("TIMESTAMP(2)", "STRING", [(1_700_000_000_120_000_000, "2023-11-14 22:13:20.12")]),
    ("TIMESTAMP(0)", "STRING", [(1_700_000_000 * 10**9, "2023-11-14 22:13:20")]),
    ("TIMESTAMP(9) WITH LOCAL TIME ZONE", "STRING", [(1, "1970-01-01 00:00:00.000000001")]),
    ("STRING", "CHAR(4)", [("abc", "abc "), ("é中xyz", "é中xy"), (None, None)]),
    ("CHAR(10)", "VARCHAR(5)", [("12345678  ", "12345")]),
    ("BYTES", "STRING", [(b"ab", "ab")]),
    ("ARRAY<INT>", "STRING", [([1, None], "[1, null]"), (None, None), ([], "[]")]),
    ("MAP<STRING, INT>", "STRING", [([("a", 1), ("b", None)], "{a -> 1, b -> null}")]),
    ("ROW<a INT, b DATE>", "STRING", [((1, 0), "{1, 1970-01-01}"), ((None, None), "{null, null}")]),
    # to bytes
    ("STRING", "BINARY(5)", [("abc", b"abc\0\0")]),
    ("STRING", "VARBINARY(2)", [("abc", b"ab")]),
    ("BINARY(5)", "BINARY(7)", [(b"12345", b"12345\0\0"), (None, None)]),
    # from text
    ("STRING", "INT", [("1", 1), ("-5.9", -5), ("+7", 7), (".", 0), ("000123", 123), (None, None)]),
    ("STRING", "BIGINT", [("9223372036854775807", 2**63 - 1), ("-9223372036854775808", -(2**63))]),
    ("STRING", "BOOLEAN", [("t", True), ("YES", True), ("0", False), ("n", False), (None, None)]),
    (
        "STRING",
        "DOUBLE",
        [("1.5", 1.5), (" 2 ", 2.0), ("3d", 3.0), ("0x1p3", 8.0), ("-Infinity", -INF)],
    ),
    ("STRING", "DOUBLE", [("1e400", INF), ("0x1p99999", INF), ("-0x1p99999", -INF)]),
    ("STRING", "FLOAT", [("1.23456", 1.2345600128173828), (None, None)]),
    ("STRING", "DECIMAL(6, 2)", [("1.235", D("1.24")), ("-1e3", D("-1000.00")), ("1e400", None)]),
    ("STRING", "DECIMAL(6, 2)", [("1" * 50, None), (".5", D("0.50"))]),
    (
        "STRING",
        "DATE",
        [("2023-06-06", 19_514), ("2023-6-6", 19_514), ("2017-12-12 09:30", 17_512)],
    ),
    ("STRING", "DATE", [("19000", 19_000), ("-5", -5), (None, None)]),
    ("STRING", "TIME(3)", [("09:30:00.0", 34_200_000), ("1:2:3.4567", 3_723_457), ("9", 9)]),
    ("STRING", "TIMESTAMP(3)", [("2017-12-12 09:30:00.0", 1_513_071_000 * 10**9)]),
    ("STRING", "TIMESTAMP(3)", [("2017-12-12T09:30", 1_513_071_000 * 10**9)]),
    ("STRING", "TIMESTAMP(3)", [("2017-2-31", 1_488_240_000 * 10**9)]),
    ("STRING", "TIMESTAMP(0)", [("1700000000", 1_700_000_000 * 10**9)]),
    # points in time
    ("TIMESTAMP(9)", "TIMESTAMP(6)", [(-1, -1_000), (1_999, 1_000)]),
    ("TIMESTAMP(9)", "TIMESTAMP(3)", [(-1, -1_000_000)]),
    ("TIMESTAMP(9)", "TIMESTAMP(0)", [(-1_500_000_000, -(10**9)), (-1, 0), (1_500_000_000, 10**9)]),
    ("TIMESTAMP(3)", "TIMESTAMP(6) WITH LOCAL TIME ZONE", [(-1_000_000, -1_000_000)]),
    ("TIMESTAMP(6)", "DATE", [(-1_000, -1), (DAY, 1)]),
    ("TIMESTAMP(3)", "TIME(3)", [(-1_000_000, 86_399_999)]),
    ("TIMESTAMP(3)", "BIGINT", [(-1_999_000_000, -1), (-1_000_000, 0), (1_999_000_000, 1)]),
    ("BIGINT", "TIMESTAMP(3)", [(1_721_898_748, 1_721_898_748 * 10**9)]),
    ("DATE", "TIMESTAMP(3)", [(19_000, 19_000 * DAY)]),
    ("TIME(3)", "TIMESTAMP(3)", [(5, 5_000_000)]),
]


@pytest.mark.parametrize(("stored", "wanted", "pairs"), CASES, ids=lambda part: str(part)[:30])
def test_values_become_what_java_makes_of_them(stored, wanted, pairs):
    found = cast([before for before, _ in pairs], stored, wanted)
    assert list(map(repr, found)) == [repr(after) for _, after in pairs]


@pytest.mark.parametrize(
    ("stored", "wanted", "value", "named"),
    [
        ("STRING", "INT", "x", "'x' is not a valid INT"),
        ("STRING", "INT", "", "'' is not a valid INT"),
        ("STRING", "INT", "1099511627776", "it is outside of the range of INT"),
        ("STRING", "INT", "2147483648", "2147483648"),
        ("STRING", "TINYINT", "128", "128"),
        ("STRING", "BOOLEAN", "maybe", "'maybe' is not a valid BOOLEAN"),
        ("STRING", "DOUBLE", "1,5", "'1,5' is not a valid DOUBLE"),
        ("STRING", "DOUBLE", "0xp1", "'0xp1' is not a valid DOUBLE"),
        ("STRING", "FLOAT", "0x.p1", "'0x.p1' is not a valid FLOAT"),
        ("STRING", "DECIMAL(6, 2)", "1e", "'1e' is not a valid DECIMAL"),
        ("STRING", "DATE", "2023-02-30", "'2023-02-30' is not a valid DATE"),
        ("STRING", "TIME", "25:00", "'25:00' is not a valid TIME"),
        ("STRING", "TIMESTAMP(3)", "2023-13-01", "is not a valid TIMESTAMP"),
        ("DOUBLE", "DECIMAL(10, 2)", NAN, "cannot become DECIMAL"),
        ("BYTES", "STRING", b"\xff", "UTF8"),
    ],
)
def test_a_value_without_counterpart_is_an_error_that_shows_it(stored, wanted, value, named):
    with pytest.raises(InvalidRequestError, match=named):
        cast([value], stored, wanted)


@pytest.mark.parametrize("wanted", ["TIMESTAMP(7)", "TIMESTAMP(9) WITH LOCAL TIME ZONE"])
@pytest.mark.parametrize(
    ("stored", "text", "named"),
    [
        ("TIMESTAMP(6)", "0001-01-01 01:02:03", "0001-01-01 01:02:03.000000 of TIMESTAMP"),
        ("TIMESTAMP(3)", "2262-04-12 00:00:00", "2262-04-12 00:00:00.000 of TIMESTAMP"),
        ("DATE", "0001-01-01", "0001-01-01 of DATE"),
        ("STRING", "9999-12-31", "9999-12-31 of STRING"),
    ],
)
def test_a_time_that_nanoseconds_do_not_reach_is_named_with_what_helps(stored, text, named, wanted):
    before, after = parse_type(stored), parse_type(wanted)
    texts = pa.array([None, text, "2024-01-31 00:00:00", "2262-04-12", None])
    far = cast_array(texts, parse_type("STRING"), before)
    error = rf"{named}.*1677-09-21 to 2262-04-11; .* at most 6"
    with pytest.raises(InvalidRequestError, match=error):
        cast_array(far, before, after)
    assert cast_array(far[2:3], before, after).null_count == 0


@pytest.mark.parametrize(
    ("stored", "wanted"),
    [
        ("DATE", "INT"),
        ("DATE", "VARCHAR(5)"),
        ("TIMESTAMP(3)", "SMALLINT"),
        ("DOUBLE", "TIMESTAMP(3)"),
        ("STRING", "ARRAY<INT>"),
        ("MULTISET<INT>", "STRING"),
        ("VARIANT", "STRING"),
        ("INT", "BYTES"),
    ],
)
def test_what_java_has_no_cast_for_is_refused_with_both_types(stored, wanted):
    with pytest.raises(UnsupportedError, match="cannot become"):
        cast_array(
            pa.nulls(1, to_arrow_type(parse_type(stored))), parse_type(stored), parse_type(wanted)
        )


@pytest.mark.parametrize(
    ("stored", "wanted", "implicit", "explicit"),
    [
        ("INT", "BIGINT", True, True),
        ("BIGINT", "INT", False, True),
        ("BIGINT", "FLOAT", True, True),
        ("DOUBLE", "FLOAT", False, True),
        ("DOUBLE", "DECIMAL(10, 2)", True, True),
        ("CHAR(3)", "STRING", True, True),
        ("STRING", "CHAR(3)", False, True),
        ("VARCHAR(9)", "VARCHAR(3)", True, True),
        ("VARBINARY(9)", "BINARY(3)", False, True),
        ("TIMESTAMP(3)", "TIMESTAMP(3) WITH LOCAL TIME ZONE", True, True),
        ("TIMESTAMP(3)", "DATE", True, True),
        ("TIMESTAMP(3) WITH LOCAL TIME ZONE", "DATE", False, True),
        ("DATE", "TIMESTAMP(3)", False, True),
        ("DATE", "INT", False, False),
        ("BOOLEAN", "DOUBLE", False, True),
        ("DOUBLE", "BOOLEAN", False, False),
        ("ARRAY<INT>", "STRING", False, True),
        ("ARRAY<INT>", "ARRAY<BIGINT>", True, True),
        ("ARRAY<INT>", "MAP<INT, INT>", False, False),
        ("BYTES", "INT", False, False),
        ("INT", "INT NOT NULL", False, True),
        ("INT NOT NULL", "INT", True, True),
    ],
)
def test_which_changes_of_type_are_allowed(stored, wanted, implicit, explicit):
    before, after = parse_type(stored), parse_type(wanted)
    assert can_cast(before, after, explicit=False) is implicit
    assert can_cast(before, after) is explicit


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_narrowing_keeps_the_lowest_bits(values):
    found = cast(values, "BIGINT", "SMALLINT")
    assert [value & 0xFFFF for value in found] == [value & 0xFFFF for value in values]


@given(st.lists(st.decimals(-(10**12), 10**12, places=5)), st.integers(0, 6))
def test_rescaling_is_that_of_decimal_arithmetic(values, scale):
    expected = [value.quantize(D(1).scaleb(-scale), rounding="ROUND_HALF_UP") for value in values]
    room = D(10) ** (12 - scale)
    fitting = [value if abs(value) < room else None for value in expected]
    assert cast(values, "DECIMAL(20, 5)", f"DECIMAL(12, {scale})") == fitting


ORDERED = [
    ("INT", "BIGINT", st.integers(-(2**31), 2**31 - 1)),
    ("BIGINT", "DOUBLE", st.integers(-(2**63), 2**63 - 1)),
    ("SMALLINT", "DECIMAL(7, 2)", st.integers(-(2**15), 2**15 - 1)),
    ("DECIMAL(9, 3)", "DECIMAL(8, 1)", st.decimals(-999_999, 999_999, places=3)),
    ("STRING", "VARCHAR(3)", st.text()),
    ("DATE", "TIMESTAMP(3)", st.integers(-700_000, 700_000)),
    ("TIMESTAMP(6)", "TIMESTAMP(0)", st.integers(-(10**15), 10**15).map(lambda n: n * 1000)),
    ("TIMESTAMP(6)", "DATE", st.integers(-(10**15), 10**15).map(lambda n: n * 1000)),
]


@pytest.mark.parametrize(("stored", "wanted", "values"), ORDERED, ids=lambda part: str(part)[:20])
def test_a_cast_said_to_keep_the_order_keeps_it(stored, wanted, values):
    assert keeps_order(parse_type(stored), parse_type(wanted))

    @given(st.lists(values, min_size=1))
    def ordered(drawn):
        found = cast(sorted(drawn), stored, wanted)
        assert found == sorted(found)

    ordered()


DISTINCT = [
    ("INT", "BIGINT", st.integers(-(2**31), 2**31 - 1)),
    ("INT", "DOUBLE", st.integers(-(2**31), 2**31 - 1)),
    ("SMALLINT", "FLOAT", st.integers(-(2**15), 2**15 - 1)),
    ("BIGINT", "DECIMAL(19, 0)", st.integers(-(2**63), 2**63 - 1)),
    ("DECIMAL(9, 3)", "DECIMAL(11, 4)", st.decimals(-999_999, 999_999, places=3)),
    ("DECIMAL(15, 3)", "DOUBLE", st.decimals(-(10**12) + 1, 10**12 - 1, places=3)),
    ("FLOAT", "DOUBLE", st.floats(width=32, allow_nan=False)),
    ("BOOLEAN", "TINYINT", st.booleans()),
    ("VARCHAR(3)", "STRING", st.text(max_size=3)),
    ("CHAR(3)", "VARCHAR(3)", st.text(max_size=3)),
    ("BINARY(3)", "BINARY(3)", st.binary(max_size=3)),
    ("DATE", "TIMESTAMP(0)", st.integers(-700_000, 700_000)),
    ("TIMESTAMP(0)", "TIMESTAMP(6)", st.integers(-(10**9), 10**9).map(lambda n: n * 10**9)),
]


@pytest.mark.parametrize(("stored", "wanted", "values"), DISTINCT, ids=lambda part: str(part)[:20])
def test_a_cast_said_to_keep_values_apart_keeps_them_apart_and_in_order(stored, wanted, values):
    assert keeps_distinct(parse_type(stored), parse_type(wanted))

    @given(st.sets(values, min_size=1))
    def distinct(drawn):
        found = cast(sorted(drawn), stored, wanted)
        assert all(one < next for one, next in pairwise(found))

    distinct()


@pytest.mark.parametrize(
    ("stored", "wanted"),
    [
        ("BIGINT", "DOUBLE"),
        ("INT", "FLOAT"),
        ("INT", "TINYINT"),
        ("INT", "BOOLEAN"),
        ("INT", "STRING"),
        ("STRING", "INT"),
        ("STRING", "VARCHAR(3)"),
        ("VARCHAR(3)", "CHAR(3)"),
        ("CHAR(2)", "CHAR(3)"),
        ("BINARY(2)", "BINARY(3)"),
        ("DOUBLE", "FLOAT"),
        ("DECIMAL(16, 3)", "DOUBLE"),
        ("DECIMAL(9, 3)", "DECIMAL(12, 2)"),
        ("DECIMAL(9, 3)", "DECIMAL(9, 4)"),
        ("DECIMAL(9, 3)", "BIGINT"),
        ("TIMESTAMP(6)", "TIMESTAMP(0)"),
        ("TIMESTAMP(6)", "DATE"),
        ("ARRAY<INT>", "STRING"),
    ],
)
def test_a_cast_that_makes_values_equal_or_moves_them_does_not_keep_them_apart(stored, wanted):
    assert not keeps_distinct(parse_type(stored), parse_type(wanted))


@pytest.mark.parametrize(
    ("stored", "wanted"),
    [("BIGINT", "INT"), ("INT", "STRING"), ("INT", "DECIMAL(9, 2)"), ("TIMESTAMP(3)", "TIME")],
)
def test_a_cast_that_wraps_or_loses_values_does_not_keep_the_order(stored, wanted):
    assert not keeps_order(parse_type(stored), parse_type(wanted))
