"""Conditions on rows: SQL's three values, typed literals, and what bounds of files can rule out."""

from __future__ import annotations

import math
import re
import time as time_module
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakeformat import InvalidRequestError, col
from lakeformat.rows.conditions.filter import bind_predicate
from lakeformat.rows.conditions.predicate import (
    And,
    Compare,
    Constant,
    IsIn,
    IsNull,
    Like,
    Not,
    Or,
    Predicate,
)
from lakeformat.rows.conditions.sql import parse_predicate
from lakeformat.rows.prune import Alternatives, Bounds, ColumnTest, Op, in_any, may_meet
from lakeformat.types.arrow_types import to_arrow_schema
from lakeformat.types.type_text import parse_type
from lakeformat.types.types import DataField

TYPES = {
    "n": "BIGINT",
    "small": "TINYINT",
    "d": "DOUBLE",
    "f": "FLOAT",
    "s": "STRING",
    "flag": "BOOLEAN",
    "price": "DECIMAL(6, 2)",
    "wide": "DECIMAL(38, 1)",
    "dt": "DATE",
    "at": "TIMESTAMP(3)",
    "fine": "TIMESTAMP(9)",
    "moment": "TIMESTAMP_LTZ(6)",
    "clock": "TIME(3)",
    "raw": "BYTES",
    "list": "ARRAY<INT>",
}
FIELDS = [DataField(i, name, parse_type(text)) for i, (name, text) in enumerate(TYPES.items())]
SCHEMA = to_arrow_schema(tuple(FIELDS))

VALUES = {
    "n": st.integers(-3, 3),
    "d": st.sampled_from([-1.5, -0.0, 0.0, 2.0, math.nan, math.inf]),
    "s": st.text("ab%_\\é\n", max_size=4),
    "flag": st.booleans(),
}
ROWS = st.fixed_dictionaries({name: st.none() | values for name, values in VALUES.items()})
COMPARISONS = [Op.EQUAL, Op.NOT_EQUAL, Op.LESS, Op.LESS_EQUAL, Op.GREATER, Op.GREATER_EQUAL]


def simple_predicates() -> st.SearchStrategy[Predicate]:
    def on(name: str) -> st.SearchStrategy[Predicate]:
        value = st.none() | VALUES[name]
        return st.one_of(
            st.builds(Compare, st.just(name), st.sampled_from(COMPARISONS), value),
            st.builds(IsIn, st.just(name), st.lists(value, max_size=3).map(tuple)),
            st.just(IsNull(name)),
        )

    patterns = st.lists(st.sampled_from(["a", "b", "é", "%", "_", r"\%", r"\_", r"\\"]), max_size=4)
    likes = st.builds(Like, st.just("s"), patterns.map("".join))
    constants = st.builds(Constant, st.sampled_from([True, False, None]))
    return st.one_of(st.sampled_from(sorted(VALUES)).flatmap(on), likes, constants)


def joined(parts: st.SearchStrategy[Predicate]) -> st.SearchStrategy[Predicate]:
    several = st.lists(parts, min_size=2, max_size=3).map(tuple)
    return st.builds(Not, parts) | st.builds(And, several) | st.builds(Or, several)


PREDICATES = st.recursive(simple_predicates(), joined, max_leaves=6)


def rank(value):
    """NaN is the largest number."""
    return (1, 0) if isinstance(value, float) and math.isnan(value) else (0, value)


def compared(op: Op, left, right) -> bool | None:
    if left is None or right is None:
        return None
    left, right = rank(left), rank(right)
    return {
        Op.EQUAL: left == right,
        Op.NOT_EQUAL: left != right,
        Op.LESS: left < right,
        Op.LESS_EQUAL: left <= right,
        Op.GREATER: left > right,
        Op.GREATER_EQUAL: left >= right,
    }[op]


def all_of(values) -> bool | None:
    values = list(values)
    return False if False in values else None if None in values else True


def is_met(part: Predicate, row) -> bool | None:
    """SQL, a row at a time."""
    match part:
        case Compare(column, op, value):
            return compared(op, row[column], value)
        case IsIn(column, values):
            found = all_of(compared(Op.NOT_EQUAL, row[column], value) for value in values)
            return None if found is None else not found
        case IsNull(column):
            return row[column] is None
        case Like(column, pattern, _):
            return None if row[column] is None else is_like(row[column], pattern)
        case Not(inner):
            met = is_met(inner, row)
            return None if met is None else not met
        case And(parts):
            return all_of(is_met(each, row) for each in parts)
        case Or(parts):
            return is_met(Not(And(tuple(Not(each) for each in parts))), row)
        case Constant(value):
            return value
    raise AssertionError(part)


