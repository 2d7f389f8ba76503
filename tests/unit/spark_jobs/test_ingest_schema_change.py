"""Files and SQL tables whose columns differ from the table's: ``on_schema_change`` decides."""

from __future__ import annotations

import json
import sqlite3
from decimal import Decimal
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakeformat as lake
from lakeformat.types.type_text import type_to_json
from spark_jobs import ingest
from tests.sampling import SEED, count

COLUMNS = [("id", "INT"), ("note", "STRING")]


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

    def run(name: str, on_schema_change: str = "fail", **more) -> dict:
        request = {"warehouse": tmp_path / "warehouse", "table": "shop.orders"}
        source = {"source": tmp_path / name, "on_schema_change": on_schema_change}
        return ingest.run({**request, **source, **more})

    return run


@pytest.fixture(params=["csv", "json", "parquet"])
def file_of(request, tmp_path):
    """Write rows into a file of one format, and return its name."""

    def write(rows: list[dict]) -> str:
        path = tmp_path / f"rows.{request.param}"
        names = list(dict.fromkeys(name for row in rows for name in row))
        if request.param == "parquet":
            pq.write_table(
                pa.table({name: [row.get(name) for row in rows] for name in names}), path
            )
        elif request.param == "json":
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        else:
            lines = [
                ",".join("" if row.get(n) is None else str(row[n]) for n in names) for row in rows
            ]
            path.write_text("\n".join((",".join(names), *lines, "")))
        return path.name

    return write


def types_of(catalog):
    fields = catalog.table("shop.orders").schema.fields
    return {field.name: type_to_json(field.type) for field in fields}


def rows_of(catalog):
    return catalog.table("shop.orders").scan().to_arrow().to_pylist()


def test_a_new_column_is_refused_and_the_message_names_the_argument(orders, land, file_of):
    name = file_of([{"id": 1, "note": "a", "price": 1.5}])

    with pytest.raises(lake.InvalidRequestError, match="no column 'price'") as refused:
        land(name)

    assert "With on_schema_change='add' the job adds new columns" in str(refused.value)
    assert orders.latest_snapshot() is None


def test_a_new_column_is_added_with_its_type(orders, catalog, land, file_of):
    land(file_of([{"id": 1, "note": "a"}]))

    land(file_of([{"id": 2, "note": "b", "price": 1.5, "who": "x"}]), "add")

    assert types_of(catalog) == {"id": "INT", "note": "STRING", "price": "DOUBLE", "who": "STRING"}
    assert rows_of(catalog) == [
        {"id": 1, "note": "a", "price": None, "who": None},
        {"id": 2, "note": "b", "price": 1.5, "who": "x"},
    ]


def test_a_larger_number_is_refused_and_the_message_names_the_argument(orders, land, tmp_path):
    pq.write_table(pa.table({"id": [3_000_000_000]}), tmp_path / "large.parquet")

    for setting in ("fail", "add"):
        with pytest.raises(lake.InvalidRequestError, match="With on_schema_change='widen' the job"):
            land("large.parquet", setting)


def test_a_type_is_widened_for_the_values(orders, catalog, land, file_of):
    land(file_of([{"id": 1, "note": "a"}]))

    land(file_of([{"id": 3_000_000_000, "note": "b", "new": True}]), "widen")

    assert types_of(catalog) == {"id": "BIGINT", "note": "STRING", "new": "BOOLEAN"}
    assert [row["id"] for row in rows_of(catalog)] == [1, 3_000_000_000]


@pytest.mark.parametrize("ending", ["csv", "json"])
def test_values_of_a_text_file_that_fit_widen_nothing(catalog, land, tmp_path, ending):
    columns = [("id", "SMALLINT"), ("price", "DECIMAL(4, 2)"), ("code", "VARCHAR(3)")]
    more = [("kind", "CHAR(2)"), ("part", "FLOAT"), ("day", "DATE")]
    catalog.create_table("shop.orders", [*columns, *more])
    row = {"id": 7, "price": 99.5, "code": "abc", "kind": "ab", "part": 0.5, "day": "2024-01-31"}
    text = ",".join(row) + "\n" + ",".join(map(str, row.values()))
    (tmp_path / f"a.{ending}").write_text(text if ending == "csv" else json.dumps(row))

    before = types_of(catalog)
    land(f"a.{ending}", "widen")

    assert types_of(catalog) == before
    assert rows_of(catalog)[0]["price"] == Decimal("99.50")


