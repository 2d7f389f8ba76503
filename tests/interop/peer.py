"""pypaimon, the reference implementation in Python, asked from the tests.

It pins an older pyarrow, so it lives in an environment of its own and is one process that
answers many requests: starting it takes a second, a request a few milliseconds.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.json_process import JsonProcess

__all__ = ["Peer", "running_worker"]

WORKER = Path(__file__).with_name("pypaimon_worker.py")
LONGEST_REQUEST_SECONDS = 60


@contextmanager
def running_worker(python: Path) -> Iterator[JsonProcess]:
    """Start pypaimon with its own interpreter; it ends with the block."""
    command = [str(python), "-I", str(WORKER)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, encoding="utf-8") as process:
        yield JsonProcess(process, "pypaimon", LONGEST_REQUEST_SECONDS)


@dataclass(frozen=True, slots=True)
class Peer:
    """pypaimon with one warehouse opened; rows go through files in ``exchange``."""

    worker: JsonProcess
    warehouse: Path
    exchange: Path
    options: dict[str, str] = field(default_factory=dict)
    """Options of the catalog, besides the warehouse."""

    def create_table(
        self,
        table: str,
        schema: pa.Schema,
        options: dict[str, str] | None = None,
        *,
        primary_key: Sequence[str] = (),
        partition_by: Sequence[str] = (),
    ) -> None:
        """Make a table, and its database if needed."""
        self._call(
            "create_table",
            table=table,
            columns=self._file(schema.empty_table()),
            options=options or {},
            primary_keys=list(primary_key),
            partition_keys=list(partition_by),
        )

    def write(self, table: str, rows: pa.Table) -> None:
        """Append rows in one commit."""
        self._call("write_rows", table=table, rows=self._file(rows))

    def read(
        self,
        table: str,
        *,
        where_equal: tuple[str, Any] | None = None,
        snapshot: int | None = None,
        tag: str | None = None,
    ) -> pa.Table:
        """All rows, or those where one column has one value; now, or at a snapshot or tag."""
        path = self._new_path()
        how = {"where_equal": where_equal, "snapshot": snapshot, "tag": tag}
        self._call("read_rows", table=table, into=str(path), **how)
        with pa.OSFile(str(path), "rb") as source:
            return pa.ipc.open_file(source).read_all()

    def change_columns(
        self, table: str, *, drop: list[str], rename: dict[str, str], add: list[str]
    ) -> None:
        """Make a new schema version; what is added is an INT."""
        self._call("change_columns", table=table, drop=drop, rename=rename, add=add)

    def describe(self, table: str) -> dict[str, Any]:
        """Columns, comment, options and newest snapshot, as pypaimon understands them."""
        found = self._call("describe_table", table=table)
        assert isinstance(found, dict)
        return found

    def list_tables(self, database: str) -> list[str]:
        """The tables of a database, by name."""
        return list(self._call("list_tables", database=database))

    def _call(self, verb: str, **arguments: Any) -> Any:
        catalog = {"warehouse": str(self.warehouse), **self.options}
        return self.worker.call(verb, catalog=catalog, **arguments)

    def _file(self, rows: pa.Table) -> str:
        path = str(self._new_path())
        with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, rows.schema) as file:
            file.write_table(rows)
        return path

    def _new_path(self) -> Path:
        paths = (self.exchange / f"{number}.arrow" for number in count())
        return next(path for path in paths if not path.exists())