def is_like(text: str, pattern: str) -> bool:
    if not pattern:
        return not text
    if pattern[0] == "%":
        return any(is_like(text[start:], pattern[1:]) for start in range(len(text) + 1))
    if pattern[0] == "\\":
        return text[:1] == pattern[1] and is_like(text[1:], pattern[2:])
    return text != "" and pattern[0] in ("_", text[0]) and is_like(text[1:], pattern[1:])


def batch_of(rows) -> pa.RecordBatch:
    fields = [SCHEMA.field(name) for name in VALUES]
    return pa.RecordBatch.from_pylist(rows, schema=pa.schema(fields))


def bound(where):
    return bind_predicate(where, FIELDS)


@given(PREDICATES, st.lists(ROWS, max_size=8))
def test_a_mask_is_what_sql_says_of_each_row(predicate, rows):
    found = bound(predicate).mask(batch_of(rows)).to_pylist()
    assert found == [is_met(predicate, row) for row in rows]


@given(PREDICATES, st.lists(ROWS, max_size=8))
def test_conjuncts_together_are_the_condition(predicate, rows):
    where, batch = bound(predicate), batch_of(rows)
    masks = [part.mask(batch).to_pylist() for part in where.conjuncts()]
    together = [all_of(met) for met in zip(*masks, strict=True)] if rows else []
    assert together == where.mask(batch).to_pylist()
    assert frozenset().union(*(part.columns for part in where.conjuncts())) <= predicate.columns


@given(PREDICATES, st.lists(ROWS, min_size=1, max_size=4))
def test_a_file_with_a_row_that_meets_the_condition_is_never_ruled_out(predicate, rows):
    if not any(is_met(predicate, row) for row in rows):
        return

    def may_have_one(conditions: list[ColumnTest]):
        return np.array([all(may_meet_one(condition) for condition in conditions)])

    def may_meet_one(condition: ColumnTest) -> bool:
        values = [row[condition.column] for row in rows]
        there = [v for v in values if v is not None and not (isinstance(v, float) and v != v)]
        arrow_type = SCHEMA.field(condition.column).type
        key = (lambda v: v.encode()) if condition.column == "s" else None
        bounds = Bounds(
            pa.array([min(there, key=key) if there else None], arrow_type),
            pa.array([max(there, key=key) if there else None], arrow_type),
            pa.array([values.count(None)]),
            pa.array([len(values)]),
        )
        [data_type] = [field.type for field in FIELDS if field.name == condition.column]
        return bool(may_meet(condition, bounds, data_type).all())

    conditions = bound(predicate).conditions()
    assert in_any(conditions, may_have_one).all(), conditions


@given(PREDICATES, st.lists(ROWS, max_size=8))
def test_a_condition_as_text_means_the_same(predicate, rows):
    text = bound(predicate).to_text()
    assert bound(text).mask(batch_of(rows)).to_pylist() == [is_met(predicate, row) for row in rows]


@pytest.mark.parametrize(
    ("where", "conditions"),
    [
        ("n = 1 AND s = 'x'", [("n", "=", 1), ("s", "=", "x")]),
        ("NOT (n = 1 OR n > 5)", [("n", "!=", 1), ("n", "<=", 5)]),
        ("n = 1 OR n IN (2, NULL, 3)", [("n", "in", (1, 2, 3))]),
        ("n = 1 OR s = 'x'", [[[("n", "=", 1)], [("s", "=", "x")]]]),
        (
            "(n > 1 AND s = 'x') OR dt IS NULL",
            [[[("n", ">", 1), ("s", "=", "x")], [("dt", "is null", None)]]],
        ),
        ("n < 1 OR n > 5", [[[("n", "<", 1)], [("n", ">", 5)]]]),
        (
            "(n = 1 AND s < 'x') OR n = 2",
            [("n", "in", (1, 2)), [[("n", "=", 1), ("s", "<", "x")], [("n", "=", 2)]]],
        ),
        (" OR ".join(f"n > {least}" for least in range(21)), []),
        ("n NOT IN (1, 2)", [("n", "!=", 1), ("n", "!=", 2)]),
        (
            "s LIKE 'ab%' AND n IS NOT NULL",
            [("s", ">=", "ab"), ("s", "<", "ac"), ("n", "is not null", None)],
        ),
        ("s LIKE '%ab'", [("s", "is not null", None)]),
        ("dt >= DATE '1970-01-02'", [("dt", ">=", 1)]),
        ("at < '1970-01-01 00:00:01'", [("at", "<", 1_000_000_000)]),
        (
            "price BETWEEN 1 AND 2.5",
            [("price", ">=", Decimal("1.00")), ("price", "<=", Decimal("2.50"))],
        ),
    ],
)
def test_what_a_condition_tells_about_bounds(where, conditions):
    assert [told(each) for each in bound(where).conditions()] == conditions


