"""Catalogs of Iceberg tables on real servers: rows, credentials and writers at the same time."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.catalog.iceberg import IcebergCatalog
from tests.conformance.s3_server import glue_options_for
from tests.iceberg_rest_server import rest_server

COLUMNS = pa.schema([pa.field("id", pa.int64(), nullable=False), ("note", pa.string())])
WRITERS, COMMITS = 3, 4
MINE = {
    "s3.endpoint": "http://127.0.0.1:1",  # where no server listens
    "s3.access-key": "of the caller",
    "s3.secret-key": "of the caller",
}


@pytest.fixture(params=["path", "sqlite", "postgresql", "rest", "glue"])
def reopened(request, tmp_path) -> Iterator[object]:
    """Opens one catalog again and again, each time as another process does."""
    more = {"metastore": "sql", "uri": f"jdbc:sqlite:{tmp_path}/catalog.db"}
    if request.param == "postgresql":
        more["uri"] = request.getfixturevalue("postgres").new_database()
    if request.param == "path":
        more = {}
    if request.param == "glue":
        options = glue_options_for(request.getfixturevalue("s3_endpoint"))
        more = {"metastore": "glue", "options": options}
    if request.param != "rest":
        yield lambda: lake.open_catalog(str(tmp_path), format="iceberg", **more)
        if request.param == "glue":  # one service for all tests
            _empty(lake.open_catalog(str(tmp_path), format="iceberg", **more))
        return
    with rest_server() as server:
        server.warehouse = f"file://{tmp_path}"
        more = {"metastore": "rest", "uri": server.uri}
        yield lambda: lake.open_catalog(str(tmp_path), format="iceberg", **more)


def _empty(catalog: IcebergCatalog) -> None:
    for database in catalog.list_databases():
        for table in catalog.list_tables(database):
            catalog.drop_table(f"{database}.{table}")
        catalog.drop_database(database)


def rows(first: int, count: int = 1) -> pa.Table:
    ids = range(first, first + count)
    return pa.table([[*ids], [f"row {each}" for each in ids]], schema=COLUMNS)


def ids(catalog: IcebergCatalog, name: str = "shop.orders") -> list[int]:
    return sorted(catalog.table(name).scan().to_arrow().column("id").to_pylist())


def test_rows_are_written_and_read_by_name(reopened):
    catalog = reopened()
    catalog.create_database("shop")
    orders = catalog.create_table("shop.orders", COLUMNS, partition_by=["bucket(4, id)"])
    orders.write(rows(0, 10))
    orders.write(rows(10, 10), commit=lake.CommitId("job", 1))
    orders.write(rows(10, 10), commit=lake.CommitId("job", 1))
    assert ids(reopened()) == [*range(20)]
    assert len(reopened().table("shop.orders").snapshots()) == 2


def test_writers_at_the_same_time_lose_nothing(reopened):
    catalog = reopened()
    catalog.create_database("shop")
    catalog.create_table("shop.orders", COLUMNS, options={"commit.retry.num-retries": "100"})
    failed: list[lake.LakeError] = []

    def write(writer: int) -> None:
        try:
            orders = reopened().table("shop.orders")
            for number in range(COMMITS):
                orders.write(rows(writer * COMMITS + number))
        except lake.LakeError as error:
            failed.append(error)

    threads = [threading.Thread(target=write, args=(each,)) for each in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert ids(reopened()) == [*range(WRITERS * COMMITS)]


def test_a_name_is_created_once_by_programs_at_the_same_time(reopened):
    reopened().create_database("shop")
    won: list[str] = []
    start = threading.Barrier(WRITERS)

    def create() -> None:
        catalog = reopened()
        start.wait()
        try:
            catalog.create_table("shop.orders", COLUMNS)
            won.append("created")
        except lake.AlreadyExistsError:
            pass

    threads = [threading.Thread(target=create) for _ in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert won == ["created"]
    assert ids(reopened()) == []


@pytest.mark.parametrize("place", ["config", "storage-credentials"])
def test_credentials_that_a_rest_catalog_vends_open_a_bucket(
    s3_bucket, s3_endpoint, s3_options, place
):
    warehouse = f"s3://{s3_bucket}/warehouse"
    mine = lake.open_catalog(warehouse, format="iceberg", options=s3_options)
    mine.create_database("shop")
    created = mine.create_table("shop.orders", COLUMNS)
    with rest_server() as server:
        server.databases["shop"] = {}
        server.tables["shop.orders"] = f"{created.location}/metadata/v1.metadata.json"
        vended = {
            "s3.endpoint": s3_endpoint,
            "s3.access-key-id": s3_options["s3.access-key"],
            "s3.secret-access-key": s3_options["s3.secret-key"],
            "s3.path-style-access": "true",
        }
        if place == "config":
            server.config = vended
        else:
            server.credentials = [{"prefix": f"s3://{s3_bucket}", "config": vended}]
        catalog = lake.open_catalog(
            warehouse,
            format="iceberg",
            metastore="rest",
            uri=server.uri,
            options=MINE,
        )
        orders = catalog.table("shop.orders")
        assert orders.location == f"{warehouse}/shop/orders"
        assert orders.scan().to_arrow().num_rows == 0
        assert s3_options["s3.secret-key"] not in repr(vars(orders))


def test_pyiceberg_and_this_library_write_one_table_in_turns(tmp_path):
    from pyiceberg.catalog.sql import SqlCatalog

    ours = lake.open_catalog(
        str(tmp_path), format="iceberg", metastore="sql", uri=f"sqlite:///{tmp_path}/catalog.db"
    )
    ours.create_database("shop")
    ours.create_table("shop.orders", COLUMNS).write(rows(0, 2))
    theirs = SqlCatalog(
        "default", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}"
    )
    theirs.load_table("shop.orders").append(rows(2, 2))
    ours.table("shop.orders").write(rows(4, 2))
    theirs.create_table("shop.more", COLUMNS).append(rows(7))
    assert ids(ours) == [*range(6)]
    assert ids(ours, "shop.more") == [7]
    read = theirs.load_table("shop.orders").scan().to_arrow()
    assert sorted(read.column("id").to_pylist()) == [*range(6)]
    theirs.close()
