"""Columns that have another name or type in the source: ``columns`` and ``casts``."""

from __future__ import annotations

import json
import sqlite3
from datetime import date
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import lakeformat as lake
from lakeformat.cli.app import app
from lakeformat.files.foreign import text_checks
from lakeformat.types.type_text import type_to_json
from spark_jobs import ingest

COLUMNS = [("id", "BIGINT"), ("amount", "DECIMAL(10, 2)")]
NAMES = {"columns": {"id": "Order No", "amount": "Amount (EUR)"}}


@pytest.fixture
def catalog(tmp_path):
    catalog = lake.open_catalog(tmp_path / "warehouse")
    catalog.create_database("shop")
    return catalog


@pytest.fixture
def orders(catalog):
    return catalog.create_table("shop.orders", COLUMNS)


@pytest.fixture
def land(tmp_path):
    """Ingest a file of ``tmp_path`` into ``shop.orders``."""

    def run(name: str, **more) -> dict:
        request = {"warehouse": tmp_path / "warehouse", "table": "shop.orders"}
        return ingest.run({**request, "source": tmp_path / name, **more})

    return run


@pytest.fixture(params=["csv", "json", "parquet"])
def file_of(request, tmp_path):
    """Write one row into a file of one format, and return its name."""

    def write(row: dict) -> str:
        path = tmp_path / f"rows.{request.param}"
        if request.param == "parquet":
            pq.write_table(pa.Table.from_pylist([row]), path)
        elif request.param == "json":
            path.write_text(json.dumps(row) + "\n")
        else:
            path.write_text(f"{','.join(row)}\n{','.join(map(str, row.values()))}\n")
        return path.name

    return write


def types_of(catalog):
    fields = catalog.table("shop.orders").schema.fields
    return {field.name: type_to_json(field.type) for field in fields}


def rows_of(catalog):
    return catalog.table("shop.orders").scan().to_arrow().to_pylist()


def test_a_column_is_read_under_another_name(orders, catalog, land, file_of):
    land(file_of({"Order No": 1, "amount": 2}), columns={"id": "Order No"})

    assert rows_of(catalog) == [{"id": 1, "amount": Decimal("2.00")}]


def test_two_columns_may_swap_their_names(catalog, land, file_of):
    catalog.create_table("shop.orders", [("a", "BIGINT"), ("b", "BIGINT")])

    land(file_of({"a": 1, "b": 2}), columns={"a": "b", "b": "a"})

    assert rows_of(catalog) == [{"a": 2, "b": 1}]


def test_a_column_whose_values_go_elsewhere_gets_none(catalog, land, file_of):
    catalog.create_table("shop.orders", [("price", "BIGINT"), ("amount", "BIGINT")])

    land(file_of({"price": 1}), columns={"amount": "price"})

    assert rows_of(catalog) == [{"price": None, "amount": 1}]


def test_a_value_is_cast_as_in_sql(orders, catalog, land, file_of):
    name = file_of({"Order No": 1, "Amount (EUR)": 1.235})
    with pytest.raises(lake.InvalidRequestError):
        land(name, **NAMES)

    land(name, **NAMES, casts={"amount": "DECIMAL(10, 2)"})

    assert rows_of(catalog) == [{"id": 1, "amount": Decimal("1.24")}]


@pytest.mark.parametrize(
    ("text", "type", "value"),
    [
        ("007", "INT", 7),
        ("1.9", "BIGINT", 1),
        ("2024-01-31", "DATE", date(2024, 1, 31)),
        ("yes", "BOOLEAN", True),
        ("abc", "VARCHAR(2)", "ab"),
        ("", "INT", None),
    ],
)
def test_a_text_of_a_csv_file_is_cast(catalog, land, tmp_path, text, type, value):
    catalog.create_table("shop.orders", [("id", "BIGINT"), ("value", type)])
    (tmp_path / "a.csv").write_text(f"id,value\n1,{text}\n")

    land("a.csv", casts={"value": type})

    assert rows_of(catalog) == [{"id": 1, "value": value}]