def test_larger_values_of_a_text_file_get_just_as_much_room_as_they_need(catalog, land, tmp_path):
    columns = [("id", "TINYINT"), ("price", "DECIMAL(4, 2)"), ("code", "CHAR(3)")]
    catalog.create_table("shop.orders", columns)
    (tmp_path / "a.csv").write_text("id,price,code\n-129,1.5,a\n1,-12345.67,abcde\n")

    land("a.csv", "widen")

    assert types_of(catalog) == {"id": "SMALLINT", "price": "DECIMAL(7, 2)", "code": "VARCHAR(5)"}
    assert [row["price"] for row in rows_of(catalog)] == [Decimal("1.50"), Decimal("-12345.67")]


def test_a_sequence_column_gets_a_wider_type(catalog, land, tmp_path):
    columns = [("id", "BIGINT"), ("version", "INT"), ("note", "STRING")]
    options = {"bucket": "1", "sequence.field": "version"}
    catalog.create_table("shop.orders", columns, primary_key=["id"], options=options)
    for version, note in ((10, "a"), (3_000_000_000, "b"), (9, "c")):
        rows = pa.table({"id": [1], "version": [version], "note": [note]})
        pq.write_table(rows, tmp_path / f"{note}.parquet")
        land(f"{note}.parquet", "widen")
    assert types_of(catalog)["version"] == "BIGINT"
    assert rows_of(catalog) == [{"id": 1, "version": 3_000_000_000, "note": "b"}]


@pytest.mark.parametrize("form", ["paimon", "iceberg"])
def test_a_name_with_a_dot_is_one_column(tmp_path, land, form):
    catalog = lake.open_catalog(tmp_path / "warehouse", format=form)
    catalog.create_database("shop")
    catalog.create_table("shop.orders", [("id", "INT")])
    pq.write_table(
        pa.table({"id": [1], "a.b": [1]}).cast(pa.schema([("id", "i4"), ("a.b", "i4")])),
        tmp_path / "1.parquet",
    )
    pq.write_table(pa.table({"id": [2], "a.b": [1 << 40]}), tmp_path / "2.parquet")
    land("1.parquet", "add", catalog_options={"format": form})
    land("2.parquet", "widen", catalog_options={"format": form})
    found = catalog.table("shop.orders").scan().to_arrow()
    assert sorted(found["a.b"].to_pylist()) == [1, 1 << 40]


def test_what_no_type_holds_is_refused_as_without_the_argument(orders, catalog, land, tmp_path):
    (tmp_path / "a.csv").write_text("id,note\nmany,a\n")

    with pytest.raises(lake.InvalidRequestError, match="row 1, column 'id': 'many' is not a value"):
        land("a.csv", "widen")
    assert types_of(catalog) == {"id": "INT", "note": "STRING"}


def test_a_new_column_without_a_value_needs_a_cast(orders, catalog, land, tmp_path):
    (tmp_path / "a.csv").write_text("id,later\n1,\n")

    with pytest.raises(lake.InvalidRequestError, match="no value shows the type of column 'later'"):
        land("a.csv", "add")
    land("a.csv", "add", casts={"later": "DATE"})
    assert types_of(catalog) == {"id": "INT", "note": "STRING", "later": "DATE"}


def test_fields_inside_a_column_of_parquet_are_added_and_widened(catalog, land, tmp_path):
    catalog.create_table("shop.orders", [("place", "ROW<hall INT>")])
    place = pa.array([{"hall": 1 << 40, "shelf": "x"}])
    pq.write_table(pa.table({"place": place}), tmp_path / "a.parquet")

    land("a.parquet", "widen")

    assert rows_of(catalog) == [{"place": {"hall": 1 << 40, "shelf": "x"}}]


