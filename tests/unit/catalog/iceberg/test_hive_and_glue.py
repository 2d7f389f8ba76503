"""Hive and Glue keep the metadata file in the parameters of a table. Their services are stubs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import lakeformat as lake
from lakeformat.catalog.iceberg import IcebergCatalog
from tests.unit.catalog.iceberg.small_table import ids_of, make_small_table


class Missing(Exception):
    pass


class Glue:
    """The part of boto3's client that reading uses."""

    exceptions = SimpleNamespace(EntityNotFoundException=Missing)

    def __init__(self, address: str) -> None:
        orders = {"table_type": "ICEBERG", "metadata_location": address}
        self.tables = {"orders": orders, "csv": {"table_type": "EXTERNAL"}, "plain": {}}

    def get_databases(self) -> dict[str, Any]:
        return {"DatabaseList": [{"Name": "shop"}]}

    def get_database(self, Name: str) -> dict[str, Any]:
        if Name != "shop":
            raise Missing
        return {"Database": {"Name": "shop", "LocationUri": "s3://b/shop"}}

    def get_tables(self, DatabaseName: str) -> dict[str, Any]:
        return {"TableList": [self._table(name) for name in self.tables]}

    def get_table(self, DatabaseName: str, Name: str) -> dict[str, Any]:
        if Name not in self.tables:
            raise Missing
        return {"Table": self._table(Name)}

    def _table(self, name: str) -> dict[str, Any]:
        return {"DatabaseName": "shop", "Name": name, "Parameters": self.tables[name]}


@pytest.fixture
def glue(tmp_path, monkeypatch) -> tuple[IcebergCatalog, dict[str, Any]]:
    """A catalog over a stub, and the arguments of its session and its client."""
    import boto3

    given: dict[str, Any] = {}
    stub = Glue(make_small_table(tmp_path / "shop/orders"))

    class Session:
        def __init__(self, **arguments: Any) -> None:
            given.update({key: value for key, value in arguments.items() if value is not None})

        def client(self, service: str, endpoint_url: str | None, **_: Any) -> Glue:
            given.update(service=service, endpoint_url=endpoint_url)
            return stub

    monkeypatch.setattr(boto3, "Session", Session)
    options = {
        "glue.region": "eu-1",
        "glue.access-key-id": "key",
        "glue.secret-access-key": "secret",
        "glue.endpoint": "http://127.0.0.1:1",
    }
    catalog = lake.open_catalog(str(tmp_path), format="iceberg", metastore="glue", options=options)
    return catalog, given


def test_glue_is_opened_with_the_options_of_the_catalog(glue):
    catalog, given = glue
    assert catalog.list_databases() == ["shop"]
    assert given == {
        "region_name": "eu-1",
        "aws_access_key_id": "key",
        "aws_secret_access_key": "secret",
        "service": "glue",
        "endpoint_url": "http://127.0.0.1:1",
    }


def test_glue_names_the_metadata_file_of_an_iceberg_table(glue):
    catalog, _ = glue
    assert catalog.list_tables("shop") == ["orders"]
    assert ids_of(catalog.table("shop.orders")) == [1, 2]
    with pytest.raises(lake.NotFoundError, match=r"did you mean 'shop\.orders'"):
        catalog.table("shop.ordes")
    with pytest.raises(lake.InvalidRequestError, match=r"'shop\.csv' is not an Iceberg table"):
        catalog.table("shop.csv")


def test_a_hive_metastore_that_does_not_answer_is_unavailable(tmp_path):
    catalog = lake.open_catalog(
        str(tmp_path), format="iceberg", metastore="hive", uri="thrift://127.0.0.1:1"
    )
    with pytest.raises(lake.UnavailableError, match="cannot list the databases in thrift://"):
        catalog.list_databases()


def test_hive_names_the_metadata_file_of_an_iceberg_table(tmp_path, monkeypatch):
    from pyiceberg.catalog import hive

    address = make_small_table(tmp_path / "shop/orders")
    parameters = {"table_type": "ICEBERG", "metadata_location": address}
    tables = {"orders": SimpleNamespace(tableName="orders", parameters=parameters)}

    class Client:
        def get_table(self, dbname: str, tbl_name: str) -> Any:
            if tbl_name not in tables:
                raise hive.NoSuchObjectException()
            return tables[tbl_name]

    class Opened:
        def __enter__(self) -> Client:
            return Client()

        def __exit__(self, *_: object) -> None:
            pass

    def connect(properties: dict[str, str]) -> Opened:
        assert properties["ugi"] == "ada"
        return Opened()

    monkeypatch.setattr(hive.HiveCatalog, "_create_hive_client", staticmethod(connect))
    catalog = lake.open_catalog(
        str(tmp_path),
        format="iceberg",
        metastore="hive",
        uri="thrift://127.0.0.1:1",
        options={"ugi": "ada"},
    )
    assert ids_of(catalog.table("shop.orders")) == [1, 2]
