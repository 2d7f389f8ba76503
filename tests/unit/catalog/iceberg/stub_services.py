"""A Hive metastore and AWS Glue in memory: the part of both that the clients of PyIceberg use."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hive_metastore import ttypes as hive
from thrift.transport.TTransport import TTransportException

import lakeformat as lake
from lakeformat.catalog.iceberg import IcebergCatalog
from lakeformat.environment import Environment

__all__ = ["GlueStub", "HiveStub"]


_SLEEPLESS = Environment(sleep_seconds=lambda _: None)


def _nothing() -> None:
    pass


class _Folded(dict[Any, Any]):
    """Entries whose names are in lower case; they are found in any case."""

    def __contains__(self, name: object) -> bool:
        return super().__contains__(_folded(name))

    def __getitem__(self, name: Any) -> Any:
        return super().__getitem__(_folded(name))

    def __setitem__(self, name: Any, entry: Any) -> None:
        super().__setitem__(_folded(name), entry)

    def __delitem__(self, name: Any) -> None:
        super().__delitem__(_folded(name))


def _folded(name: Any) -> Any:
    return name.lower() if isinstance(name, str) else tuple(each.lower() for each in name)


class HiveStub:
    """A metastore of Hive; it fails if a table is changed without its lock."""

    def __init__(self) -> None:
        self.databases: dict[str, Any] = _Folded()
        self.tables: dict[tuple[str, str], Any] = _Folded()
        self.lock_state = hive.LockState.ACQUIRED
        self.is_locked = False
        self.unlocked = 0
        self.before_a_change: Callable[[], object] = _nothing
        self.after_a_change: Callable[[], object] = _nothing

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let the client of PyIceberg reach this metastore."""
        from lakeformat.catalog.iceberg.hive_client import HiveClient

        monkeypatch.setattr(HiveClient, "_create_hive_client", staticmethod(lambda _: self))

    def open(self, warehouse: Path) -> IcebergCatalog:
        """Open the catalog as another process does."""
        return lake.open_catalog(
            str(warehouse),
            format="iceberg",
            metastore="hive",
            uri="thrift://127.0.0.1:1",
            environment=_SLEEPLESS,
        )

    def register(self, database: str, table: str, address: str) -> None:
        """Add a table that another program created."""
        parameters = {"table_type": "ICEBERG", "metadata_location": address, "by": "spark"}
        self.databases[database] = hive.Database(
            database, locationUri=f"file:///{database}", parameters={}
        )
        self.tables[database, table] = hive.Table(table, database, parameters=parameters)

    def parameters(self, database: str, table: str) -> dict[str, str]:
        """Return the parameters of a table."""
        found: dict[str, str] = self.tables[database, table].parameters
        return found

    def lose_an_answer(self) -> None:
        """Make the next change, and then lose the connection."""

        def lost() -> None:
            self.after_a_change = _nothing
            raise TTransportException(message="connection lost")

        self.after_a_change = lost

    def __enter__(self) -> HiveStub:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def get_all_databases(self) -> list[str]:
        return [*self.databases]

    def get_database(self, name: str) -> Any:
        if name not in self.databases:
            raise hive.NoSuchObjectException()
        return self.databases[name]

    def create_database(self, database: Any) -> None:
        self.databases[database.name] = database

    def get_all_tables(self, db_name: str) -> list[str]:
        return [table for database, table in self.tables if database == db_name.lower()]

    def get_table_objects_by_name(self, dbname: str, tbl_names: list[str]) -> list[Any]:
        return [self.tables[dbname, table] for table in tbl_names]

    def get_table(self, dbname: str, tbl_name: str) -> Any:
        if (dbname, tbl_name) not in self.tables:
            raise hive.NoSuchObjectException()
        return deepcopy(self.tables[dbname, tbl_name])

    def create_table(self, table: Any) -> None:
        if (table.dbName, table.tableName) in self.tables:
            raise hive.AlreadyExistsException()
        self.tables[table.dbName, table.tableName] = table
        self.after_a_change()

    def drop_table(self, dbname: str, name: str, deleteData: bool) -> None:
        assert not deleteData
        del self.tables[dbname, name]

    def lock(self, request: Any) -> Any:
        assert not self.is_locked, "two writers have the lock"
        self.is_locked = self.lock_state == hive.LockState.ACQUIRED
        return hive.LockResponse(7, self.lock_state)

    def check_lock(self, request: Any) -> Any:
        return hive.LockResponse(request.lockid, self.lock_state)

    def show_locks(self, request: Any) -> Any:
        held = hive.ShowLocksResponseElement(
            lockid=6, state=hive.LockState.ACQUIRED, user="flink", hostname="node-3"
        )
        return hive.ShowLocksResponse([held])

    def unlock(self, request: Any) -> None:
        assert request.lockid == 7
        self.unlocked += 1
        self.is_locked = False

    def alter_table_with_environment_context(
        self, dbname: str, tbl_name: str, new_tbl: Any, environment_context: Any
    ) -> None:
        expected = environment_context.properties.get("expected_parameter_value")
        if expected is not None:
            assert self.is_locked
            self.before_a_change()
            if self.tables[dbname, tbl_name].parameters["metadata_location"] != expected:
                raise hive.MetaException("The table has been modified.")
        del self.tables[dbname, tbl_name]
        self.tables[new_tbl.dbName, new_tbl.tableName] = new_tbl
        self.after_a_change()


