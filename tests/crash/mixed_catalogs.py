"""Catalogs of Mixed tables in a storage that dies: directories, or the rows of a SQL database."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakeformat.catalog.iceberg import IcebergCatalog
from lakeformat.catalog.iceberg.catalog_files import CatalogFiles
from lakeformat.catalog.iceberg.options import IcebergOptions
from lakeformat.catalog.iceberg.path import PathMetastore
from lakeformat.catalog.iceberg.sql import SqlMetastore
from lakeformat.catalog.names import TableName
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.storage import NO_ROOTS
from lakeformat.testing import CrashableStorage, Trial
from tests.crash.simulated import simulated
from tests.sampling import sampled_faults

COLUMNS = pa.schema([pa.field("id", pa.int64()), pa.field("v", pa.string())])


def path_catalog(storage: CrashableStorage) -> IcebergCatalog:
    world = simulated(len(storage.files()))
    return IcebergCatalog(PathMetastore(_files(storage), world), "wh", world)


def rows(**values: str) -> pa.Table:
    return pa.table([[int(each[1:]) for each in values], [*values.values()]], schema=COLUMNS)


class InMemory:
    """A storage that dies, with an address that a SQL database can name."""

    scheme = "memory"

    def __init__(self, storage: CrashableStorage) -> None:
        self._storage = storage

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    def uri(self, path: str) -> str:
        return f"memory://crash/{path.strip('/')}"


class Announced(SqlMetastore):
    """A SQL database of which each change is announced by a storage call, which may fail."""

    def rename_table(self, old: TableName, new: TableName) -> None:
        self._announce("rename")
        super().rename_table(old, new)

    def _forget(self, name: TableName, address: str | None) -> None:
        self._announce("forget")
        super()._forget(name, address)

    def name_first(self, name: TableName, address: str, metadata: TableMetadata) -> bool:
        self._announce("first")
        return super().name_first(name, address, metadata)

    def name_next(
        self, name: TableName, old: str, new: str, base: TableMetadata, metadata: TableMetadata
    ) -> bool:
        self._announce("next")
        return super().name_next(name, old, new, base, metadata)

    def _announce(self, step: str) -> None:
        assert self._files.storage is not None
        self._files.storage.make_directory(f"sql/{step}")


class Warehouse:
    """A storage with the catalog of its tables, as it is before each trial."""

    is_sql = False

    def __init__(self) -> None:
        self.start = CrashableStorage()

    def catalog(self, storage: CrashableStorage) -> IcebergCatalog:
        """Open the catalog as a new process does."""
        return path_catalog(storage)

    def restore(self) -> None:
        """Begin a trial."""

    def rows_of_catalog(self) -> bytes:
        """Return the content of the database of a catalog; nothing if it has none."""
        return b""

    def trials(self, scenario) -> Iterator[Trial[bool]]:
        """Run a scenario, a function of a catalog, into sampled faults; of the trials that left the
        same, yield the first.
        """
        seen = set()

        def run(storage: CrashableStorage, acknowledged: list[bool]) -> None:
            self.restore()
            scenario(self.catalog(storage))
            acknowledged.append(True)

        for trial in sampled_faults(run, start=self.start):
            files = frozenset(trial.run().reopened().files().items())
            if (left := hash((files, self.rows_of_catalog(), *trial.acknowledged))) not in seen:
                seen.add(left)
                yield trial


class SqlWarehouse(Warehouse):
    """A storage with a SQLite database, which is copied for each trial."""

    is_sql = True

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self._numbers = itertools.count()
        self._file = folder / "before.db"

    def keep(self) -> None:
        """Make the database as it is now the start of each trial."""
        self._before = self._file.read_bytes()

    def restore(self) -> None:
        self._file = self._folder / f"{next(self._numbers)}.db"
        self._file.write_bytes(self._before)

    def rows_of_catalog(self) -> bytes:
        return self._file.read_bytes()

    def catalog(self, storage: CrashableStorage) -> IcebergCatalog:
        world = simulated(len(storage.files()) + 100)
        options = IcebergOptions.of({"metastore": "sql", "uri": f"sqlite:///{self._file}"})
        metastore = Announced(options, _files(InMemory(storage)), world)
        return IcebergCatalog(metastore, "wh", world)


def _files(storage: Any) -> CatalogFiles:
    return CatalogFiles(storage, "wh", {}, NO_ROOTS)
