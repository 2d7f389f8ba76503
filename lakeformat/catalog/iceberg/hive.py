# SPDX-License-Identifier: Apache-2.0
"""The Hive metastore, whose protocol is Thrift."""

from __future__ import annotations

from contextlib import suppress

from hive_metastore.ThriftHiveMetastore import Client
from hive_metastore.ttypes import (
    AlreadyExistsException,
    CheckLockRequest,
    EnvironmentContext,
    FieldSchema,
    InvalidOperationException,
    LockState,
    MetaException,
    ShowLocksRequest,
    UnlockRequest,
)
from hive_metastore.ttypes import Table as HiveTable
from pyiceberg.catalog.hive import HiveCatalog, _construct_hive_storage_descriptor
from thrift.Thrift import TException
from thrift.transport.TTransport import TTransportException

from lakeformat.catalog.iceberg.catalog_files import Answer, CatalogFiles
from lakeformat.catalog.iceberg.client_named_files import ClientNamedFilesMetastore, Sent
from lakeformat.catalog.iceberg.client_schema import client_schema
from lakeformat.catalog.iceberg.hive_client import HiveClient, timeout_seconds
from lakeformat.catalog.iceberg.options import IcebergOptions
from lakeformat.catalog.iceberg.table_parameters import (
    first_parameters,
    metadata_file_in,
    parameters_after,
)
from lakeformat.catalog.names import TableName
from lakeformat.environment import Environment
from lakeformat.errors import LockUnavailableError, UnsupportedError
from lakeformat.iceberg.metadata.table_metadata import TableMetadata

__all__ = ["HiveMetastore"]

_LOCKED_MILLIS = 60_000
"""The number of milliseconds after which a writer with the lock no longer commits.

The metastore releases a lock after 300 seconds, and another writer may then have it.
"""
_LOCK_WAIT = {"least_millis": 50, "longest_millis": 2000}
_LOCK_ATTEMPTS = 40
"""The number of times that a writer checks for the lock. The pauses add up to more than a
minute.
"""


class HiveMetastore(ClientNamedFilesMetastore):
    """The databases and Iceberg tables of a Hive metastore."""

    def __init__(
        self, options: IcebergOptions, files: CatalogFiles, environment: Environment
    ) -> None:
        super().__init__(options, files, environment)
        # Raises for a wrong option as soon as the catalog is opened.
        timeout_seconds(options.client)

    def rename_table(self, old: TableName, new: TableName) -> None:
        """Rename a table; its files are not moved."""

        def rename(client: HiveCatalog) -> None:
            with _opened(client) as opened:
                table = _table(client, opened, old)
                table.dbName, table.tableName = new.database, new.table
                _alter(opened, old, table, {})

        self._ask(f"rename table '{old}'", rename)

    @property
    def _client(self) -> HiveCatalog:
        """A new client for each request, because a thread would close a shared connection that
        another thread still uses.
        """
        return self._connect()

    def _connect(self) -> HiveCatalog:
        return HiveClient("lake", **{**self._options.client, "uri": self._options.uri})

    def _find(self, client: HiveCatalog, name: TableName, doing: str) -> Answer:
        with _opened(client) as opened:
            return Answer(metadata_file_in(_table(client, opened, name).parameters, name))

    def _forget(self, name: TableName, address: str | None) -> None:
        def drop(client: HiveCatalog) -> None:
            with _opened(client) as opened:
                opened.drop_table(dbname=name.database, name=name.table, deleteData=False)

        self._ask(f"drop table '{name}'", drop)

    def name_first(self, name: TableName, address: str, metadata: TableMetadata) -> bool:
        schema = client_schema(metadata, f"a Hive metastore needs the columns of table '{name}'")

        def create(client: HiveCatalog, sent: Sent) -> bool:
            now = self._environment.now_millis() // 1000
            table = HiveTable(
                dbName=name.database,
                tableName=name.table,
                createTime=now,
                lastAccessTime=now,
                sd=_construct_hive_storage_descriptor(schema, metadata.location, self._is_old),
                tableType="EXTERNAL_TABLE",
                parameters=first_parameters(address, metadata),
            )
            with _opened(client) as opened:
                sent.is_sent = True
                try:
                    opened.create_table(table)
                except AlreadyExistsException:
                    # A metastore or a proxy may repeat a request that made the table.
                    found = _table(client, opened, name).parameters or {}
                    return bool(found.get("metadata_location") == address)
            return True

        return self._send(f"create table '{name}'", name, address, create)

    @property
    def _is_old(self) -> bool:
        return self._options.client.get("hive.hive2-compatible", "").lower() == "true"

    def _columns(self, metadata: TableMetadata, before: list[FieldSchema]) -> list[FieldSchema]:
        """Return the columns of ``metadata`` for Hive, or ``before`` if PyIceberg does not support
        the type of a column.
        """
        try:
            schema = client_schema(metadata, "a Hive metastore needs the new columns")
        except UnsupportedError:
            return before
        described = _construct_hive_storage_descriptor(schema, metadata.location, self._is_old)
        columns: list[FieldSchema] = described.cols
        return columns

    def name_next(
        self, name: TableName, old: str, new: str, base: TableMetadata, metadata: TableMetadata
    ) -> bool:
        def publish(client: HiveCatalog, sent: Sent) -> bool:
            with (
                _opened(client) as opened,
                _Lock(client, opened, name, self._environment),
            ):
                began = self._environment.now_millis()
                table = _table(client, opened, name)
                if metadata_file_in(table.parameters, name) != old:
                    return False
                table.parameters = parameters_after(table.parameters, new, base, metadata)
                if base.schema != metadata.schema and table.sd is not None:
                    table.sd.cols = self._columns(metadata, table.sd.cols)
                if self._environment.now_millis() - began > _LOCKED_MILLIS:
                    return False  # the process slept: another writer may have the lock now
                sent.is_sent = True
                try:
                    # Newer metastores also compare the file name themselves.
                    expected = {"expected_parameter_key": "metadata_location"}
                    expected["expected_parameter_value"] = old
                    _alter(opened, name, table, expected)
                except (InvalidOperationException, MetaException):
                    found = metadata_file_in(_table(client, opened, name).parameters, name)
                    sent.is_sent = found == new
                    if found == old:
                        raise
                    return sent.is_sent
            return True

        return self._send(f"publish table '{name}'", name, new, publish)