@pytest.mark.parametrize(
    ("value", "type"),
    [
        (3_000_000_000, "INT"),
        (-129.5, "TINYINT"),
        (123_456_789.5, "DECIMAL(5, 2)"),
        ("many", "BIGINT"),
        ("3000000000", "INT"),
        ("123456789.5", "DECIMAL(5, 2)"),
    ],
)
def test_a_value_beyond_its_type_is_refused_with_its_row(catalog, land, file_of, value, type):
    catalog.create_table("shop.orders", [("value", type)])

    with pytest.raises(lake.InvalidRequestError, match=r"row 1, column 'value': .* cannot become"):
        land(file_of({"value": value}), casts={"value": type})
    assert rows_of(catalog) == []


def test_the_row_of_a_refused_value_is_counted_over_all_batches(catalog, land, tmp_path):
    catalog.create_table("shop.orders", [("value", "INT")])
    rows = pa.table({"value": [*map(str, range(70_000)), "many"]})
    pq.write_table(rows, tmp_path / "a.parquet", row_group_size=30_000)

    with pytest.raises(lake.InvalidRequestError, match=r"a\.parquet: row 70001, column 'value'"):
        land("a.parquet", casts={"value": "INT"})


@pytest.mark.parametrize("stage", [False, True])
@pytest.mark.parametrize("form", ["paimon", "iceberg"])
def test_a_row_that_the_writer_refuses_is_named_by_its_parquet_file(tmp_path, land, form, stage):
    catalog = lake.open_catalog(tmp_path / "warehouse", format=form)
    catalog.create_database("shop", exist_ok=True)
    catalog.create_table("shop.orders", pa.schema([pa.field("id", pa.int64(), nullable=False)]))
    for name, ids in (("a", [1, 2]), ("b", []), ("c", [3, None])):
        pq.write_table(pa.table({"id": pa.array(ids, pa.int64())}), tmp_path / f"{name}.parquet")

    with pytest.raises(lake.InvalidRequestError, match=r"c\.parquet: .*row 2 \(rows count from 1"):
        land("*.parquet", format=None, stage=stage, catalog_options={"format": form})


def test_a_type_that_no_cast_leads_to_is_refused(catalog, land, file_of):
    catalog.create_table("shop.orders", [("value", "DATE")])

    with pytest.raises(lake.InvalidRequestError, match=r"column 'value': .* cannot become DATE"):
        land(file_of({"value": True}), casts={"value": "DATE"})


def test_a_refused_cast_names_a_nested_type_as_sql_does(catalog, land, tmp_path):
    catalog.create_table("shop.orders", [("value", "ARRAY<INT>")])
    (tmp_path / "a.csv").write_text("value\n1\n")

    with pytest.raises(lake.InvalidRequestError, match=r"STRING cannot become .* no such cast"):
        land("a.csv", casts={"value": "ARRAY<INT>"})


def test_a_new_table_has_the_names_and_types_of_the_request(catalog, land, file_of):
    name = file_of({"Order No": 1, "Amount (EUR)": 1.235, "note": "a"})

    land(name, create=True, **NAMES, casts={"amount": "DECIMAL(10, 2)", "note": "VARCHAR(9)"})

    assert types_of(catalog) == {"id": "BIGINT", "amount": "DECIMAL(10, 2)", "note": "VARCHAR(9)"}
    assert rows_of(catalog) == [{"id": 1, "amount": Decimal("1.24"), "note": "a"}]


def test_an_added_column_has_the_name_and_type_of_the_request(catalog, land, file_of):
    catalog.create_table("shop.orders", [("id", "BIGINT")])
    name = file_of({"Order No": 1, "Amount (EUR)": 1.235})

    land(name, on_schema_change="add", **NAMES, casts={"amount": "DECIMAL(10, 2)"})

    assert types_of(catalog) == {"id": "BIGINT", "amount": "DECIMAL(10, 2)"}
    assert rows_of(catalog) == [{"id": 1, "amount": Decimal("1.24")}]


