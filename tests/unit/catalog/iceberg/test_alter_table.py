"""Columns and properties of an Iceberg table change in one commit; old rows keep their values."""

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
        (lake.update_column_type("id", "STRING"), "'id' is int and cannot become string: the only"),
        (lake.update_column_type("price", "DECIMAL(12, 3)"), "cannot become decimal.12, 3."),
        (lake.update_column_type("price", "DECIMAL(5, 2)"), "cannot become decimal.5, 2."),
        (lake.update_column_type("at", "STRING"), "'at' is a struct and cannot become string"),
        (lake.update_column_type("di", "BIGINT"), "no column 'di'; choose one of id, price"),
        (lake.drop_column("at.tag"), "'at.tag'; choose one of at.*tags.*; did you mean 'at.tags'"),
        (lake.add_column("ID", "INT"), "'ID' cannot be added, because there is a column 'id'"),
        (lake.add_column("_pos", "INT"), "a column cannot have the name '_pos', because Iceberg"),
        (lake.rename_column("id", "_row_id"), "a column cannot have the name '_row_id', because"),
        (lake.add_column("id.x", "INT"), "'id.x' cannot be added, because 'id' is not a struct"),
        (lake.add_column("n", "INT NOT NULL"), "cannot be added with a default or as NOT NULL"),
        (lake.add_column("n", "INT", after="di"), "'n' cannot be placed after 'di': the other col"),
        (lake.drop_column("id"), "'id' cannot be dropped, because it is an identifier field"),
        (lake.drop_column("at.tags.element.n"), "because it is the only field of its struct"),
        (lake.drop_column("at.tags.element"), "'at.tags' is not a struct: only fields of a struct"),
        (
            lake.drop_column("share.x"),
            "there is no column 'share.x': only a struct has named fields",
        ),
        (
            lake.rename_column("share", "Price"),
            "column cannot be renamed to 'Price', because there is a",
        ),
        (lake.update_column_nullability("id", nullable=True), "'id' identifies rows, so it is nev"),
        (lake.update_column_nullability("at", nullable=False), "'at' of .* cannot become NOT NULL"),
        (lake.set_option("format-version", "3"), "'format-version' of .* cannot be changed"),
        (lake.set_option("s3.secret", "x"), "'s3.secret' names a credential"),
        (
            lake.set_option("write.data.path", "s3://AK:private@bucket/x"),
            r"'write\.data\.path' is 's3://…@bucket/x', an address with a credential",
        ),
    ],
)
def test_a_refused_change_is_named_and_the_others_are_not_made(catalog, change, error):
    table = made(catalog)
    before = table._handle.load().metadata_file
    with pytest.raises(lake.LakeError, match=error):
        catalog.alter_table("shop.orders", lake.add_column("note", "STRING"), change)
    assert table._handle.load().metadata_file == before


@pytest.mark.parametrize("version", [1, 3])
def test_columns_are_dropped_renamed_moved_and_described(catalog, version):
    old = made(
        catalog,
        format_version=version,
        options={
            "write.metadata.metrics.column.share": "full",
            "write.metadata.metrics.column.at.city": "counts",
            "commit.retry.num-retries": "7",
        },
    )
    table = catalog.alter_table(
        "shop.orders",
        lake.drop_column("price"),
        lake.rename_column("share", "part"),
        lake.rename_column("at", "place"),
        lake.rename_column("place.tags.element.n", "number"),
        lake.drop_column("place.city"),
        lake.add_column("price", "STRING", after="id"),
        lake.update_column_position("place", first=True),
        lake.update_column_comment("part", "of all"),
        lake.update_comment("orders"),
        lake.set_option("history.expire.min-snapshots-to-keep", "3"),
        lake.remove_option("commit.retry.num-retries"),
    )
    [row] = table.scan().to_arrow().to_pylist()
    assert row == {"place": {"tags": [{"number": 1}]}, "id": 1, "price": None, "part": 0.5}
    assert [*row] == ["place", "id", "price", "part"]
    table.write(
        pa.table(
            {"id": [2], "price": ["much"]}, pa.schema([("id", pa.int32()), ("price", pa.string())])
        )
    )
    assert old.scan(["id"], where="price = 'much'").to_arrow()["id"].to_pylist() == [2]
    assert table.schema.named("part").doc == "of all"
    assert table.properties == {
        "write.metadata.metrics.column.part": "full",
        "comment": "orders",
        "history.expire.min-snapshots-to-keep": "3",
    }
    assert table.schema.named("price").id == table._handle.load().metadata.last_column_id


