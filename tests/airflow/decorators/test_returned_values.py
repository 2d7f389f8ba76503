"""Values of the dictionaries that a function returns: kept whole, or refused by row and name."""

import re
from datetime import datetime, timedelta, timezone
from decimal import Decimal

import pyarrow as pa
import pytest

from tests.airflow.decorators.test_decorators import ORDERS, committed, do
from tests.airflow.versions import AirflowFailException

PLUS_TWO = timezone(timedelta(hours=2))
NOON = datetime(2024, 1, 31, 12)


@pytest.mark.parametrize(
    ("kind", "value", "becomes"),
    [
        ("INT", Decimal("1.5"), "1"),
        ("DATE", NOON, "datetime.date(2024, 1, 31)"),
        ("DATE", 5, "datetime.date"),
        ("TIMESTAMP(3)", NOON.replace(microsecond=1), "datetime.datetime(2024, 1, 31, 12, 0)"),
        ("TIMESTAMP(6)", NOON.replace(tzinfo=PLUS_TWO), "datetime.datetime(2024, 1, 31, 10, 0)"),
        ("TIMESTAMP(6)", 5, "datetime.datetime(1970, 1, 1, 0, 0, 0, 5)"),
        ("ARRAY<INT>", [1, 1.5], "[1, 1]"),
        ("MAP<STRING, INT>", {"a": 1.5}, "[('a', 1)]"),
        ("ROW<a INT>", {"a": 1, "b": 2}, "{'a': 1}"),
        ("FLOAT", 1e300, "inf"),
        ("ARRAY<FLOAT>", [-1e300], "[-inf]"),
    ],
)
def test_a_value_that_would_be_cut_is_refused(catalog, kind, value, becomes):
    table = catalog.create_table("shop.orders", [("x", kind)])

    with pytest.raises(AirflowFailException, match=f"would hold {re.escape(becomes)}"):
        do(committed(lambda: [{"x": value}], task_id="work"))

    assert table.snapshots() == []


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("INT", 7),
        ("FLOAT", 0.5),
        ("FLOAT", float("inf")),
        ("DECIMAL(10, 2)", Decimal("1.50")),
        ("DATE", NOON.date()),
        ("TIMESTAMP(3)", NOON),
        ("TIMESTAMP_LTZ(6)", NOON.replace(tzinfo=PLUS_TWO)),
        ("BYTES", b"x"),
        ("ARRAY<INT>", [1, None]),
        ("MAP<STRING, INT>", [("a", 1)]),
        ("ROW<a INT, b STRING>", {"a": 1, "b": None}),
        ("INT", None),
    ],
)
def test_a_value_of_the_column_s_type_is_read_back(catalog, kind, value):
    table = catalog.create_table("shop.orders", [("x", kind)])

    do(committed(lambda: [{"x": value}], task_id="work"))

    assert table.scan().to_arrow()["x"].to_pylist() == [value]


def test_members_that_a_row_leaves_out_are_null(catalog):
    orders = catalog.create_table("shop.orders", ORDERS)
    nested = catalog.create_table("shop.nested", [("x", "ROW<a INT, b STRING>")])

    do(committed(lambda: [{}, {}], task_id="work"))
    do(committed(lambda: [{"x": {"a": 1}}], task_id="work", table="shop.nested"))

    assert orders.scan().to_arrow().to_pylist() == [{"id": None, "item": None}] * 2
    assert nested.scan().to_arrow().to_pylist() == [{"x": {"a": 1, "b": None}}]
    with pytest.raises(AirflowFailException, match="rows without any column"):
        do(committed(lambda: [{}], task_id="work", table="shop.more", create=True))


def test_a_table_is_made_of_the_names_of_all_rows(catalog):
    rows = [{"a": 1}, {"b": "x"}]

    do(committed(lambda: rows, task_id="work", create=True))

    found = catalog.table("shop.orders").scan().to_arrow().to_pylist()
    assert found == [{"a": 1, "b": None}, {"a": None, "b": "x"}]


@pytest.mark.parametrize(
    ("overwrite", "left"),
    [
        ({}, []),
        ("table", []),
        ({"dt": "b"}, ["a"]),
        ("dynamic", ["a", "b"]),
        ("partitions", ["a", "b"]),
        (None, ["a", "b"]),
    ],
)
def test_no_rows_in_place_of_others_take_them_out(catalog, overwrite, left):
    table = catalog.create_table("shop.orders", [("dt", "STRING")], partition_by=["dt"])
    table.write(pa.table({"dt": ["a", "b"]}))

    result = do(committed(list, task_id="work", overwrite=overwrite))

    assert sorted(table.scan().to_arrow()["dt"].to_pylist()) == left
    assert result["skipped"] == (len(left) == 2)