def _opened(client: HiveCatalog) -> Client:
    """Return a new connection: each thread needs its own."""
    return client._create_hive_client(client.properties)


def _table(client: HiveCatalog, opened: Client, name: TableName) -> HiveTable:
    return client._get_hive_table(opened, name.database, name.table)


def _alter(opened: Client, name: TableName, table: HiveTable, more: dict[str, str]) -> None:
    opened.alter_table_with_environment_context(
        dbname=name.database,
        tbl_name=name.table,
        new_tbl=table,
        environment_context=EnvironmentContext({"DO_NOT_UPDATE_STATS": "true", **more}),
    )


class _Lock:
    """The lock of a table in the metastore, which Java and PyIceberg also take for a commit.

    The metastore deletes the lock of a process that died, but only after some minutes.

    This is a class and not a generator, because a generator cannot pass on an exception of Thrift.
    """

    def __init__(
        self, client: HiveCatalog, opened: Client, name: TableName, environment: Environment
    ) -> None:
        self._opened = opened
        self._name = name
        self._request = client._create_lock_request(name.database, name.table)
        self._environment = environment

    def __enter__(self) -> None:
        """Take the lock. Raise ``LockUnavailableError`` if another program still holds it after
        more than a minute.
        """
        lock = self._opened.lock(self._request)
        self._id = lock.lockid
        try:
            for attempt in range(1, _LOCK_ATTEMPTS):
                if lock.state != LockState.WAITING:
                    break
                self._environment.back_off(attempt, **_LOCK_WAIT)
                lock = self._opened.check_lock(CheckLockRequest(lockid=self._id))
        except BaseException:
            # A request that waits for the lock keeps later ones waiting.
            with suppress(TException):
                self._opened.unlock(UnlockRequest(lockid=self._id))
            raise
        if lock.state == LockState.ACQUIRED:
            return
        holder = self._holder()
        self._opened.unlock(UnlockRequest(lockid=self._id))
        raise LockUnavailableError(
            f"table '{self._name}' is locked in the Hive metastore by {holder}, for longer than a "
            "commit takes. Nothing was published. If that program runs, retry later. If it was "
            "killed, the metastore deletes the lock after the time in its setting "
            f"'metastore.txn.timeout', 300 seconds by default: then retry. SHOW LOCKS "
            f"{self._name} in Hive lists the lock"
        )

    def _holder(self) -> str:
        wanted = ShowLocksRequest(dbname=self._name.database, tablename=self._name.table)
        with suppress(TException):  # not every service of this protocol lists locks
            for each in self._opened.show_locks(wanted).locks:
                if each.state == LockState.ACQUIRED:
                    return f"user {each.user!r} on {each.hostname} (lock {each.lockid})"
        return "another program"

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # If an answer was lost, the metastore may still make the change, and the connection cannot
        # be used again. The lock is then kept until it expires, so that no other writer interferes.
        if kind is None or not issubclass(kind, TTransportException):
            self._opened.unlock(UnlockRequest(lockid=self._id))
