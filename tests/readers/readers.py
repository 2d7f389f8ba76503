"""Other readers of Iceberg tables, asked from the tests for all rows of a table.

PyIceberg is installed with the project. The remaining ones are one process in an environment of
their own, which answers many requests.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
from pyiceberg.table import StaticTable

import lakeformat as lake
from tests.json_process import JsonProcess

__all__ = ["IN_OWN_ENVIRONMENT", "Reader", "asked", "pyiceberg", "rows_of", "running_worker"]

IN_OWN_ENVIRONMENT = ("DuckDB", "Iceberg-Rust", "ClickHouse")
_WORKER = Path(__file__).with_name("readers_worker.py")
_LONGEST_REQUEST_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Reader:
    """A reader by its name, and how it reads a table from its newest metadata file."""

    name: str
    read_file: Callable[[str, int | None], pa.Table]

    def read(self, table: lake.IcebergTable, snapshot: int | None = None) -> list[tuple[Any, ...]]:
        """All rows of a table, now or at a snapshot, in the order of ``rows_of``."""
        return rows_of(self.read_arrow(table, snapshot))

    def read_arrow(self, table: lake.IcebergTable, snapshot: int | None = None) -> pa.Table:
        """All rows of a table, with the types that this library reads.

        The readers have types of their own for the same values: views of strings, large lists, in
        DuckDB texts for UUIDs, in ClickHouse the time zone UTC for timestamps without one.
        """
        log = table.system_table("metadata_log_entries").scan().to_arrow()
        newest = log["file"].to_pylist()[-1].removeprefix("file://")
        wanted = table.scan(snapshot=snapshot).to_arrow().schema
        found = self.read_file(newest, snapshot)
        columns = [_converted(found[field.name], field.type) for field in wanted]
        return pa.Table.from_arrays(columns, schema=wanted)


def _converted(values: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_fixed_size_binary(kind) and pa.types.is_string(values.type):
        found = [None if each is None else UUID(each).bytes for each in values.to_pylist()]
        return pa.chunked_array([found], kind)
    return values.cast(kind)


def rows_of(rows: pa.Table) -> list[tuple[Any, ...]]:
    """The rows in an order of their own: readers have different ones."""
    return sorted((tuple(row.values()) for row in rows.to_pylist()), key=repr)


@contextmanager
def running_worker(python: Path, folder: Path) -> Iterator[JsonProcess]:
    """Start the readers with their own interpreter; they end with the block.

    They run in ``folder``, because ClickHouse reads no file outside of its working directory.
    """
    command = [str(python), "-I", str(_WORKER)]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, encoding="utf-8", cwd=folder
    ) as process:
        yield JsonProcess(process, "the process of readers", _LONGEST_REQUEST_SECONDS)


def pyiceberg() -> Reader:
    """PyIceberg in this process."""

    def read_file(metadata: str, snapshot: int | None) -> pa.Table:
        found: pa.Table = StaticTable.from_metadata(metadata).scan(snapshot_id=snapshot).to_arrow()
        return found

    return Reader("PyIceberg", read_file)


def asked(worker: JsonProcess, name: str, exchange: Path) -> Reader:
    """A reader of the other process; its rows travel in a file."""

    def read_file(metadata: str, snapshot: int | None) -> pa.Table:
        worker.call(name, metadata=metadata, into=str(exchange), snapshot=snapshot)
        with pa.OSFile(str(exchange), "rb") as source:
            return pa.ipc.open_file(source).read_all()

    return Reader(name, read_file)
