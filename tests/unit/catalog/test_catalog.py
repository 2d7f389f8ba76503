"""The catalog: names lead to directories, and mistakes to sentences."""

from __future__ import annotations

import itertools
from datetime import datetime, timedelta

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.tag import Tag, create_tag
from lakeformat.storage import open_storage

COLUMNS = [("id", "BIGINT")]
NAMED = [("id", "BIGINT"), ("name", "STRING")]
_names = itertools.count()


@pytest.fixture(params=["path", "file", "memory"])
def catalog(request, tmp_path) -> lake.Catalog:
    warehouses = {
        "path": str(tmp_path),
        "file": tmp_path.as_uri(),
        "memory": f"memory://catalog-{next(_names)}/wh",
    }
    return lake.open_catalog(warehouses[request.param])


def test_databases_and_tables_are_listed_by_name(catalog):
    assert catalog.list_databases() == []
    for name in ("shop", "bank"):
        catalog.create_database(name)
    catalog.create_table("shop.orders", COLUMNS)
    catalog.create_table("shop.items", COLUMNS)
    assert sorted(catalog.list_databases()) == ["bank", "shop"]
    assert sorted(catalog.list_tables("shop")) == ["items", "orders"]
    assert catalog.list_tables("bank") == []


def test_a_table_is_found_again_by_name_and_by_location(catalog):
    catalog.create_database("shop")
    made = catalog.create_table("shop.orders", COLUMNS, comment="all of them")
    for found in (catalog.table("shop.orders"), lake.open_table(made.location)):
        assert found.schema == made.schema
        assert found.schema.comment == "all of them"


@pytest.mark.parametrize(
    "name", ["a\0", "a\nb", "a\x1b[1m", "a\x7f", "\ud800", "a\u2028b", None, 5]
)
def test_a_name_that_makes_no_directory_is_refused(catalog, name):
    with pytest.raises(lake.InvalidRequestError, match=r"name .* is not allowed"):
        catalog.create_database(name)
    catalog.create_database("shop", exist_ok=True)
    with pytest.raises(
        lake.InvalidRequestError,
        match=r"is not allowed|is not a table name: write 'database.table'",
    ):
        catalog.create_table(f"shop.{name}" if isinstance(name, str) else name, COLUMNS)


@pytest.mark.parametrize("name", [None, 5, b"shop.orders"])
def test_what_is_no_text_names_no_table_and_no_warehouse(catalog, name):
    with pytest.raises(
        lake.InvalidRequestError, match=r"is not a table name: write 'database.table'"
    ):
        catalog.table(name)
    with pytest.raises(lake.InvalidRequestError, match="warehouse must be a path or a URI, got"):
        lake.open_catalog(name)


def test_a_taken_name_is_an_error_unless_that_is_fine(catalog):
    catalog.create_database("shop")
    with pytest.raises(lake.AlreadyExistsError, match="exist_ok=True"):
        catalog.create_database("shop")
    catalog.create_database("shop", exist_ok=True)

    first = catalog.create_table("shop.orders", COLUMNS)
    with pytest.raises(lake.AlreadyExistsError, match=r"'shop.orders' exists"):
        catalog.create_table("shop.orders", COLUMNS)
    again = catalog.create_table("shop.orders", [("other", "INT")], exist_ok=True)
    assert again.schema == first.schema


@pytest.mark.parametrize(
    "name",
    [
        "",
        "shop",
        "shop.",
        ".orders",
        "shop.a/b",
        "shop.a.b",
        "shop.t$files",
        "shop.t$branch_dev",
        "shop. x",
    ],
)
def test_names_that_cannot_be_directories_are_refused(catalog, name):
    catalog.create_database("shop", exist_ok=True)
    with pytest.raises(lake.InvalidRequestError):
        catalog.create_table(name, COLUMNS)


def test_what_does_not_exist_says_how_to_make_it(catalog):
    with pytest.raises(lake.NotFoundError, match=r"create_database\('shop'\)"):
        catalog.create_table("shop.orders", COLUMNS)
    catalog.create_database("shop")
    with pytest.raises(lake.NotFoundError, match=r"'shop.orders' does not exist in"):
        catalog.table("shop.orders")
    with pytest.raises(lake.NotFoundError, match="is not a table: it has no schema file"):
        lake.open_table(catalog.location)


