"""Metadata in the warehouse, where Paimon puts it for a Hadoop catalog."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.table import StaticTable

import lakeformat as lake
from lakeformat.iceberg.metadata.metadata_file import HINT
from lakeformat.storage import MemoryStorage
from tests.unit.publish.published import (
    ROOT,
    content,
    file_of,
    iceberg,
    number_of,
    published_table,
    rows_of,
    seen,
    unobserved,
)

COLUMNS = [("id", "BIGINT"), ("note", "STRING")]
HADOOP = {"metadata.iceberg.storage": "hadoop-catalog"}
IN_WAREHOUSE = "wh/iceberg/shop/orders/metadata"


@pytest.fixture
def storage(request) -> MemoryStorage:
    return MemoryStorage(request.node.originalname)


@pytest.mark.parametrize(
    ("kind", "location", "place"),
    [
        ("hadoop-catalog", None, IN_WAREHOUSE),
        ("hadoop-catalog", "table-location", f"{ROOT}/metadata"),
        ("table-location", "catalog-location", IN_WAREHOUSE),
    ],
)
def test_the_options_choose_the_place_as_in_paimon(storage, kind, location, place):
    options = {"metadata.iceberg.storage": kind}
    if location is not None:
        options["metadata.iceberg.storage-location"] = location
    table = published_table(storage, COLUMNS, options=options)
    table.write(rows_of(id=[1], note=["a"]))
    found = {name.rpartition("/")[0] for name in storage.files() if "/metadata/" in name}
    assert found == {place}
    assert seen(table) == [{"id": 1, "note": "a"}]


def test_the_rows_of_every_operation_are_seen_in_the_warehouse(storage):
    table = published_table(storage, COLUMNS, options=HADOOP, partition_by=["note"])
    for number in range(4):
        table.write(rows_of(id=[number], note=[f"n{number % 2}"]))
    table.write(rows_of(id=[9], note=["n1"]), overwrite="partitions")
    table.compact(strategy="full")
    assert seen(table) == content(table.scan().to_arrow())
    table.tags.create("kept", snapshot=2)
    table.expire_snapshots(retain_max=1, retain_min=1)
    kept = iceberg(table)._loaded().metadata.snapshots
    assert [each.snapshot_id for each in kept] == [2, 6]
    assert content(iceberg(table).scan(tag="kept").to_arrow()) == [
        {"id": 0, "note": "n0"},
        {"id": 1, "note": "n1"},
    ]
    assert table.health().reasons == ()


def test_a_catalog_of_directories_and_pyiceberg_read_the_published_table(tmp_path: Path):
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    table = catalog.create_table("shop.orders", COLUMNS, options=HADOOP)
    table.write(rows_of(id=[1, 2], note=["a", "b"]))
    others = lake.open_catalog(
        str(tmp_path / "iceberg"), format="iceberg", options={"external-roots": str(tmp_path)}
    )
    assert others.list_tables("shop") == ["orders"]
    assert content(others.table("shop.orders").scan().to_arrow()) == [
        {"id": 1, "note": "a"},
        {"id": 2, "note": "b"},
    ]
    file = lake.publish_table(table).metadata_file
    assert file == (tmp_path / "iceberg/shop/orders/metadata" / file_of(1)).as_uri()
    read = StaticTable.from_metadata(file).scan().to_arrow()
    assert content(read) == content(table.scan().to_arrow())


def test_the_hint_never_names_a_deleted_file(storage, monkeypatch):
    table = published_table(storage, COLUMNS, options=HADOOP)
    for number in range(12):
        table.write(rows_of(id=[number], note=["x"]))
    unobserved(table).rollback(snapshot=2, as_latest=False)
    hint, delete = f"{IN_WAREHOUSE}/{HINT}", storage.delete
    hinted = []

    def watched(path):
        delete(path)
        number = storage.read(hint).decode()
        hinted.append(storage.exists(f"{IN_WAREHOUSE}/v{number}.metadata.json"))

    monkeypatch.setattr(MemoryStorage, "delete", lambda _, path: watched(path))
    lake.publish_table(table)
    table.expire_snapshots(retain_max=1, retain_min=1)
    assert len(hinted) > 2
    assert all(hinted)
    assert storage.read(hint) == str(number_of(14)).encode()


def test_a_table_outside_of_a_warehouse_is_refused_with_the_option_that_helps(tmp_path: Path):
    catalog = lake.open_catalog(str(tmp_path / "wh"))
    catalog.create_database("shop")
    catalog.create_table("shop.orders", COLUMNS, options=HADOOP)
    place = tmp_path / "elsewhere"
    (tmp_path / "wh/shop.db").rename(place)
    table = lake.open_table(str(place / "orders"))
    assert isinstance(table, lake.Table)
    with pytest.raises(lake.UnsupportedError, match=r"storage-location' to 'table-location'"):
        table.write(rows_of(id=[1], note=["a"]))
    assert table.snapshots() == []


@pytest.mark.parametrize("linked", ["shop", "shop/orders"])
def test_no_link_in_the_warehouse_is_followed(tmp_path: Path, linked, caplog):
    catalog, elsewhere = lake.open_catalog(str(tmp_path / "wh")), tmp_path / "elsewhere"
    catalog.create_database("shop")
    table = catalog.create_table("shop.orders", COLUMNS, options=HADOOP)
    table.write(rows_of(id=[1], note=["a"]))
    place = tmp_path / "wh/iceberg" / linked
    place.rename(elsewhere)
    place.symlink_to(elsewhere)
    before = sorted(elsewhere.rglob("*"))
    for change in (
        lambda: table.write(rows_of(id=[2], note=["b"])),
        lambda: table.expire_snapshots(retain_max=1, retain_min=1),
        lambda: lake.publish_table(table),
    ):
        with pytest.raises(lake.UnsupportedError, match=r"is a symbolic link, .* 'table-location'"):
            change()
    assert [each.id for each in table.snapshots()] == [1]
    [reason] = table.health().reasons
    assert "symbolic link" in reason.finding
    catalog.drop_table("shop.orders")
    assert "is not removed: the table's Iceberg metadata belongs in" in caplog.text
    assert sorted(elsewhere.rglob("*")) == before


def test_the_directory_of_all_metadata_may_be_a_link(tmp_path: Path):
    catalog = lake.open_catalog(str(tmp_path / "wh"))
    catalog.create_database("shop")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "wh/iceberg").symlink_to(tmp_path / "elsewhere")
    table = catalog.create_table("shop.orders", COLUMNS, options=HADOOP)
    table.write(rows_of(id=[1], note=["a"]))
    assert seen(table) == [{"id": 1, "note": "a"}]