def test_a_cast_gives_a_column_without_values_its_type(catalog, land, tmp_path):
    (tmp_path / "a.csv").write_text("id,later\n1,\n")

    land("a.csv", create=True, casts={"later": "DATE"})

    assert types_of(catalog) == {"id": "BIGINT", "later": "DATE"}


def test_a_json_column_of_two_types_is_refused_with_the_row_counted_from_one(land, tmp_path):
    (tmp_path / "mixed.json").write_text('{"id": 1, "b": 1}\n{"id": 2, "b": "x"}\n')

    with pytest.raises(lake.InvalidRequestError, match="row 2: column 'b' changed from number to"):
        land("mixed.json", create=True)


def test_a_column_to_cast_has_one_type_in_all_json_files(land, tmp_path):
    (tmp_path / "1.json").write_text('{"id": 1, "code": 7}\n')
    (tmp_path / "2.json").write_text('{"id": 2, "code": "x"}\n')

    with pytest.raises(lake.InvalidRequestError, match=r"differ in type.* code "):
        land("*.json", create=True, casts={"code": "STRING"})


@pytest.mark.parametrize("exists", [False, True], ids=["new table", "existing table"])
@pytest.mark.parametrize(
    ("number", "type", "value"),
    [
        ("12345678901234567.25", "DECIMAL(20, 2)", Decimal("12345678901234567.25")),
        ("12345678901234567890", "DECIMAL(20, 0)", Decimal("12345678901234567890")),
        ("12345678901234567890", "STRING", "12345678901234567890"),
        ("9007199254740993.5", "BIGINT", 9007199254740993),
        ("9007199254740993.5", "DOUBLE", 9007199254740993.5),
        ("1e300", "DOUBLE", 1e300),
    ],
)
def test_a_large_number_in_json_is_cast_without_a_lost_digit(
    catalog, land, tmp_path, exists, number, type, value
):
    if exists:
        catalog.create_table("shop.orders", [("value", type)])
    (tmp_path / "1.json").write_text('{"value": 2.0}\n')
    (tmp_path / "2.json").write_text(f'\n{{"value": null}}\n{{"value": {number}}}\n')
    (tmp_path / "3.json").write_text("\n")

    land("*.json", create=True, casts={"value": type})

    assert value in [row["value"] for row in rows_of(catalog)]


def test_a_large_number_in_json_that_no_decimal_holds_is_refused(land, tmp_path):
    (tmp_path / "a.json").write_text('{"value": 1e300}\n')

    with pytest.raises(lake.InvalidRequestError, match=r"a\.json: column 'value'.*cast it to DOUB"):
        land("a.json", create=True, casts={"value": "STRING"})


def test_a_bad_value_beside_a_large_number_in_json_is_named_by_its_row(land, tmp_path, monkeypatch):
    monkeypatch.setattr(text_checks, "BLOCK_BYTES", 64)
    rows = ['{"value": 1e16}'] * 9 + ['{"value": "many"}']
    (tmp_path / "a.json").write_text("\n".join(rows))

    with pytest.raises(lake.InvalidRequestError, match="row 10, column 'value': \"many"):
        land("a.json", create=True, casts={"value": "STRING"})


def test_a_column_is_widened_under_its_own_name(catalog, land, file_of):
    catalog.create_table("shop.orders", [("id", "INT")])

    land(
        file_of({"Order No": 3_000_000_000}), columns=dict(id="Order No"), on_schema_change="widen"
    )

    assert (types_of(catalog), rows_of(catalog)) == ({"id": "BIGINT"}, [{"id": 3_000_000_000}])


