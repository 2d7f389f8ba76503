"""One SQL database as metastore of both implementations: each finds what the other listed."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lakeformat as lake
from tests.interop.peer import Peer

COLUMNS = [("id", "BIGINT")]


@pytest.fixture
def metastore(tmp_path) -> dict[str, str]:
    return {"metastore": "jdbc", "uri": f"jdbc:sqlite:{tmp_path}/metastore.db"}


@pytest.fixture
def ours(tmp_path, metastore) -> lake.Catalog:
    return lake.open_catalog(str(tmp_path / "warehouse"), options=metastore)


@pytest.fixture
def theirs(worker, tmp_path, metastore) -> Peer:
    exchange = tmp_path / "exchange"
    exchange.mkdir()
    return Peer(worker, tmp_path / "warehouse", exchange, metastore)


def test_they_find_and_read_the_tables_we_list(ours, theirs):
    ours.create_database("shop")
    ours.create_table("shop.orders", COLUMNS).write(pa.table({"id": [1, 2]}))
    assert theirs.list_tables("shop") == ["orders"]
    assert theirs.read("shop.orders")["id"].to_pylist() == [1, 2]
    ours.rename_table("shop.orders", "shop.payments")
    assert theirs.list_tables("shop") == ["payments"]
    ours.drop_table("shop.payments")
    assert theirs.list_tables("shop") == []


def test_we_find_and_write_the_tables_they_list(ours, theirs):
    theirs.create_table("bank.payments", pa.schema([("id", pa.int64())]))
    assert ours.list_databases() == ["bank"]
    ours.table("bank.payments").write(pa.table({"id": [3]}))
    assert theirs.read("bank.payments")["id"].to_pylist() == [3]
    assert not any(ours.repair().to_dict().values())