def test_a_column_that_may_be_null_from_now_on_takes_nulls(catalog):
    columns = [("id", "INT"), ("v", "STRING NOT NULL"), ("l", "ARRAY<INT NOT NULL>")]
    catalog.create_table("shop.t", columns).write(pa.table({"id": [1], "v": ["a"], "l": [[1]]}))
    table = catalog.alter_table(
        "shop.t",
        lake.update_column_nullability("v", nullable=True),
        lake.update_column_nullability("l.element", nullable=True),
    )
    table.write(pa.table({"id": [2], "v": pa.nulls(1, pa.string()), "l": [[None]]}))
    assert table.scan().to_arrow().sort_by("id").to_pydict() == {
        "id": [1, 2],
        "v": ["a", None],
        "l": [[1], [None]],
    }


@pytest.mark.parametrize("use", [{"partition_by": ["day(at)"]}, {"sort_by": ["at"]}])
def test_a_column_that_partitions_or_orders_need_is_not_dropped(catalog, use):
    columns = [("id", "INT"), ("at", "TIMESTAMP(6)")]
    catalog.create_table("shop.t", columns, **use)
    with pytest.raises(
        lake.InvalidRequestError, match="'at' cannot be dropped, because the current"
    ):
        catalog.alter_table("shop.t", lake.drop_column("at"))
    renamed = catalog.alter_table("shop.t", lake.rename_column("at", "time"))
    assert renamed.schema.column_names == ["id", "time"]


def test_columns_that_are_renamed_back_have_their_old_schema(catalog):
    made(catalog)
    catalog.alter_table("shop.orders", lake.rename_column("share", "part"))
    table = catalog.alter_table("shop.orders", lake.rename_column("part", "share"))
    metadata = table._handle.load().metadata
    assert (metadata.current_schema_id, len(metadata.schemas)) == (0, 2)


def test_a_column_that_makes_partitions_keeps_its_type(catalog):
    made(catalog, partition_by=["bucket(4, id)"])
    with pytest.raises(lake.InvalidRequestError, match="partition spec uses 'id', so"):
        catalog.alter_table("shop.orders", lake.update_column_type("id", "BIGINT"))


def test_a_name_with_a_dot_is_written_as_a_tuple(catalog):
    made(catalog)
    catalog.alter_table("shop.orders", lake.add_column(("x.y",), "INT"))
    for change in (lake.drop_column("x.y"), lake.rename_column("x.y", "z")):
        with pytest.raises(lake.InvalidRequestError, match=r"as a tuple, \('x.y',\)"):
            catalog.alter_table("shop.orders", change)
    table = catalog.alter_table("shop.orders", lake.drop_column(("x.y",)))
    assert table.schema.named("x.y") is None


def test_a_table_whose_names_are_mapped_is_refused(catalog):
    made(catalog, options={"schema.name-mapping.default": "[]"})
    with pytest.raises(lake.UnsupportedError, match="maps column names to field ids"):
        catalog.alter_table("shop.orders", lake.add_column("note", "STRING"))


def test_a_rest_service_gets_the_new_schema(tmp_path):
    with rest_server() as server:
        server.warehouse = f"file://{tmp_path}"
        catalog = lake.open_catalog(
            str(tmp_path), format="iceberg", metastore="rest", uri=server.uri
        )
        catalog.create_database("shop")
        made(catalog)
        changes = (
            lake.add_column("note", "STRING"),
            lake.update_column_type("id", "BIGINT"),
            lake.drop_column("price"),
            lake.rename_column("share", "part"),
            lake.set_option("comment", "orders"),
        )
        table = catalog.alter_table("shop.orders", *changes)
        assert [str(table.schema.named(name).type) for name in ("id", "note")] == ["long", "string"]
        [row] = table.scan(["id", "part", "note"]).to_arrow().to_pylist()
        assert row == {"id": 1, "part": 0.5, "note": None}
        assert table.properties["comment"] == "orders"
