"""One SQL catalog, two implementations: the tables of one are the tables of the other."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lakeformat as lake
from tests.java.peer_process import JavaPeer
from tests.json_process import JsonProcess, PeerError
from tests.postgres_server import USER, PostgresServer

COLUMNS = [("id", "BIGINT NOT NULL"), ("by", "STRING")]
SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("by", pa.string())])


@pytest.fixture(params=["sqlite", "postgresql", "postgresql under the lock"])
def metastore(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    """Java's lock hinders itself on SQLite: it takes a second connection while the first writes."""
    if request.param == "sqlite":
        return {"metastore": "jdbc", "uri": f"jdbc:sqlite:{tmp_path / 'catalog.db'}"}
    server: PostgresServer = request.getfixturevalue("postgres")
    uri = server.jdbc_url(server.make_database())
    lock = {"lock.enabled": "true"} if request.param == "postgresql under the lock" else {}
    return {"metastore": "jdbc", "uri": uri, "jdbc.user": USER, **lock}


@pytest.fixture
def ours(tmp_path: Path, metastore: dict[str, str]) -> lake.Catalog:
    return lake.open_catalog(str(tmp_path / "warehouse"), options=metastore)


@pytest.fixture
def javas(java: JsonProcess, tmp_path: Path, metastore: dict[str, str]) -> JavaPeer:
    return JavaPeer(java, tmp_path / "warehouse", metastore)


def one_row(number: int, writer: str) -> pa.Table:
    return pa.table({"id": [number], "by": [writer]}, schema=SCHEMA)


def rows_of(table: lake.Table) -> list[tuple[int, str]]:
    return sorted((row["id"], row["by"]) for row in table.scan().to_arrow().to_pylist())


def test_java_lists_reads_and_writes_the_tables_we_made(ours, javas):
    ours.create_database("shop")
    table = ours.create_table("shop.orders", COLUMNS)
    table.write(one_row(1, "us"))
    assert javas.call("list_databases") == ["shop"]
    assert javas.call("list_tables", database="shop") == ["orders"]
    javas.write("shop.orders", one_row(2, "java"))
    assert rows_of(table) == [(1, "us"), (2, "java")]
    assert javas.read("shop.orders").column("id") == [1, 2]


def test_we_list_read_and_write_the_tables_java_made(ours, javas):
    javas.create_table("shop.orders", COLUMNS)
    javas.write("shop.orders", one_row(1, "java"))
    assert ours.list_databases() == ["shop"]
    assert ours.list_tables("shop") == ["orders"]
    ours.table("shop.orders").write(one_row(2, "us"))
    assert javas.read("shop.orders").column("id") == [1, 2]
    assert rows_of(ours.table("shop.orders")) == [(1, "java"), (2, "us")]


def test_a_rename_by_one_is_a_rename_for_the_other(ours, javas):
    javas.create_table("shop.orders", COLUMNS)
    javas.write("shop.orders", one_row(1, "java"))
    ours.rename_table("shop.orders", "shop.sales")
    assert javas.call("list_tables", database="shop") == ["sales"]
    assert javas.read("shop.sales").column("id") == [1]
    javas.call("rename_table", table="shop.sales", to="shop.orders")
    assert ours.list_tables("shop") == ["orders"]
    assert rows_of(ours.table("shop.orders")) == [(1, "java")]


def test_a_change_of_schema_by_one_is_seen_by_the_other(ours, javas):
    ours.create_database("shop")
    ours.create_table("shop.orders", COLUMNS)
    javas.alter_table("shop.orders", ("add", "note", "STRING"))
    assert ours.table("shop.orders").schema.column_names == ["id", "by", "note"]
    ours.alter_table("shop.orders", lake.add_column("size", "INT"))
    assert javas.read("shop.orders").columns == ["id", "by", "note", "size"]


def test_what_one_dropped_is_gone_for_the_other(ours, javas):
    ours.create_database("shop")
    for name in ("ours", "javas"):
        ours.create_table(f"shop.{name}", COLUMNS).write(one_row(1, "us"))
    ours.drop_table("shop.ours")
    with pytest.raises(PeerError, match="does not exist"):
        javas.read("shop.ours")
    javas.call("drop_table", table="shop.javas")
    assert ours.list_tables("shop") == []
    with pytest.raises(lake.NotFoundError):
        ours.table("shop.javas")
    javas.call("drop_database", database="shop")
    assert ours.list_databases() == []