def told(condition: ColumnTest | Alternatives):
    """A condition as its parts, alternatives as a list for each branch."""
    if isinstance(condition, Alternatives):
        return [[told(each) for each in branch] for branch in condition.branches]
    return condition.column, str(condition.op), condition.literal


@pytest.mark.parametrize(
    ("text", "predicate"),
    [
        ("n = 1", col("n") == Decimal(1)),
        ("5 < `n`", col("n") > Decimal(5)),
        ("flag", col("flag") == True),  # noqa: E712 - builds a condition
        ("flag IS TRUE", And((Compare("flag", Op.EQUAL, True), Not(IsNull("flag"))))),
        ("n NOT BETWEEN -1 AND 2", ~col("n").between(Decimal(-1), Decimal(2))),
        ("\"s\" NOT LIKE 'a!%' ESCAPE '!'", ~col("s").like("a!%", "!")),
        ("s NOT LIKE 'it''s'", ~col("s").like("it's")),
        ("raw = X'0aFF'", col("raw") == b"\x0a\xff"),
        ("dt = DATE '2024-01-31'", col("dt") == date(2024, 1, 31)),
        ("n = NULL", Compare("n", Op.EQUAL, None)),
        ('a."b c" IS NULL', IsNull("a.b c")),
        ("1 < a.b.c.d.e", Compare("a.b.c.d.e", Op.GREATER, Decimal(1))),
        ("a.b", Compare("a.b", Op.EQUAL, True)),
        (
            "n IN (1) AND (s IS NULL OR NOT flag)",
            And(
                (IsIn("n", (Decimal(1),)), Or((IsNull("s"), Not(Compare("flag", Op.EQUAL, True)))))
            ),
        ),
    ],
)
def test_sql_reads_as_the_same_condition(text, predicate):
    assert parse_predicate(text) == predicate


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "empty"),
        ("n = ", "not a SQL condition near '='"),
        ("n = 'x", "not a SQL condition"),
        ("n = 1; DROP TABLE t", "not a SQL condition near 'DROP'"),
        ("SELECT 1", "not a SQL condition"),
        ("UPPER(s) = 'A'", r"UPPER\(s\) in .* is not supported"),
        ("n = small", "small in .* is not supported"),
        ("t[1].n = 1", r"t\[1\]\.n in .* is not supported"),
        ("t.n(1) = 1", r"t\.n\(1\) in .* is not supported"),
        ("n IN (SELECT 1)", "is not supported"),
        ("s ILIKE 'a'", "s ILIKE 'a' in .* is not supported"),
        ("dt = DATE '2024-13-01'", "'2024-13-01' in .* is not a valid DATE; valid are"),
        ("k = X'0'", "is not a value of bytes: write two hexadecimal digits"),
        ("n = CAST('1' AS INT)", "is not supported"),
        ("s LIKE 'a' ESCAPE 'xy'", "is not supported"),
        ("n = " + "(" * 2000 + "1" + ")" * 2000, "nested too deep"),
    ],
)
def test_what_is_no_condition_is_refused_by_its_text(text, told):
    with pytest.raises(InvalidRequestError, match=told):
        parse_predicate(text)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("list.element", "'list' is ARRAY<INT>, .*: read the rows without this"),
        ("t.n", "not a column"),
    ],
)
def test_a_field_inside_of_a_column_is_refused_where_only_columns_are_known(name, told):
    with pytest.raises(InvalidRequestError, match=told):
        bound(col(name) == 1)


