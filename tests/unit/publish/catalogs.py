"""Catalogs of Iceberg tables in which tests publish, each with PyIceberg's client as its reader."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pytest

import lakeformat as lake
from lakeformat.catalog import Catalog
from lakeformat.catalog.iceberg.hive import HiveMetastore
from lakeformat.catalog.iceberg.hive_client import HiveClient
from lakeformat.catalog.iceberg.rest import RestMetastore
from lakeformat.catalog.iceberg.sql import SqlMetastore
from lakeformat.errors import UnavailableError
from tests.iceberg_rest_server import RestServer, rest_server
from tests.unit.catalog.iceberg.stub_services import HiveStub

__all__ = ["KINDS", "Published", "opened"]

COLUMNS = [("id", "BIGINT"), ("note", "STRING")]


class Service(Protocol):
    connection: dict[str, str]
    options: dict[str, str]

    def client(self) -> Any: ...


@dataclass
class SqlService:
    """A SQLite database."""

    directory: Path

    @property
    def uri(self) -> str:
        return f"sqlite:///{self.directory / 'catalog.db'}"

    @property
    def connection(self) -> dict[str, str]:
        return {"metadata.iceberg.sql.uri": self.uri}

    @property
    def options(self) -> dict[str, str]:
        return {
            "metadata.iceberg.storage": "table-location",
            "metadata.iceberg.sql-catalog": "lake",
        }

    def client(self) -> Any:
        from pyiceberg.catalog.sql import SqlCatalog

        return SqlCatalog("lake", uri=self.uri, warehouse=str(self.directory))


@dataclass
class RestService:
    """The REST server of the tests."""

    server: RestServer

    @property
    def connection(self) -> dict[str, str]:
        return {"metadata.iceberg.rest.uri": self.server.uri}

    @property
    def options(self) -> dict[str, str]:
        return {"metadata.iceberg.storage": "rest-catalog"}

    def client(self) -> Any:
        from pyiceberg.catalog.rest import RestCatalog

        return RestCatalog("lake", uri=self.server.uri)


@dataclass
class HiveService:
    """A Hive metastore in memory."""

    stub: HiveStub

    @property
    def connection(self) -> dict[str, str]:
        return {"metadata.iceberg.uri": "thrift://127.0.0.1:1"}

    @property
    def options(self) -> dict[str, str]:
        return {"metadata.iceberg.storage": "hive-catalog"}

    def client(self) -> Any:
        return HiveClient("lake", uri="thrift://127.0.0.1:1")


KINDS = ("sql", "rest", "hive")


@dataclass
class Published:
    """A warehouse whose tables are published in one catalog."""

    kind: str
    directory: Path
    service: Any

    def catalog(self, **more: str) -> Catalog:
        options = {**self.service.connection, **more}
        return lake.open_catalog(str(self.directory / "wh"), options=options)

    def table(self, **options: str) -> lake.Table:
        """A new table ``shop.orders``."""
        catalog = self.catalog()
        catalog.create_database("shop", exist_ok=True)
        given = {**self.service.options, **options}
        return catalog.create_table("shop.orders", COLUMNS, options=given)

    def read(self, name: str = "shop.orders", snapshot: int | None = None) -> list[dict[str, Any]]:
        """The rows that PyIceberg reads through the catalog."""
        found = self.service.client().load_table(name).scan(snapshot_id=snapshot)
        return sorted(found.to_arrow().to_pylist(), key=repr)

    @property
    def changes(self) -> list[tuple[type, str]]:
        """The calls that change the catalog."""
        if self.kind == "rest":
            return [(RestMetastore, name) for name in ("register", "send_changes", "remove_table")]
        return [(self._metastore, name) for name in ("name_first", "name_next")]

    @property
    def _metastore(self) -> type:
        return {"rest": RestMetastore, "sql": SqlMetastore, "hive": HiveMetastore}[self.kind]

    def fail(self, broken: pytest.MonkeyPatch) -> None:
        """Let the catalog answer nothing."""

        def away(*_: Any, **__: Any) -> None:
            raise UnavailableError("the service is away")

        broken.setattr(self._metastore, "_ask" if self.kind == "rest" else "answer", away)

    def names(self, database: str = "shop") -> list[str]:
        return [each[-1] for each in self.service.client().list_tables(database)]


@contextmanager
def opened(kind: str, directory: Path) -> Iterator[Published]:
    if kind == "sql":
        yield Published(kind, directory, SqlService(directory))
        return
    if kind == "hive":
        with pytest.MonkeyPatch.context() as patch:
            stub = HiveStub()
            stub.install(patch)
            yield Published(kind, directory, HiveService(stub))
        return
    with rest_server() as server:
        server.shows_metadata = True
        yield Published(kind, directory, RestService(server))
