"""Sums of short decimals that outgrow their precision: kept like any other value, as in Java."""

from __future__ import annotations

import itertools
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lakeformat as lake
from lakeformat.files.decimal_range import check_decimals
from lakeformat.paimon.binary_row import (
    decode_columns,
    decode_row,
    encode_columns,
    encode_row,
    frame_row,
)
from lakeformat.paimon.read.plan import plan_files
from lakeformat.types.arrow_types import to_arrow_type
from lakeformat.types.casts import cast_array
from lakeformat.types.type_text import parse_type
from tests.damage import fuzzed
from tests.keyed_rows import listed

in_every_format = pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
with_and_without_statistics = pytest.mark.parametrize("statistics", ["truncate(16)", "none"])
_warehouses = itertools.count()


def summing(column: str = "DECIMAL(5, 2)", **options: str) -> tuple[lake.Catalog, lake.Table]:
    """A table of ``k`` and ``v``, the latter a sum."""
    catalog = lake.open_catalog(f"memory://outgrown-{next(_warehouses)}/wh")
    catalog.create_database("shop")
    given = {key.replace("_", "-").replace("--", "."): text for key, text in options.items()}
    given |= {"merge-engine": "aggregation", "fields.v.aggregate-function": "sum", "bucket": "1"}
    columns = [("k", "INT"), ("v", column)]
    return catalog, catalog.create_table("shop.t", columns, primary_key=["k"], options=given)


def add(table: lake.Table, *values: str, key: int = 1) -> None:
    """One commit with so many rows of a key."""
    rows = [{"k": key, "v": Decimal(value)} for value in values]
    table.write(pa.Table.from_pylist(rows, table.schema.arrow_schema()))


def outgrown(unscaled: int, column: str) -> pa.Array:
    """A decimal as a sum leaves it."""
    arrow_type = to_arrow_type(parse_type(column))
    content = unscaled.to_bytes(16, "little", signed=True)
    return pa.Array.from_buffers(arrow_type, 1, [None, pa.py_buffer(content)])


@in_every_format
@with_and_without_statistics
def test_a_sum_that_outgrows_its_column_is_read_and_compacted(file_format, statistics):
    _, table = summing(file__format=file_format, metadata__stats_mode=statistics)
    add(table, "999.99")
    add(table, "0.01")
    assert listed(table.scan()) == [(1, Decimal("1000.00"))]
    table.compact()
    assert listed(table.scan()) == [(1, Decimal("1000.00"))]
    add(table, "1.00")
    table.compact()
    assert listed(table.scan()) == [(1, Decimal("1001.00"))]


@in_every_format
def test_one_write_may_hold_all_of_such_a_sum(file_format):
    _, table = summing(file__format=file_format)
    add(table, "999.99", "999.99", "0.02")
    assert listed(table.scan()) == [(1, Decimal("2000.00"))]


@in_every_format
def test_its_bounds_are_in_the_manifest_and_leave_no_row_out(file_format):
    _, table = summing(file__format=file_format)
    add(table, "999.99", "999.99")
    add(table, "-999.99", "-0.01", key=2)
    table.compact()
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    assert [entry.file.row_count for entry in plan_files(table._handle, snapshot)] == [2]
    for condition, keys in [
        ("v > 1000", [1]),
        ("v = 1999.98", [1]),
        ("v <= 1999.98", [1, 2]),
        ("v < -999.995", [2]),
        ("v IN (-1000, 5)", [2]),
        ("v > 100000000000000000000", []),
    ]:
        assert [row[0] for row in listed(table.scan(where=condition))] == keys, condition


@in_every_format
@pytest.mark.parametrize("wider", ["DECIMAL(7, 2)", "DECIMAL(7, 3)", "DECIMAL(20, 2)", "STRING"])
def test_it_is_read_under_a_wider_type(file_format, wider):
    catalog, table = summing(file__format=file_format)
    add(table, "999.99", "0.01")
    if wider == "STRING":
        catalog.alter_table("shop.t", lake.set_option("fields.v.aggregate-function", "last_value"))
    catalog.alter_table("shop.t", lake.update_column_type("v", wider))
    table = catalog.table("shop.t")
    [(_, found)] = listed(table.scan())
    assert Decimal(found) == Decimal("1000.00")
    table.compact()
    [(_, found)] = listed(table.scan())
    assert Decimal(found) == Decimal("1000.00")