MIDNIGHT = datetime(2024, 1, 31)
WIDEST = Decimal("9" * 37 + ".9")
"""More digits than Python's arithmetic keeps by itself."""


@pytest.mark.parametrize(
    ("column", "value", "held"),
    [
        ("n", 1.0, 1),
        ("n", "7", 7),
        ("n", np.int64(7), 7),
        ("n", Decimal("3.00"), 3),
        ("d", 1, 1.0),
        ("d", Decimal("0.1"), 0.1),
        ("f", 0.1, float(np.float32(0.1))),
        ("f", float(np.float32(0.1)), float(np.float32(0.1))),
        ("f", "0.10000000149011612", float(np.float32(0.1))),
        ("d", "Infinity", math.inf),
        ("price", 0.1, Decimal("0.10")),
        ("price", "1e2", Decimal("100.00")),
        ("price", Decimal("9999.990"), Decimal("9999.99")),
        ("price", 0, Decimal("0.00")),
        ("wide", WIDEST, WIDEST),
        ("wide", WIDEST.copy_negate(), WIDEST.copy_negate()),
        ("flag", "TRUE", True),
        ("dt", "2024-01-31", date(2024, 1, 31)),
        ("clock", "10:30:00.250", time(10, 30, 0, 250_000)),
        ("at", date(2024, 1, 31), MIDNIGHT),
        ("at", "2024-01-31T00:00:00.120", MIDNIGHT + timedelta(milliseconds=120)),
        (
            "moment",
            datetime(2024, 1, 31, 2, tzinfo=timezone(timedelta(hours=2))),
            MIDNIGHT.replace(tzinfo=UTC),
        ),
        (
            "moment",
            "2024-01-31 02:00:00.5+02:00",
            MIDNIGHT.replace(microsecond=500_000, tzinfo=UTC),
        ),
        ("moment", "2024-01-31 00:00:00", MIDNIGHT.replace(tzinfo=UTC)),
        (
            "moment",
            "0999-12-31 23:00:00.5+00:00",
            datetime(999, 12, 31, 23, 0, 0, 500_000, tzinfo=UTC),
        ),
        ("raw", b"\0", b"\0"),
    ],
)
def test_a_value_becomes_one_of_its_column(column, value, held):
    assert bound(col(column) == value).predicate.value.as_py() == held


@pytest.mark.parametrize(
    ("column", "text", "same"),
    [
        ("at", "2024-01-31 10:30", "2024-01-31 10:30:00"),
        ("at", "2024-01-31T10:30", "2024-01-31 10:30:00"),
        ("at", "2024-01-31", "2024-01-31 00:00:00"),
        ("moment", "2024-01-31 10:30", "2024-01-31 10:30:00"),
        ("moment", "2024-01-31 10:30Z", "2024-01-31 10:30:00"),
        ("moment", "2024-01-31T10:30+02:00", "2024-01-31 08:30:00"),
        ("clock", "10:30", "10:30:00"),
    ],
)
def test_a_time_may_leave_out_its_seconds(column, text, same):
    short, full = (bound(f"{column} >= '{each}'").predicate.value for each in (text, same))
    assert short == full


@pytest.mark.parametrize(
    ("predicate", "found"),
    [
        (col("wide") == WIDEST, [WIDEST]),
        (col("wide") < WIDEST, [WIDEST.copy_negate()]),
        (col("wide") < Decimal("9" * 37 + ".95"), [WIDEST, WIDEST.copy_negate()]),
        (col("wide") < Decimal("-" + "9" * 37 + ".95"), []),
        (col("wide") >= Decimal("-" + "9" * 37 + ".95"), [WIDEST, WIDEST.copy_negate()]),
    ],
)
def test_the_ends_of_the_widest_decimals_are_compared_to_the_last_digit(predicate, found):
    values = pa.array([WIDEST, WIDEST.copy_negate(), None], SCHEMA.field("wide").type)
    batch = pa.record_batch({"wide": values})
    assert batch.filter(bound(predicate).mask(batch))["wide"].to_pylist() == found


@pytest.fixture(params=["UTC", "Asia/Tokyo", "America/New_York"])
def _zone_of_the_machine(request, monkeypatch):
    monkeypatch.setenv("TZ", request.param)
    time_module.tzset()
    yield
    monkeypatch.undo()
    time_module.tzset()


