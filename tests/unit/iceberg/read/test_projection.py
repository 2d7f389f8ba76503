"""Partitions and manifests are skipped only if no row in them matches a condition."""

from __future__ import annotations

import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakeformat.iceberg.arrow_types import to_arrow_type
from lakeformat.iceberg.partition_spec import PartitionField, PartitionSpec
from lakeformat.iceberg.read.condition_fields import condition_fields
from lakeformat.iceberg.read.file_pruning import PartitionSummaries, by_partition, by_summary
from lakeformat.iceberg.read.projection import project
from lakeformat.iceberg.schema import Schema
from lakeformat.iceberg.transforms import parse_transform
from lakeformat.iceberg.types import Field, PrimitiveType
from lakeformat.rows.conditions.filter import PredicateFilter, bind_predicate
from lakeformat.rows.conditions.predicate import Predicate, col
from lakeformat.rows.prune import ColumnTest, Op

DECIMAL = PrimitiveType("decimal", (9, 2))
DAYS = st.dates(date(1969, 12, 1), date(1970, 2, 1))
MOMENTS = st.datetimes(datetime(1969, 12, 30), datetime(1970, 1, 3))
COLUMNS: dict[str, tuple[PrimitiveType, st.SearchStrategy[Any], list[str]]] = {
    "int": (PrimitiveType("int"), st.integers(-25, 25), ["bucket[3]", "truncate[10]"]),
    "long": (PrimitiveType("long"), st.integers(-25, 25), ["bucket[3]", "truncate[10]"]),
    "least int": (
        PrimitiveType("int"),
        st.integers(-(2**31), -(2**31) + 25) | st.integers(2**31 - 25, 2**31 - 1),
        ["truncate[10]", "truncate[16]"],
    ),
    "least long": (
        PrimitiveType("long"),
        st.integers(-(2**63), -(2**63) + 25) | st.integers(2**63 - 25, 2**63 - 1),
        ["truncate[10]"],
    ),
    "decimal": (
        DECIMAL,
        st.integers(-300, 300).map(lambda n: Decimal(n).scaleb(-2)),
        ["bucket[3]", "truncate[50]"],
    ),
    "string": (
        PrimitiveType("string"),
        st.text("ab\u00e9", max_size=4),
        ["bucket[3]", "truncate[2]"],
    ),
    "binary": (PrimitiveType("binary"), st.binary(max_size=3), ["bucket[3]", "truncate[2]"]),
    "date": (PrimitiveType("date"), DAYS, ["bucket[3]", "year", "month", "day"]),
    "timestamp": (PrimitiveType("timestamp"), MOMENTS, ["year", "month", "day", "hour"]),
    "timestamptz": (
        PrimitiveType("timestamptz"),
        MOMENTS.map(lambda moment: moment.replace(tzinfo=UTC)),
        ["bucket[3]", "year", "month", "day", "hour"],
    ),
}
CASES = [
    pytest.param(column, transform, id=f"{transform}-{column}")
    for column, (_, _, transforms) in COLUMNS.items()
    for transform in ("identity", "void", "zorder", *transforms)
]


def schema_of(column: str) -> Schema:
    return Schema(0, (Field(7, "x", COLUMNS[column][0]),))


def spec_of(transform: str) -> PartitionSpec:
    return PartitionSpec(0, (PartitionField((7,), 1000, "p", transform),))


def predicates(values: st.SearchStrategy[Any], *, is_text: bool) -> st.SearchStrategy[Predicate]:
    x = col("x")
    compare = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")
    leaves = [
        st.builds(lambda op, value: getattr(x, op)(value), st.sampled_from(compare), values),
        st.lists(values, max_size=3).map(x.isin),
        st.sampled_from([x.is_null(), x.is_not_null()]),
    ]
    if is_text:
        leaves.append(values.map(x.startswith))
    return st.recursive(
        st.one_of(leaves),
        lambda inner: st.one_of(
            inner.map(lambda part: ~part),
            st.builds(lambda a, b: a & b, inner, inner),
            st.builds(lambda a, b: a | b, inner, inner),
        ),
        max_leaves=3,
    )


def drawn(data: Any, column: str) -> tuple[pa.Array, PredicateFilter]:
    kind, values, _ = COLUMNS[column]
    rows = data.draw(st.lists(st.none() | values, min_size=1, max_size=12))
    where = data.draw(predicates(values, is_text=column == "string"))
    bound = bind_predicate(where, condition_fields(schema_of(column)))
    return pa.array(rows, to_arrow_type(kind)), bound


def partitions_of(transform: str, rows: pa.Array) -> pa.Array:
    found = parse_transform(transform)
    return rows if transform == "zorder" else found.apply(rows)


def matches(where: PredicateFilter, rows: pa.Array) -> np.ndarray:
    batch = pa.RecordBatch.from_arrays([rows], ["x"])
    return where.mask(batch).fill_null(False).to_numpy(zero_copy_only=False)


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("column", "transform"), CASES)
@given(data=st.data())
def test_the_partition_of_a_matching_row_is_kept(column, transform, data):
    rows, where = drawn(data, column)
    values = [partitions_of(transform, rows)]
    kept = by_partition(
        where.conditions(), spec_of(transform), schema_of(column), values, len(rows)
    )
    assert not (matches(where, rows) & ~kept).any()


@pytest.mark.parametrize("column", [each for each in COLUMNS if each != "binary"])
@given(data=st.data())
def test_a_comparison_with_an_identity_partition_skips_all_that_do_not_match(column, data):
    _, values, _ = COLUMNS[column]
    rows, _ = drawn(data, column)
    where = bind_predicate(col("x") < data.draw(values), condition_fields(schema_of(column)))
    kept = by_partition(
        where.conditions(), spec_of("identity"), schema_of(column), [rows], len(rows)
    )
    assert kept.tolist() == matches(where, rows).tolist()