def test_a_wrong_option_makes_no_table(catalog):
    catalog.create_database("shop")
    with pytest.raises(lake.InvalidRequestError, match="'merge-engine'"):
        catalog.create_table("shop.orders", COLUMNS, options={"merge-engine": "first-row"})
    assert catalog.list_tables("shop") == []


def test_a_table_is_altered_and_read_by_its_new_schema(catalog):
    catalog.create_database("shop")
    orders = catalog.create_table("shop.orders", [("id", "INT"), ("old", "STRING")])
    orders.write(pa.table({"id": pa.array([1], pa.int32()), "old": ["a"]}))
    altered = catalog.alter_table(
        "shop.orders",
        lake.rename_column("old", "note"),
        lake.update_column_type("id", "BIGINT"),
        lake.add_column("price", "DOUBLE", after="id"),
        lake.set_option("target-file-size", "1 mb"),
        lake.update_comment("all of them"),
    )
    assert altered.schema == catalog.table("shop.orders").schema
    altered.write(pa.table({"id": [2], "price": [0.5], "note": ["b"]}))
    assert altered.scan().to_arrow().to_pylist() == [
        {"id": 1, "price": None, "note": "a"},
        {"id": 2, "price": 0.5, "note": "b"},
    ]


def test_a_time_too_far_for_the_new_type_is_named_and_the_type_can_go_back(catalog):
    catalog.create_database("shop")
    columns = [("id", "BIGINT"), ("at", "TIMESTAMP(6)")]
    rows = pa.table(
        {"id": [1, 2], "at": pa.array([datetime(2024, 1, 1), datetime(1, 1, 1)])},
    )
    catalog.create_table("shop.orders", columns).write(rows)
    finer = catalog.alter_table("shop.orders", lake.update_column_type("at", "TIMESTAMP(9)"))
    named = r"column 'at' of .*bucket-0/data-.*: 0001-01-01 00:00:00.000000 of TIMESTAMP\(6\)"
    with pytest.raises(lake.InvalidRequestError, match=named):
        finer.scan().to_arrow()
    assert finer.scan(columns=["id"]).to_arrow() == rows.select(["id"])
    back = catalog.alter_table("shop.orders", lake.update_column_type("at", "TIMESTAMP(6)"))
    assert back.scan().to_arrow() == rows


def test_a_text_that_is_no_number_is_corrected_as_the_message_advises(catalog):
    catalog.create_database("shop")
    columns = [("id", "BIGINT"), ("size", "STRING")]
    orders = catalog.create_table("shop.orders", columns, primary_key=["id"])
    orders.write(pa.table({"id": [1, 2], "size": ["5", "big"]}))
    numbers = catalog.alter_table("shop.orders", lake.update_column_type("size", "INT"))
    advice = "back to STRING and correct the value; if the table has a primary key, also compact"
    with pytest.raises(lake.InvalidRequestError, match=advice):
        numbers.scan().to_arrow()
    texts = catalog.alter_table("shop.orders", lake.update_column_type("size", "STRING"))
    texts.update("id = 2", {"size": "7"})
    texts.compact()
    numbers = catalog.alter_table("shop.orders", lake.update_column_type("size", "INT"))
    assert sorted(numbers.scan().to_arrow()["size"].to_pylist()) == [5, 7]


def test_an_alteration_that_is_refused_changes_nothing(catalog):
    catalog.create_database("shop")
    before = catalog.create_table("shop.orders", COLUMNS).schema
    with pytest.raises(lake.InvalidRequestError, match="no column 'nix'"):
        catalog.alter_table("shop.orders", lake.add_column("a", "INT"), lake.drop_column("nix"))
    with pytest.raises(lake.InvalidRequestError, match=r"no change of .* is given"):
        catalog.alter_table("shop.orders")
    with pytest.raises(lake.NotFoundError, match="does not exist"):
        catalog.alter_table("shop.nix", lake.drop_column("id"))
    assert catalog.table("shop.orders").schema == before