@pytest.mark.usefixtures("_zone_of_the_machine")
@pytest.mark.parametrize("kind", ["", "TIMESTAMP ", "TIMESTAMPTZ "])
@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("2024-01-31+02:00", "2024-01-30 22:00:00"),
        ("2024-01-31-0500", "2024-01-31 05:00:00"),
        ("2024-01-31Z", "2024-01-31 00:00:00"),
        ("2024-01-31 10:30:00,5+02:00", "2024-01-31 08:30:00.5"),
        ("20240131T103000+0200", "2024-01-31 08:30:00"),
        ("2024-01-31 10:30:00.250 +02:00", "2024-01-31 08:30:00.25"),
    ],
)
def test_a_zone_means_the_same_on_every_machine(kind, text, same):
    zoned, utc = (
        bound(f"moment >= {each}").predicate.value for each in (f"{kind}'{text}'", f"'{same}'")
    )
    assert zoned == utc


@pytest.mark.parametrize(
    "text",
    [
        "2024-01-31 10.5:30:00+02:00",
        "2024-01-31 10:30.5+02:00",
        "2024-01-3110:30+02:00",
        "2024-02-30+02:00",
        "2024-01-31 24:30Z",
    ],
)
def test_a_time_with_a_zone_is_read_strictly(text):
    with pytest.raises(InvalidRequestError, match=r"write it as '2024-01-31'.*then the zone"):
        bound(col("moment") == text)
    with pytest.raises(InvalidRequestError, match=r"is not a valid TIMESTAMP"):
        bound(f"moment = TIMESTAMP '{text}'")


def test_nanoseconds_of_a_text_are_kept():
    [condition] = bound("fine = '1970-01-01 00:00:00.000000007'").conditions()
    assert condition.literal == 7


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("TIMESTAMP '1970-01-01 00:00:00.123456789'", 123_456_789),
        ("TIMESTAMP '1970-01-01 00:00:00.1234560000'", 123_456_000),
        ("CAST('1970-01-01 00:00:00.123456' AS TIMESTAMP(6))", 123_456_000),
    ],
)
def test_nanoseconds_of_a_typed_text_are_kept(text, nanoseconds):
    [condition] = bound(f"fine = {text}").conditions()
    assert condition.literal == nanoseconds


@pytest.mark.parametrize(
    ("where", "told"),
    [
        ("at = TIMESTAMP '2024-01-31 10:30:00.1234567'", r"keeps 3 fractional digits"),
        ("moment = TIMESTAMP '2024-01-31 10:30:00.1234567Z'", r"keeps 6 fractional digits"),
        ("clock = TIME '10:30:00.0000009'", r"is not a valid TIME; valid are"),
        ("fine = CAST('2024-01-31 10:30:00.1234' AS TIMESTAMP(3))", r"than TIMESTAMP\(3\) keeps"),
        ("at = TIMESTAMP '2024-01-31 10:30:00Z'", r"the column has none"),
        ("s = TIMESTAMP '2024-01-31 10:30:00'", r"write a text in quotes"),
        ("dt = TIMESTAMP '2024-01-31'", r"write a date"),
    ],
)
def test_a_typed_text_that_does_not_fit_its_column_is_refused(where, told):
    with pytest.raises(InvalidRequestError, match=told):
        bound(where)