def test_a_sql_table_has_its_names_and_types_mapped_too(catalog, tmp_path, land):
    with sqlite3.connect(tmp_path / "shop.sqlite") as database:
        database.execute("CREATE TABLE orders (no BIGINT, amount TEXT)")
        database.executemany("INSERT INTO orders VALUES (?, ?)", [(1, "1.235"), (2, None)])
    database.close()
    sql = {"jdbc_url": f"sqlite:///{tmp_path}/shop.sqlite", "jdbc_table": "orders", "source": None}

    with pytest.raises(lake.InvalidRequestError, match=r"column 'noo', .* did you mean 'no'"):
        land("", create=True, **sql, columns={"id": "noo"})
    with pytest.raises(lake.InvalidRequestError, match=r"'amount': STRING cannot become ARRAY<INT"):
        land("", create=True, **sql, columns={"id": "no"}, casts={"amount": "ARRAY<INT>"})
    land("", create=True, **sql, columns={"id": "no"}, casts={"amount": "DECIMAL(10, 2)"})

    assert types_of(catalog) == {"id": "BIGINT", "amount": "DECIMAL(10, 2)"}
    assert rows_of(catalog) == [{"id": 1, "amount": Decimal("1.24")}, {"id": 2, "amount": None}]


def test_a_sql_column_is_read_with_the_type_of_the_column_that_it_becomes(catalog, tmp_path, land):
    with sqlite3.connect(tmp_path / "shop.sqlite") as database:
        database.execute("CREATE TABLE orders (id BIGINT, a DOUBLE)")
        database.execute("INSERT INTO orders VALUES (1, 0.1)")
    database.close()
    columns = [("id", "BIGINT"), ("a", "FLOAT"), ("amount", "DOUBLE")]
    catalog.create_table("shop.orders", columns)
    sql = {"jdbc_url": f"sqlite:///{tmp_path}/shop.sqlite", "jdbc_table": "orders", "source": None}

    land("", **sql, columns={"amount": "a"})

    assert rows_of(catalog) == [{"id": 1, "a": None, "amount": 0.1}]


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"columns": {"id": "order"}}, r"'order', which the source does not have: .* 'Order'\?"),
        ({"columns": {"Order": "id"}}, r"does not have: .*\. Write columns={'id': 'Order'}"),
        ({"columns": {"total": "Order"}}, "no column 'total'"),
        ({"columns": {"id": "Order"}, "casts": {"amont": "INT"}}, r"did you mean 'amount'\?"),
        ({"columns": {"amount": "Order"}}, "the source has a column 'amount', too"),
        ({"columns": {"id": "Order", "no": "Order"}}, "'Order' appears twice"),
        (
            {"casts": {"id": "NUMBER"}},
            "'casts' must be an object of table columns, each with a type",
        ),
        (
            {"columns": {"id": "Order"}, "header": False},
            "'columns' cannot be used with header=False: such files",
        ),
        ({"columns": {"id": "x"}, "format": "canal-json"}, "'columns' cannot be used with format"),
    ],
)
def test_a_mapping_that_cannot_be_right_is_refused(orders, catalog, land, tmp_path, more, reason):
    (tmp_path / "a.csv").write_text("Order,amount\n1,2\n")

    with pytest.raises(lake.InvalidRequestError, match=reason):
        land("a.csv", **more)
    assert rows_of(catalog) == []


@pytest.mark.parametrize("change", ["fail", "add", "widen"])
def test_a_cast_column_may_be_missing_in_a_file(orders, catalog, land, file_of, change):
    land(file_of({"id": 1}), casts={"amount": "DECIMAL(10, 2)"}, on_schema_change=change)
    assert rows_of(catalog) == [{"id": 1, "amount": None}]


def test_a_column_that_differs_only_in_case_is_not_added(orders, catalog, land, tmp_path):
    (tmp_path / "a.csv").write_text("ID,amount\n1,2\n")

    with pytest.raises(lake.InvalidRequestError, match=r"did you mean 'id'\?"):
        land("a.csv")
    with pytest.raises(lake.InvalidRequestError, match=r"Write columns={'id': 'ID'}"):
        land("a.csv", on_schema_change="add")
    land("a.csv", columns={"id": "ID"})
    assert rows_of(catalog) == [{"id": 1, "amount": Decimal("2.00")}]