def test_a_column_of_a_sql_table_is_added_and_widened(orders, catalog, tmp_path, land):
    with sqlite3.connect(tmp_path / "shop.sqlite") as database:
        database.execute("CREATE TABLE orders (id BIGINT, note TEXT, price NUMERIC(6, 2))")
        database.execute("INSERT INTO orders VALUES (3000000000, 'a', 1.5)")
    database.close()
    sql = {"jdbc_url": f"sqlite:///{tmp_path}/shop.sqlite", "jdbc_table": "orders", "source": None}

    with pytest.raises(
        lake.InvalidRequestError, match=r"price\. Add them to the table with on_schema"
    ):
        land("", **sql)
    land("", "widen", **sql)

    assert types_of(catalog) == {"id": "BIGINT", "note": "STRING", "price": "DECIMAL(6, 2)"}
    assert rows_of(catalog) == [{"id": 3_000_000_000, "note": "a", "price": Decimal("1.50")}]


def test_two_runs_that_add_the_same_column_both_land(orders, catalog, land, tmp_path, monkeypatch):
    (tmp_path / "a.csv").write_text("id,price\n1,1.5\n")
    alter = type(catalog).alter_table

    def other_run_first(self, *args):
        monkeypatch.setattr(type(catalog), "alter_table", alter)
        land("a.csv", "add")
        return alter(self, *args)

    monkeypatch.setattr(type(catalog), "alter_table", other_run_first)
    land("a.csv", "add")

    assert [row["price"] for row in rows_of(catalog)] == [1.5, 1.5]


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"format": "canal-json"}, "'on_schema_change' cannot be used with format 'canal-json'"),
        (
            {"source": None, "source_table": "shop.other", "consumer": "c"},
            "'on_schema_change' needs key 'source' or 'jdbc_url'",
        ),
        ({"on_schema_change": "wide"}, "must be 'fail' or 'add' or 'widen'"),
    ],
)
def test_where_it_has_no_meaning_it_is_refused(land, more, reason):
    with pytest.raises(lake.InvalidRequestError, match=reason):
        land("a.csv", **{"on_schema_change": "add", **more})


BITS = {"TINYINT": 7, "SMALLINT": 15, "INT": 31, "BIGINT": 63}


@pytest.mark.parametrize("number", range(count(4, 60, "INGEST_SCHEMA_CHANGES")))
def test_any_files_give_the_columns_and_rows_of_the_model(catalog, land, file_of, number):
    """The model: a dict of bits for each column, and the rows as dicts."""
    random = Random(f"{SEED}-{number}")
    catalog.create_table("shop.orders", [("a", "TINYINT")])
    bits, expected = {"a": 7}, []
    for step in range(5):
        setting = random.choice(["fail", "add", "widen"])
        names = ["a", *random.sample(["b", "c"], random.randint(0, 2))]
        rows = [{name: (1 << random.choice([3, 12, 40])) - 1 for name in names} for _ in range(2)]
        new = [name for name in names if name not in bits]
        large = {n: max(row[n].bit_length() for row in rows) for n in names if n in bits}
        too_large = [n for n, needed in large.items() if needed > bits[n]]
        fits = (not new or setting != "fail") and (not too_large or setting == "widen")
        told = f"SEED={SEED}, {number=}, {step=}, {setting=}, {rows=}"
        name = file_of(rows)
        if fits:
            land(name, setting)
            expected += rows
        else:
            with pytest.raises(lake.InvalidRequestError):
                land(name, setting)
        if setting != "fail":
            bits |= dict.fromkeys(new, 63)  # an inferred whole number is a BIGINT
        found = {name: BITS[text] for name, text in types_of(catalog).items()}
        if setting == "widen":
            assert all(found[name] >= max(bits[name], needed) for name, needed in large.items())
            bits = found
        assert found == bits, told
        assert sorted(map(values_of, rows_of(catalog))) == sorted(map(values_of, expected)), told


def values_of(row):
    return sorted((name, value) for name, value in row.items() if value is not None)