def encoded(value: Any) -> bytes | None:
    """A partition value in the binary form of bounds."""
    match value:
        case str():
            return value.encode()
        case bytes() | None:
            return value
        case Decimal():
            number = int(value.scaleb(2))
            return number.to_bytes(8, "big", signed=True)
    return None


def bounds_of(values: pa.Array) -> tuple[bytes | None, bytes | None]:
    """The least and the greatest value in the binary form of bounds."""
    there = values.drop_null()
    if not len(there):
        return None, None
    kind = values.type
    if pa.types.is_temporal(kind) or pa.types.is_integer(kind):
        code = "<i" if kind.bit_width == 32 else "<q"
        numbers = there.view(pa.int32() if kind.bit_width == 32 else pa.int64()).to_pylist()
        return struct.pack(code, min(numbers)), struct.pack(code, max(numbers))
    return encoded(min(there.to_pylist())), encoded(max(there.to_pylist()))


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("column", "transform"), [case for case in CASES if "zorder" not in str(case.id)]
)
@given(data=st.data())
def test_the_manifest_of_a_matching_row_is_kept(column, transform, data):
    rows, where = drawn(data, column)
    values = partitions_of(transform, rows)
    lower, upper = bounds_of(values)
    summary = PartitionSummaries(
        pa.array([values.null_count > 0]),
        pa.array([None], pa.bool_()),
        pa.array([lower], pa.binary()),
        pa.array([upper], pa.binary()),
    )
    kept = by_summary(where.conditions(), spec_of(transform), schema_of(column), [summary], 1)
    assert kept.all() or not matches(where, rows).any()


def only_test(column: str, transform: str, test: ColumnTest) -> ColumnTest:
    [found] = project([test], spec_of(transform), schema_of(column))
    return found.test


def test_a_strict_comparison_stops_at_the_neighbour_of_its_value():
    ten = 10 * 3_600 * 10**9  # 10:00 on the first day, in nanoseconds
    assert only_test("timestamp", "hour", ColumnTest("x", Op.LESS, ten)) == ColumnTest(
        "x", Op.LESS_EQUAL, 9
    )
    assert only_test("timestamp", "hour", ColumnTest("x", Op.GREATER, ten)) == ColumnTest(
        "x", Op.GREATER_EQUAL, 10
    )
    assert only_test("int", "truncate[10]", ColumnTest("x", Op.LESS, 20)) == ColumnTest(
        "x", Op.LESS_EQUAL, 10
    )
    assert only_test("string", "truncate[2]", ColumnTest("x", Op.LESS, "ab")) == ColumnTest(
        "x", Op.LESS, "ab"
    )


def test_a_time_before_1970_is_also_sought_where_old_writers_put_it():
    hour_before = -3_600 * 10**9
    found = only_test("timestamp", "hour", ColumnTest("x", Op.EQUAL, hour_before))
    assert found == ColumnTest("x", Op.IN, (-1, 0))


def test_a_column_that_is_no_source_of_the_spec_excludes_nothing():
    schema = Schema(0, (Field(7, "x", PrimitiveType("int")), Field(8, "y", PrimitiveType("int"))))
    assert project([ColumnTest("y", Op.EQUAL, 1)], spec_of("identity"), schema) == []
    assert project([ColumnTest("x", Op.NOT_EQUAL, 1)], spec_of("bucket[4]"), schema) == []


def test_a_number_that_is_rounded_below_the_least_one_excludes_nothing():
    """Such a result wraps to the largest numbers, or has a digit too many."""
    least = -(2**31)
    for op, literal in ((Op.GREATER, least), (Op.GREATER_EQUAL, least), (Op.LESS_EQUAL, least)):
        test = ColumnTest("x", op, literal)
        assert project([test], spec_of("truncate[10]"), schema_of("int")) == []
    longest = Schema(0, (Field(7, "x", PrimitiveType("decimal", (38, 0))),))
    test = ColumnTest("x", Op.GREATER_EQUAL, Decimal(1 - 10**38))
    assert project([test], spec_of("truncate[50]"), longest) == []


def test_the_partition_of_the_least_numbers_is_kept_though_it_is_among_the_largest():
    rows = pa.array([-(2**31), 0, 50], pa.int32())
    partitions = [parse_transform("truncate[10]").apply(rows)]
    assert partitions[0].to_pylist() == [2**31 - 2, 0, 50]
    less = [ColumnTest("x", Op.LESS, 5)]
    kept = by_partition(less, spec_of("truncate[10]"), schema_of("int"), partitions, 3)
    assert kept.tolist() == [True, True, False]


@pytest.mark.parametrize("width", [10, 2**31 - 1])
def test_the_partition_of_the_least_ints_is_kept_after_their_column_becomes_a_long(width):
    least = -(2**31)
    rows = pa.array([least, 0, 2**30], pa.int32())
    partitions = [parse_transform(f"truncate[{width}]").apply(rows).cast(pa.int64())]
    assert partitions[0][0].as_py() > 0
    for test in (
        ColumnTest("x", Op.LESS, 5),
        ColumnTest("x", Op.LESS_EQUAL, least),
        ColumnTest("x", Op.EQUAL, least),
        ColumnTest("x", Op.IN, (least, 7)),
    ):
        kept = by_partition([test], spec_of(f"truncate[{width}]"), schema_of("long"), partitions, 3)
        assert kept[0], test