@pytest.mark.parametrize(
    ("column", "value", "told"),
    [
        ("n", True, "write a number"),
        ("n", "seven", "write a number"),
        ("n", "1_0", r"write a number"),
        ("d", "1_0.5", r"write a number"),
        ("price", "\N{FULLWIDTH DIGIT ONE}", r"write a number"),
        ("d", (1 << 53) + 1, "the nearest value is 9007199254740992"),
        ("f", 0.123456789, "the nearest value is 0.123"),
        ("f", 1e300, "the nearest value is inf"),
        ("price", "0.001", "at most 2 digits after"),
        ("s", 5, "in quotes"),
        ("s", date(2024, 1, 31), "in quotes"),
        ("flag", 1, "true or false"),
        ("raw", "text", "X'0AFF'"),
        ("dt", "2024-01-31 10:00:00", "2024-01-31"),
        ("dt", "2024-02-30", "DATE"),
        ("dt", "19753", "2024-01-31"),
        ("dt", MIDNIGHT, "write a date"),
        ("clock", "10:30:60", r"from '00:00:00' to '23:59:59'"),
        ("clock", "10:60", r"from '00:00:00' to '23:59:59'"),
        ("clock", "24:00:00", r"from '00:00:00' to '23:59:59'"),
        ("clock", "10:30:00.0001", "keeps 3 fractional digits of a second"),
        ("at", MIDNIGHT.replace(tzinfo=UTC), "the column has none"),
        ("at", "2024-01-31 00:00:00.0001", "keeps 3 fractional digits of a second"),
        ("at", "2024-01-31 00:00:00Z", "TIMESTAMP.*the column has none"),
        ("at", "2024-01-31 10:30+02:00", "TIMESTAMP.*the column has none"),
        ("at", "2024-02-31", r"the calendar has no such day; write it as"),
        ("at", "2023-2-29T10:30", r"the calendar has no such day; write it as"),
        ("moment", "2024-02-30 00:00:00", r"the calendar has no such day; write it as"),
        ("at", "2024-13-01", r"the calendar has no such day; write it as"),
        ("at", "2024-01-31 10", "TIMESTAMP; write it as '2024-01-31', '2024-01-31 10:30' or "),
        ("at", 0, "write it as"),
        ("at", "0", "write it as"),
        ("at", "-5", "write it as"),
        ("list", 1, "cannot be compared with a value"),
    ],
)
def test_a_value_its_column_cannot_hold_is_refused_with_both(column, value, told):
    with pytest.raises(InvalidRequestError, match=f"column '{column}'.*{told}") as refused:
        bound(col(column) == value)
    assert repr(value) in str(refused.value) or column == "list"


def test_an_unknown_column_is_refused_with_those_there_are():
    with pytest.raises(
        InvalidRequestError, match="'amount', which is not a column; the columns are n, sma"
    ):
        bound(col("n").is_null() | col("amount").is_null())


@pytest.mark.parametrize(
    "build",
    [
        lambda: col("n") == None,  # noqa: E711 - what people write
        lambda: col("n") == col("small"),
        lambda: 1 < col("n") < 3,
        lambda: (col("n") > 1) and (col("n") < 3),
        lambda: (col("n") > 1) & True,
        lambda: col("n").isin("abc"),
        lambda: col("s").startswith(5),
        lambda: col("s").like("a", escape=""),
        lambda: col(""),
        lambda: bound(5),
        lambda: bound(col("n").like("1%")),
        lambda: bound(col("s").like("a\\b")),
    ],
)
def test_what_python_would_take_otherwise_is_refused(build):
    with pytest.raises(InvalidRequestError):
        build()


@pytest.mark.parametrize(
    ("predicate", "found"),
    [
        (col("s").startswith("a%"), ["a%", "a%b"]),
        (col("s").endswith("_"), ["x_"]),
        (col("s").contains("%"), ["a%", "a%b"]),
        (~col("s").contains("%"), ["x_", "\\"]),
        (col("s").endswith("\\"), ["\\"]),
    ],
)
def test_texts_are_searched_as_they_are(predicate, found):
    rows = [{"s": text} for text in ("a%", "a%b", "x_", "\\", None)]
    batch = batch_of(rows)
    assert batch.filter(bound(predicate).mask(batch))["s"].to_pylist() == found


@pytest.mark.parametrize("part", ["_", "%x"])
def test_a_pattern_with_too_many_wildcards_is_refused_before_any_row_is_read(part):
    with pytest.raises(InvalidRequestError, match=r"characters, too many.*shorter"):
        bound(col("s").like(part * 100_000) & col("n").is_null())


@pytest.mark.parametrize("pattern", ["x" * 100_000 + "%", "_" * 20_000])
def test_a_long_pattern_with_few_wildcards_is_searched(pattern):
    batch = batch_of([{"s": pattern.replace("%", "y")}, {"s": "z"}])
    assert bound(col("s").like(pattern)).mask(batch).to_pylist() == [True, False]


def test_the_text_of_a_condition_quotes_every_name_and_value():
    where = bound((col("s") == "it's") & ~col("n").isin([1]) & (col("dt") > date(2024, 1, 31)))
    assert where.to_text() == "\"s\" = 'it''s' AND NOT (\"n\" IN (1)) AND \"dt\" > '2024-01-31'"
    assert re.search(
        r'"a""b"',
        bind_predicate(col('a"b').is_null(), [DataField(0, 'a"b', FIELDS[0].type)]).to_text(),
    )
