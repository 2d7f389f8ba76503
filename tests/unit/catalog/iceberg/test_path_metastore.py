"""The path metastore: directories of a warehouse, beside those of Paimon's databases."""

from __future__ import annotations

import pytest

import lakeformat as lake
from lakeformat.catalog.iceberg import IcebergCatalog
from lakeformat.testing import CrashableStorage
from lakeformat.testing.faults import Fault, FaultKind
from tests.crash.mixed_catalogs import COLUMNS, path_catalog
from tests.unit.catalog.iceberg.small_table import ids_of, make_small_table


@pytest.fixture
def catalog(tmp_path) -> IcebergCatalog:
    make_small_table(tmp_path / "shop/orders")
    return lake.open_catalog(str(tmp_path), format="iceberg")


def test_directories_are_databases_and_tables(catalog, tmp_path):
    (tmp_path / "shop/plain").mkdir()
    assert catalog.list_databases() == ["shop"]
    assert catalog.list_tables("shop") == ["orders"]
    assert ids_of(catalog.table("shop.orders")) == [1, 2]
    assert catalog.database_properties("shop") == {"location": f"file://{tmp_path}/shop"}


def test_one_warehouse_has_databases_of_both_formats(catalog, tmp_path):
    paimon = lake.open_catalog(str(tmp_path))
    paimon.create_database("shop")
    paimon.create_table("shop.orders", [("id", "BIGINT")])
    assert catalog.list_databases() == ["shop"]
    assert paimon.list_databases() == ["shop"]
    assert catalog.table("shop.orders").format == "iceberg"
    assert paimon.table("shop.orders").format == "paimon"
    with pytest.raises(lake.InvalidRequestError, match="format='paimon'"):
        catalog.list_tables("shop.db")


def test_the_format_can_be_an_option(tmp_path):
    make_small_table(tmp_path / "shop/orders")
    catalog = lake.open_catalog(str(tmp_path), options={"format": "iceberg"})
    assert ids_of(catalog.table("shop.orders")) == [1, 2]
    with pytest.raises(lake.InvalidRequestError, match="argument format and the option 'format'"):
        lake.open_catalog(str(tmp_path), format="paimon", options={"format": "iceberg"})


def test_mistyped_names_get_the_nearest_one(catalog):
    with pytest.raises(lake.NotFoundError, match=r"did you mean 'shop\.orders'\?"):
        catalog.table("shop.order")
    with pytest.raises(lake.NotFoundError, match=r"did you mean 'shop'\?"):
        catalog.table("shopp.orders")
    with pytest.raises(lake.InvalidRequestError, match=r"write 'database\.table'"):
        catalog.table("orders")


def test_a_missing_branch_is_named(catalog):
    with pytest.raises(lake.NotFoundError, match="has no branch 'dev'"):
        catalog.table("shop.orders$branch_dev")


def test_databases_are_created_and_dropped(catalog, tmp_path):
    catalog.create_database("new")
    with pytest.raises(lake.AlreadyExistsError):
        catalog.create_database("new")
    with pytest.raises(lake.UnsupportedError, match="cannot store properties"):
        catalog.create_database("other", properties={"owner": "ada"})
    catalog.drop_database("new")
    assert catalog.list_databases() == ["shop"]
    (tmp_path / "files").mkdir()
    (tmp_path / "files/of-others.txt").touch()
    with pytest.raises(lake.InvalidRequestError, match=r"of-others\.txt"):
        catalog.drop_database("files")
    with pytest.raises(lake.InvalidRequestError, match="has 1 table: orders"):
        catalog.drop_database("shop")


@pytest.mark.parametrize("operation", ["list", "exists"])
def test_a_storage_that_does_not_answer_hides_no_table(operation):
    storage = CrashableStorage()
    catalog = path_catalog(storage)
    catalog.create_database("db")
    catalog.create_table("db.t", COLUMNS)
    calm = storage.reopened()
    path_catalog(calm).list_tables("db")
    [*_, call] = [each for each in calm.log if each.operation == operation]
    assert call.path.startswith("wh/db/t/")
    for work in (
        lambda catalog: catalog.list_tables("db"),
        lambda catalog: catalog.drop_table("db.t", purge=True, missing_ok=True),
    ):
        failing = storage.reopened(Fault(call.number, FaultKind.FAIL_BEFORE))
        with pytest.raises(lake.UnavailableError, match="fail_before"):
            work(path_catalog(failing))
