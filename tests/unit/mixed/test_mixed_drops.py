"""A drop deletes the stores of one Mixed table, both or none, and never a neighbour."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.types.byte_size import size
from tests.unit.catalog.iceberg.test_sql_metastore import opened

COLUMNS = [("id", "BIGINT"), ("v", "STRING")]
ROWS = pa.table({"id": [1], "v": ["a"]})


@pytest.fixture(params=["path", "sql"])
def catalog(request, tmp_path: Path) -> lake.IcebergCatalog:
    is_sql = request.param == "sql"
    found = opened(tmp_path) if is_sql else lake.open_catalog(str(tmp_path), format="iceberg")
    found.create_database("shop")
    return found


def create_mixed(catalog, name: str) -> None:
    catalog.create_table(name, COLUMNS, format="mixed", primary_key=["id"]).write(ROWS)


def newest_metadata(catalog, name: str) -> Path:
    return Path(
        catalog._handle(catalog._plain_name(name)).load().metadata_file.removeprefix("file://")
    )


def set_properties(catalog, name: str, **properties: str) -> None:
    """Change properties of a store, as a foreign program would."""
    path = newest_metadata(catalog, name)
    found = json.loads(path.read_text())
    found["properties"] |= {key.replace("__", "."): value for key, value in properties.items()}
    path.write_text(json.dumps(found))


def pretend_base_store(catalog, name: str, change: str) -> None:
    """Give a plain table the properties of a base store that names another table."""
    path = newest_metadata(catalog, name)
    found = json.loads(path.read_text())
    found["properties"] |= {
        "mixed-format.table-store": "base",
        "mixed-format.primary-key-fields": "id",
        "mixed-format.change.identifier": change,
    }
    path.write_text(json.dumps(found))


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    "named", ["shop.plain", "other.plain", "shop.evil", "shop.orders", "shop.orders_change_"]
)
@pytest.mark.parametrize("drop", ["drop_table", "drop_new_table"])
def test_a_drop_keeps_a_table_that_is_not_the_change_store_of_the_table(
    named, drop, catalog, caplog
):
    catalog.create_table("shop.plain", COLUMNS)
    catalog.create_database("other")
    catalog.create_table("other.plain", COLUMNS)
    create_mixed(catalog, "shop.orders")
    catalog.create_table("shop.evil", COLUMNS)
    pretend_base_store(catalog, "shop.evil", named)
    assert catalog.plan_drop_table("shop.evil", purge=True).change_store is None
    more = {"purge": True} if drop == "drop_table" else {}
    assert getattr(catalog, drop)("shop.evil", **more) is not False
    assert catalog.list_tables("shop") == ["orders", "plain"]
    assert catalog.list_tables("other") == ["plain"]
    assert catalog.table("shop.orders").scan().to_arrow().to_pylist() == ROWS.to_pylist()
    assert "or another table uses it, too" in caplog.text


@pytest.mark.parametrize("named", ["", ".", "../x", "shop.a/b"])
def test_a_table_whose_change_store_has_no_name_is_dropped_alone(named, catalog):
    catalog.create_table("shop.evil", COLUMNS)
    pretend_base_store(catalog, "shop.evil", named)
    catalog.drop_table("shop.evil", purge=True)
    assert catalog.list_tables("shop") == []


def test_a_plan_names_the_change_store(catalog):
    create_mixed(catalog, "shop.orders")
    planned = catalog.plan_drop_table("shop.orders", purge=True)
    assert planned.change_store == "shop.orders_change_"
    assert "and its change store shop.orders_change_ would be removed" in planned.sentence


def test_a_plan_names_sizes_that_the_metadata_lacks_as_unknown(catalog):
    catalog.create_table("shop.empty", COLUMNS, format="mixed", primary_key=["id"])
    planned = catalog.plan_drop_table("shop.empty", purge=True)
    assert (planned.files, planned.bytes, planned.unknown_sizes) == (2, 0, 2)
    rest = ", with all other files in their directories" if planned.is_whole_directory else ""
    assert planned.sentence.endswith(f"; 2 files of unknown size would be deleted{rest}")
    create_mixed(catalog, "shop.orders")
    planned = catalog.plan_drop_table("shop.orders", purge=True)
    assert 0 < planned.unknown_sizes < planned.files
    assert f" files of at least {size(planned.bytes)} would be deleted" in planned.sentence


def test_a_change_store_with_another_name_is_dropped_if_no_other_table_names_it(tmp_path):
    catalog = opened(tmp_path)
    catalog.create_database("shop")
    create_mixed(catalog, "shop.orders")
    with closing(sqlite3.connect(tmp_path / "catalog.db")) as found, found:
        found.execute(
            "UPDATE iceberg_tables SET table_name = 'changes' WHERE table_name = 'orders_change_'"
        )
    pretend_base_store(catalog, "shop.orders", "shop.changes")
    catalog.create_table("shop.copy", COLUMNS)
    pretend_base_store(catalog, "shop.copy", "shop.changes")
    catalog.drop_table("shop.copy")
    assert catalog._metastore.tables("shop") == ["changes", "orders"]
    catalog.drop_table("shop.orders", purge=True)
    assert catalog._metastore.tables("shop") == []


def test_nothing_is_deleted_if_the_change_store_forbids_it(catalog):
    create_mixed(catalog, "shop.orders")
    set_properties(catalog, "shop.orders_change_", gc__enabled="false")
    for drop in (catalog.plan_drop_table, catalog.drop_table):
        with pytest.raises(lake.InvalidRequestError, match=r"gc\.enabled"):
            drop("shop.orders", purge=True)
    assert catalog.table("shop.orders").scan().count() == 1


def test_nothing_is_deleted_if_the_change_store_is_damaged(catalog):
    create_mixed(catalog, "shop.orders")
    damaged = newest_metadata(catalog, "shop.orders_change_")
    before = damaged.read_text()
    damaged.write_text("{")
    with pytest.raises(lake.CorruptTableError, match=r"its change store 'shop\.orders_change_' is"):
        catalog.drop_table("shop.orders", purge=True)
    damaged.write_text(before)
    assert catalog.table("shop.orders").scan().count() == 1


def test_a_damaged_change_store_is_planned_and_dropped_alone_from_a_sql_catalog(tmp_path):
    catalog = opened(tmp_path)
    catalog.create_database("shop")
    create_mixed(catalog, "shop.orders")
    newest_metadata(catalog, "shop.orders_change_").write_text("{")
    with pytest.raises(lake.CorruptTableError, match="Remove the change store alone"):
        catalog.plan_drop_table("shop.orders")
    assert catalog.plan_drop_table("shop.orders_change_").files == 0
    catalog.drop_table("shop.orders_change_")
    catalog.drop_table("shop.orders")
    assert catalog._metastore.tables("shop") == []


def test_a_new_table_is_kept_whole_if_one_store_has_other_files(tmp_path):
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    catalog.create_database("shop")
    catalog.create_table("shop.orders", COLUMNS, format="mixed", primary_key=["id"])
    other = tmp_path / "shop/orders_change_/data/unfinished.parquet"
    other.parent.mkdir()
    other.write_text("")
    assert not catalog.drop_new_table("shop.orders")
    assert catalog.table("shop.orders").scan().count() == 0
    other.unlink()
    assert catalog.drop_new_table("shop.orders")


def test_the_entry_of_a_table_outside_of_the_warehouse_is_listed_and_dropped(tmp_path):
    uri = f"sqlite:///{tmp_path}/c.db"
    theirs, ours = (
        lake.open_catalog(str(tmp_path / name), format="iceberg", metastore="sql", uri=uri)
        for name in ("theirs", "ours")
    )
    theirs.create_database("shop")
    for name in ("shop.orders", "shop.orders_change_"):
        theirs.create_table(name, COLUMNS).write(ROWS)

    assert ours.list_tables("shop") == ["orders", "orders_change_"]
    planned = ours.plan_drop_table("shop.orders").sentence
    assert planned == "table shop.orders would be removed from the catalog; its files would be kept"
    with pytest.raises(lake.InvalidRequestError, match="outside of the warehouse"):
        ours.plan_drop_table("shop.orders", purge=True)
    ours.drop_table("shop.orders")

    assert theirs.list_tables("shop") == ["orders_change_"]
    assert [*(tmp_path / "theirs").rglob("orders/data/*.parquet")]