class _MissingError(Exception):
    pass


class _ExistsError(Exception):
    pass


class _ChangedError(Exception):
    pass


class _ServiceError(Exception):
    __module__ = "botocore.exceptions"


class GlueStub:
    """AWS Glue; a table has a version that each change raises."""

    exceptions = SimpleNamespace(
        EntityNotFoundException=_MissingError,
        AlreadyExistsException=_ExistsError,
        ConcurrentModificationException=_ChangedError,
    )

    def __init__(self) -> None:
        self.databases: dict[str, Any] = _Folded()
        self.tables: dict[tuple[str, str], Any] = _Folded()
        self.given: dict[str, Any] = {}
        self.before_a_change: Callable[[], object] = _nothing
        self.after_a_change: Callable[[], object] = _nothing

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let the client of PyIceberg reach this service."""
        import boto3

        stub = self

        class Session:
            def __init__(self, **arguments: Any) -> None:
                stub.given.update({k: v for k, v in arguments.items() if v is not None})

            def client(self, service: str, endpoint_url: str | None, **_: Any) -> GlueStub:
                stub.given.update(service=service, endpoint_url=endpoint_url)
                return stub

        monkeypatch.setattr(boto3, "Session", Session)

    def open(self, warehouse: Path, **options: str) -> IcebergCatalog:
        """Open the catalog as another process does."""
        return lake.open_catalog(
            str(warehouse), format="iceberg", metastore="glue", options=options
        )

    def register(self, database: str, table: str, address: str | None) -> None:
        """Add a table that another program created; without an address it is not Iceberg's."""
        parameters = {"table_type": "EXTERNAL"}
        if address is not None:
            parameters = {"table_type": "ICEBERG", "metadata_location": address, "by": "spark"}
        self.databases[database] = {"Name": database}
        self.tables[database, table] = {
            "DatabaseName": database,
            "Name": table,
            "Parameters": parameters,
            "TableType": "EXTERNAL_TABLE",
            "VersionId": "0",
        }

    def parameters(self, database: str, table: str) -> dict[str, str]:
        """Return the parameters of a table."""
        found: dict[str, str] = self.tables[database, table]["Parameters"]
        return found

    def lose_an_answer(self) -> None:
        """Make the next change, and then lose the connection."""

        def lost() -> None:
            self.after_a_change = _nothing
            raise _ServiceError("connection lost")

        self.after_a_change = lost

    def get_databases(self) -> dict[str, Any]:
        return {"DatabaseList": [*self.databases.values()]}

    def get_database(self, Name: str) -> dict[str, Any]:
        if Name not in self.databases:
            raise _MissingError
        return {"Database": self.databases[Name]}

    def create_database(self, DatabaseInput: dict[str, Any]) -> None:
        self.databases[DatabaseInput["Name"]] = DatabaseInput

    def get_tables(self, DatabaseName: str) -> dict[str, Any]:
        wanted = DatabaseName.lower()
        found = [its for (database, _), its in self.tables.items() if database == wanted]
        return {"TableList": found}

    def get_table(self, DatabaseName: str, Name: str) -> dict[str, Any]:
        if (DatabaseName, Name) not in self.tables:
            raise _MissingError
        return {"Table": deepcopy(self.tables[DatabaseName, Name])}

    def create_table(self, DatabaseName: str, TableInput: dict[str, Any]) -> None:
        if (DatabaseName, TableInput["Name"]) in self.tables:
            raise _ExistsError
        made = {**TableInput, "DatabaseName": DatabaseName, "VersionId": "0"}
        made["Name"] = made["Name"].lower()
        self.tables[DatabaseName, TableInput["Name"]] = made
        self.after_a_change()

    def delete_table(self, DatabaseName: str, Name: str) -> None:
        del self.tables[DatabaseName, Name]

    def update_table(
        self, DatabaseName: str, TableInput: dict[str, Any], SkipArchive: bool, VersionId: str
    ) -> None:
        self.before_a_change()
        found = self.tables[DatabaseName, TableInput["Name"]]
        if found["VersionId"] != VersionId:
            raise _ChangedError("another program changed the table")
        # As in AWS, what the request does not name is deleted.
        changed = {**TableInput, "DatabaseName": DatabaseName}
        self.tables[DatabaseName, TableInput["Name"]] = changed
        changed.update(VersionId=str(int(VersionId) + 1), UpdateTime=datetime.now(UTC))
        self.after_a_change()
