"""A real Hive metastore: this library and PyIceberg commit to the tables that it lists."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.hive import HiveCatalog

import lakeformat as lake
from lakeformat.catalog.iceberg import IcebergCatalog
from tests.java.hive_metastore import running_metastore

COLUMNS = [("id", "BIGINT"), ("at", "TIMESTAMP(6)"), ("tags", "ARRAY<STRING>")]


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a metastore of its own."""
    with running_metastore(tmp_path_factory.mktemp("metastore")) as address:
        yield address


@pytest.fixture
def opened(uri: str, tmp_path: Path) -> Callable[[], IcebergCatalog]:
    """Opens the catalog, each time as another process does, with an empty database ``shop``."""

    def open_again() -> IcebergCatalog:
        return lake.open_catalog(str(tmp_path), format="iceberg", metastore="hive", uri=uri)

    place = f"file://{tmp_path}/shop.db"
    catalog = open_again()
    for table in catalog.list_tables("shop") if "shop" in catalog.list_databases() else ():
        catalog.drop_table(f"shop.{table}")
    catalog.drop_database("shop", missing_ok=True)
    catalog.create_database("shop", properties={"location": place})
    return open_again


def test_writers_at_the_same_time_lose_nothing(opened: Callable[[], IcebergCatalog]):
    patient = {"commit.retry.num-retries": "50"}
    opened().create_table("shop.orders", COLUMNS, options=patient)

    def write(first: int) -> None:
        for id in range(first, first + 5):
            opened().table("shop.orders").write(pa.table({"id": [id]}))

    with ThreadPoolExecutor(3) as pool:
        for done in [pool.submit(write, first) for first in (0, 10, 20)]:
            done.result()
    ids = opened().table("shop.orders").scan().to_arrow().column("id").to_pylist()
    assert sorted(ids) == [first + n for first in (0, 10, 20) for n in range(5)]


def test_pyiceberg_and_this_library_write_one_table_in_turns(
    uri: str, opened: Callable[[], IcebergCatalog]
):
    table = opened().create_table("shop.orders", COLUMNS)
    table.write(pa.table({"id": [1]}))
    theirs = HiveCatalog("tests", uri=uri).load_table("shop.orders")
    row = {"id": 2, "at": None, "tags": ["a"]}
    theirs.append(pa.Table.from_pylist([row], theirs.schema().as_arrow()))
    table.write(pa.table({"id": [3]}))
    theirs.refresh()
    assert sorted(theirs.scan().to_arrow().column("id").to_pylist()) == [1, 2, 3]
    assert sorted(table.scan().to_arrow().column("id").to_pylist()) == [1, 2, 3]


def test_a_table_is_renamed_and_dropped(opened: Callable[[], IcebergCatalog]):
    catalog = opened()
    catalog.create_table("shop.orders", COLUMNS).write(pa.table({"id": [1]}))
    assert catalog.rename_table("shop.orders", "shop.old").scan().to_arrow().num_rows == 1
    assert catalog.list_tables("shop") == ["old"]
    catalog.drop_table("shop.old")
    assert catalog.list_tables("shop") == []


def test_a_published_table_of_paimon_is_read_by_its_name(uri: str, tmp_path: Path):
    catalog = lake.open_catalog(str(tmp_path), options={"metadata.iceberg.uri": uri})
    catalog.create_database("shop", exist_ok=True)
    options = {
        "metadata.iceberg.storage": "hive-catalog",
        "metadata.iceberg.database": "published",
    }
    table = catalog.create_table("shop.orders", [("id", "BIGINT")], options=options)
    for number in (1, 2):
        table.write(pa.table({"id": [number]}))
    table = catalog.alter_table("shop.orders", lake.add_column("note", "STRING"))
    table.write(pa.table({"id": [3], "note": ["new"]}))
    theirs = HiveCatalog("theirs", uri=uri)
    read = theirs.load_table("published.orders").scan().to_arrow()
    assert sorted(read.to_pylist(), key=repr) == sorted(
        table.scan().to_arrow().to_pylist(), key=repr
    )
    assert table.health().reasons == ()
    catalog.drop_table("shop.orders")
    assert theirs.list_tables("published") == []