def test_a_tag_is_scanned_by_its_name(catalog):
    catalog.create_database("shop")
    orders = catalog.create_table("shop.orders", COLUMNS)
    orders.write(pa.table({"id": [1]}))
    storage, root = open_storage(orders.location)
    create_tag(storage, TableLayout(root), Tag("v1", orders.latest_snapshot()))
    orders.write(pa.table({"id": [2]}))
    assert orders.scan(tag="v1").to_arrow()["id"].to_pylist() == [1]
    with pytest.raises(lake.NotFoundError, match="no tag 'v2'; its tags are 'v1'"):
        orders.scan(tag="v2")
    with pytest.raises(lake.InvalidRequestError, match="pass only one of"):
        orders.scan(tag="v1", snapshot=1)


@pytest.mark.parametrize("change", [5, None, "drop", [lake.drop_column("id")]])
def test_what_is_no_change_is_refused(catalog, change):
    catalog.create_database("shop")
    catalog.create_table("shop.orders", COLUMNS)
    with pytest.raises(lake.InvalidRequestError, match="is not a change of a schema"):
        catalog.alter_table("shop.orders", change)


def test_a_row_without_fields_makes_no_table(catalog):
    catalog.create_database("shop")
    empty = pa.schema([("r", pa.list_(pa.struct([])))])
    with pytest.raises(lake.InvalidRequestError, match="'r' has a ROW without fields"):
        catalog.create_table("shop.orders", empty)


def test_the_location_of_a_table_is_known_before_it_and_its_database_exist(catalog):
    before = catalog.location_of("shop.orders")
    catalog.create_database("shop")
    assert catalog.location_of("shop.orders") == before
    assert catalog.create_table("shop.orders", COLUMNS).location == before


@pytest.mark.parametrize(
    ("act", "meant"),
    [
        (lambda catalog: catalog.table("shop.ordres"), "did you mean 'shop.orders'?"),
        (lambda catalog: catalog.drop_table("shop.ordres"), "did you mean 'shop.orders'?"),
        (lambda catalog: catalog.table("shop.orders").scan(["nmae"]), "did you mean 'name'?"),
        (
            lambda catalog: catalog.table("shop.orders").scan(where="nmae = 'a'").to_arrow(),
            "did you mean 'name'?",
        ),
        (
            lambda catalog: catalog.table("shop.orders").write(pa.table({"nmae": ["a"]})),
            "did you mean 'name'?",
        ),
        (
            lambda catalog: catalog.create_table("shop.b", NAMED, primary_key=["nmae"]),
            "did you mean 'name'?",
        ),
        (
            lambda catalog: catalog.create_table("shop.b", NAMED, options={"buckt": 1}),
            "did you mean 'bucket'?",
        ),
    ],
)
def test_a_name_with_a_typo_is_answered_with_the_nearest(tmp_path, act, meant):
    catalog = lake.open_catalog(tmp_path)
    catalog.create_database("shop")
    catalog.create_table("shop.orders", NAMED)

    with pytest.raises(lake.LakeError) as refused:
        act(catalog)

    assert meant in str(refused.value)


def test_options_are_taken_as_numbers_booleans_and_durations(tmp_path):
    catalog = lake.open_catalog(tmp_path)
    catalog.create_database("shop")
    options = {
        "bucket": 2,
        "deletion-vectors.enabled": True,
        "snapshot.time-retained": timedelta(days=7),
    }

    table = catalog.create_table("shop.orders", NAMED, primary_key=["id"], options=options)
    table = catalog.alter_table("shop.orders", lake.set_option("snapshot.num-retained.max", 9))

    assert table.schema.options == {
        "bucket": "2",
        "deletion-vectors.enabled": "true",
        "snapshot.time-retained": "7 d",
        "snapshot.num-retained.max": "9",
    }


def test_a_table_with_a_damaged_schema_is_not_renamed(catalog):
    catalog.create_database("shop")
    handle = catalog.create_table("shop.orders", COLUMNS)._handle
    handle.storage.overwrite(handle.layout.schema(0), b"{")
    with pytest.raises(lake.CorruptTableError, match="schema-0"):
        catalog.rename_table("shop.orders", "shop.old")
    assert catalog.list_tables("shop") == ["orders"]
