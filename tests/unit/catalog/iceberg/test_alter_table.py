"""Columns of an Iceberg table are added and widened in one commit; old rows keep their values."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lakeformat as lake
from tests.iceberg_rest_server import rest_server

COLUMNS = [
    ("id", "INT NOT NULL"),
    ("price", "DECIMAL(6, 2)"),
    ("share", "FLOAT"),
    ("at", "ROW<city STRING, tags ARRAY<ROW<n INT>>>"),
]


@pytest.fixture
def catalog(tmp_path):
    found = lake.open_catalog(str(tmp_path), format="iceberg")
    found.create_database("shop")
    return found


def made(catalog, **more):
    table = catalog.create_table("shop.orders", COLUMNS, primary_key=["id"], **more)
    row = {"id": 1, "price": 1, "share": 0.5, "at": {"city": "Oslo", "tags": [{"n": 1}]}}
    table.write(pa.Table.from_pylist([row], schema=table.schema.arrow_schema()))
    return table


@pytest.mark.parametrize("version", [1, 2, 3])
def test_old_rows_are_read_with_new_columns_and_wider_types(catalog, version):
    old = made(catalog, format_version=version)
    table = catalog.alter_table(
        "shop.orders",
        lake.add_column("note", "STRING", comment="free text"),
        lake.add_column(("at", "zip"), "INT"),
        lake.add_column(("at", "tags", "element", "m"), "BIGINT"),
        lake.add_column("more", pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))])),
        lake.update_column_type("id", "BIGINT"),
        lake.update_column_type("price", "DECIMAL(12, 2)"),
        lake.update_column_type("share", "DOUBLE"),
        lake.update_column_type(("at", "tags", "element", "n"), "BIGINT"),
    )
    [row] = table.scan().to_arrow().to_pylist()
    at = {"city": "Oslo", "tags": [{"n": 1, "m": None}], "zip": None}
    new = {"note": None, "more": None}
    assert row == {"id": 1, "price": 1, "share": 0.5, "at": at, **new}
    table.write(table.scan().to_arrow())
    assert old.scan(["id"], where="id = 1").count() == 2
    metadata = table._handle.load().metadata
    assert [each.schema_id for each in metadata.schemas] == [0, 1]
    ids = sorted(each for each in range(1, 99) if metadata.schema.field(each))
    assert (ids[-1], len(ids)) == (metadata.last_column_id, metadata.last_column_id)
    assert metadata.schema.named("note").doc == "free text"
    assert metadata.schema.identifier_field_ids == (1,)


def test_a_change_that_changes_nothing_publishes_nothing(catalog):
    table = made(catalog)
    before = table._handle.load().metadata_file
    again = catalog.alter_table("shop.orders", lake.update_column_type("id", "INT"))
    assert again._handle.load().metadata_file == before


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lake.update_column_type("id", "STRING"), "'id' is int and cannot become string: only int"),
        (lake.update_column_type("price", "DECIMAL(12, 3)"), "cannot become decimal.12, 3."),
        (lake.update_column_type("price", "DECIMAL(5, 2)"), "cannot become decimal.5, 2."),
        (lake.update_column_type("at", "STRING"), "'at' is a struct and cannot become string"),
        (lake.update_column_type("di", "BIGINT"), "no column 'di'; the names there are id, price"),
        (lake.add_column("ID", "INT"), "'ID' cannot be added, because there is a column 'id'"),
        (lake.add_column("id.x", "INT"), "'id.x' cannot be added, because 'id' is not a struct"),
        (lake.add_column("n", "INT NOT NULL"), "only be added as the last one"),
        (lake.add_column("n", "INT", first=True), "only be added as the last one"),
        (lake.drop_column("id"), "only adds columns and widens types.*for DropColumn use ALTER"),
        (lake.set_option("a", "b"), "for SetOption use ALTER TABLE in Spark"),
    ],
)
def test_a_refused_change_is_named_and_the_others_are_not_made(catalog, change, error):
    table = made(catalog)
    before = table._handle.load().metadata_file
    with pytest.raises(lake.LakeError, match=error):
        catalog.alter_table("shop.orders", lake.add_column("note", "STRING"), change)
    assert table._handle.load().metadata_file == before


def test_a_column_that_makes_partitions_keeps_its_type(catalog):
    made(catalog, partition_by=["bucket(4, id)"])
    with pytest.raises(lake.InvalidRequestError, match="'id' makes partitions"):
        catalog.alter_table("shop.orders", lake.update_column_type("id", "BIGINT"))


def test_a_table_whose_names_are_mapped_is_refused(catalog):
    made(catalog, options={"schema.name-mapping.default": "[]"})
    with pytest.raises(lake.UnsupportedError, match="names them, too"):
        catalog.alter_table("shop.orders", lake.add_column("note", "STRING"))


def test_a_rest_service_gets_the_new_schema(tmp_path):
    with rest_server() as server:
        server.warehouse = f"file://{tmp_path}"
        catalog = lake.open_catalog(
            str(tmp_path), format="iceberg", metastore="rest", uri=server.uri
        )
        catalog.create_database("shop")
        made(catalog)
        changes = lake.add_column("note", "STRING"), lake.update_column_type("id", "BIGINT")
        table = catalog.alter_table("shop.orders", *changes)
        assert [str(table.schema.named(name).type) for name in ("id", "note")] == ["long", "string"]
        assert table.scan(["id", "note"]).to_arrow().to_pylist() == [{"id": 1, "note": None}]