def test_the_command_line_takes_the_same_mapping(orders, catalog, file_of, tmp_path):
    name = file_of({"Order No": 1, "Amount (EUR)": 1.235})
    words = ["-w", str(tmp_path / "warehouse"), "write", "shop.orders", str(tmp_path / name)]
    mapping = ["--columns", "id=Order No", "--columns", "amount=Amount (EUR)"]

    shown = CliRunner().invoke(app, [*words, *mapping, "--casts", "amount=DECIMAL(10, 2)"])

    assert shown.exit_code == 0, shown.output
    assert rows_of(catalog) == [{"id": 1, "amount": Decimal("1.24")}]
    wrong = CliRunner().invoke(app, [*words, "--casts", "amount"])
    assert "--casts must be NAME=TYPE" in str(wrong.exception)


def late_values(path, first: str, late: str) -> None:
    """Write a CSV file whose column ``note`` has the value ``late`` after Arrow's first block."""
    lines = [f"{number},{first}" for number in range(200)]
    path.write_text("\n".join(["id,note", *lines, f"200,{late}"]) + "\n")


@pytest.mark.parametrize("first", ["", "true", "2024-01-31"])
def test_a_csv_column_that_is_cast_to_text_may_have_texts_late(
    catalog, land, tmp_path, monkeypatch, first
):
    monkeypatch.setattr(text_checks, "BLOCK_BYTES", 256)
    late_values(tmp_path / "a.csv", first, "late")

    land("a.csv", create=True, casts={"note": "STRING"})

    assert types_of(catalog) == {"id": "BIGINT", "note": "STRING"}
    assert {"id": 200, "note": "late"} in rows_of(catalog)


@pytest.mark.parametrize(("late", "type"), [("7", "BIGINT"), ("7.5", "DOUBLE"), ("x", "STRING")])
def test_the_first_value_of_a_csv_column_may_be_late(
    catalog, land, tmp_path, monkeypatch, late, type
):
    monkeypatch.setattr(text_checks, "BLOCK_BYTES", 256)
    late_values(tmp_path / "a.csv", "", late)

    land("a.csv", create=True)

    assert types_of(catalog) == {"id": "BIGINT", "note": type}


def test_a_new_csv_column_does_not_change_how_a_known_column_is_read(
    catalog, land, tmp_path, monkeypatch
):
    monkeypatch.setattr(text_checks, "BLOCK_BYTES", 256)
    catalog.create_table("shop.orders", [("note", "STRING")])
    late_values(tmp_path / "a.csv", "", "late")

    land("a.csv", on_schema_change="add")

    assert types_of(catalog) == {"note": "STRING", "id": "BIGINT"}
    assert {"id": 200, "note": "late"} in rows_of(catalog)


def test_a_csv_column_gets_a_type_that_holds_the_late_values_of_all_files(
    catalog, land, tmp_path, monkeypatch
):
    monkeypatch.setattr(text_checks, "BLOCK_BYTES", 256)
    late_values(tmp_path / "a.csv", "", "12345678901234567")
    late_values(tmp_path / "b.csv", "", "1.5")

    land("*.csv", create=True)

    assert types_of(catalog) == {"id": "BIGINT", "note": "STRING"}


def test_a_value_that_does_not_fit_a_new_csv_column_leaves_the_table_as_it_was(
    catalog, land, tmp_path, monkeypatch
):
    monkeypatch.setattr(text_checks, "BLOCK_BYTES", 256)
    catalog.create_table("shop.orders", [("id", "BIGINT")])
    late_values(tmp_path / "a.csv", "2024-01-31", "late")

    with pytest.raises(lake.InvalidRequestError, match="late"):
        land("a.csv", on_schema_change="add")

    assert types_of(catalog) == {"id": "BIGINT"}