def test_a_cast_it_does_not_fit_gives_null_as_in_java():
    stored, wanted = parse_type("DECIMAL(5, 2)"), parse_type("DECIMAL(6, 3)")
    assert cast_array(outgrown(100000, "DECIMAL(5, 2)"), stored, wanted).to_pylist() == [None]
    assert cast_array(outgrown(99999, "DECIMAL(5, 2)"), stored, wanted).to_pylist() == [
        Decimal("999.990")
    ]


def test_a_parquet_file_has_no_room_beyond_32_bits():
    _, table = summing("DECIMAL(9, 0)")
    add(table, "999999999", "999999999")
    before = table.latest_snapshot()
    with pytest.raises(
        lake.InvalidRequestError, match=r"column 'v' of the row k = 7 is 29999.*avro"
    ):
        add(table, *["999999999"] * 3, key=7)
    assert table.latest_snapshot() == before
    add(table, "999999999")
    with pytest.raises(
        lake.InvalidRequestError, match=r"column 'v' of the row k = 1 is 2999999997"
    ):
        table.compact()
    assert listed(table.scan()) == [(1, Decimal(2999999997))]


@pytest.mark.parametrize("file_format", ["orc", "avro"])
def test_other_files_have_64_bits_for_every_short_decimal(file_format):
    _, table = summing("DECIMAL(9, 0)", file__format=file_format)
    add(table, *["999999999"] * 3)
    table.compact()
    assert listed(table.scan()) == [(1, Decimal(2999999997))]


@with_and_without_statistics
def test_rows_that_come_in_fit_their_type(statistics):
    _, table = summing(metadata__stats_mode=statistics)
    odd = pa.table({"k": pa.array([1], pa.int32()), "v": outgrown(100000, "DECIMAL(5, 2)")})
    with pytest.raises(
        lake.InvalidRequestError, match=r"'v' has an invalid .*more digits; the first .*in row"
    ):
        table.write(odd)
    assert table.latest_snapshot() is None


@fuzzed(20)
@given(
    st.lists(st.lists(st.integers(-999, 999), min_size=1, max_size=6), min_size=1, max_size=4),
    st.sampled_from(["parquet", "orc", "avro"]),
)
def test_any_sums_are_those_of_integers(commits, file_format):
    _, table = summing("DECIMAL(3, 1)", file__format=file_format)
    for commit in commits:
        add(table, *(str(Decimal(number).scaleb(-1)) for number in commit))
    expected = Decimal(sum(map(sum, commits))).scaleb(-1)
    assert listed(table.scan()) == [(1, expected)]
    table.compact()
    assert listed(table.scan()) == [(1, expected)]


@pytest.mark.parametrize("unscaled", [100000, -100000, (1 << 63) - 1, -(1 << 63)])
def test_a_row_keeps_a_short_decimal_as_64_bits(unscaled):
    types = [parse_type("DECIMAL(5, 2)")]
    value = Decimal(unscaled).scaleb(-2)
    row = encode_row([value], types)
    assert row == bytes(8) + unscaled.to_bytes(8, "little", signed=True)
    assert decode_row(row, types) == (value,)
    column = outgrown(unscaled, "DECIMAL(5, 2)")
    framed = encode_columns([column], types)
    assert framed.to_pylist() == [frame_row(row, 1)]
    assert decode_columns(framed, types) == [column]


@pytest.mark.parametrize(
    ("unscaled", "column"),
    [(1 << 63, "DECIMAL(5, 2)"), (-(1 << 63) - 1, "DECIMAL(18, 0)"), (10**19, "DECIMAL(19, 0)")],
)
def test_what_no_sum_leaves_is_damage(unscaled, column):
    with pytest.raises(pa.ArrowInvalid, match="does not fit"):
        check_decimals(outgrown(unscaled, column))
