"""The catalog: names lead to directories, and mistakes to sentences."""

from __future__ import annotations

import itertools

import pytest

import lakeformat as lake

COLUMNS = [("id", "BIGINT")]
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
    "name", ["", "shop", "shop.", ".orders", "shop.a/b", "shop.a.b", "shop.t$files", "shop. x"]
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
    with pytest.raises(lake.InvalidRequestError, match="'merge-engine' is not supported"):
        catalog.create_table("shop.orders", COLUMNS, options={"merge-engine": "first-row"})
    assert catalog.list_tables("shop") == []
