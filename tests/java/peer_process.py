"""The released Java Paimon, asked from the tests: one JVM that answers many requests.

Starting it takes a second or two, a request some ten milliseconds. Rows travel as JSON, each value
in the form that ``wire.py`` describes.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakeformat.types.type_text import field_to_json, parse_type, type_to_json
from lakeformat.types.types import DataField
from tests.java.wire import json_rows
from tests.json_process import JsonProcess

__all__ = ["JavaPeer", "ReadRows", "running_java"]

LONGEST_REQUEST_SECONDS = 120

SMALL_BUFFERS = {"write-buffer-size": "2 mb", "page-size": "16 kb"}
"""Java allocates the whole buffer, 256 MB, for the few rows of a test."""

ColumnTexts = Sequence[tuple[str, str]]


@contextmanager
def running_java(
    java: str, classpath: str, scratch: Path, zone: str = "UTC"
) -> Iterator[JsonProcess]:
    """Start the peer, in UTC as a server is; it ends with the block and spills into ``scratch``."""
    settings = ["-Xmx1g", f"-Duser.timezone={zone}", f"-Djava.io.tmpdir={scratch}"]
    command = [java, *settings, "-cp", classpath, "Peer"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, encoding="utf-8") as process:
        yield JsonProcess(process, "Java", LONGEST_REQUEST_SECONDS)


@dataclass(frozen=True, slots=True)
class ReadRows:
    """The rows that Java read: columns in table order, and the number of splits of its plan."""

    columns: list[str]
    rows: list[list[Any]]
    splits: int

    def column(self, name: str) -> list[Any]:
        """One column's values, sorted."""
        position = self.columns.index(name)
        return sorted(row[position] for row in self.rows)


@dataclass(frozen=True, slots=True)
class JavaPeer:
    """Java's view of one warehouse."""

    process: JsonProcess
    warehouse: Path
    catalog: Mapping[str, str] = field(default_factory=dict)
    """The options of a catalog that is not the directories of the warehouse."""

    def create_table(
        self,
        table: str,
        columns: ColumnTexts,
        options: Mapping[str, str] | None = None,
        *,
        partition_keys: Sequence[str] = (),
        primary_keys: Sequence[str] = (),
    ) -> None:
        """Make a table, and its database if needed."""
        fields = (DataField(n, name, parse_type(t)) for n, (name, t) in enumerate(columns))
        self.call(
            "create_table",
            table=table,
            columns=[field_to_json(each) for each in fields],
            options=dict(options or {}),
            partition_keys=list(partition_keys),
            primary_keys=list(primary_keys),
        )

    def alter_table(self, table: str, *changes: Sequence[Any]) -> None:
        """Change the schema: ``("add", "n", "INT")``, ``("rename", "n", "m")`` and so on."""
        typed = ("add", "retype")
        self.call(
            "alter_table",
            table=table,
            changes=[
                [*change[:2], type_to_json(parse_type(change[2]))]
                if change[0] in typed
                else list(change)
                for change in changes
            ],
        )

    def write(
        self,
        table: str,
        rows: pa.Table,
        *,
        kinds: Sequence[str] | None = None,
        buckets: Sequence[int] | None = None,
        options: Mapping[str, str] | None = None,
        overwrite: bool = False,
    ) -> None:
        """Write rows in one commit, each with its kind (``+I``, ``+U``, ``-D``)."""
        self.call(
            "write",
            table=table,
            rows=json_rows(rows),
            kinds=kinds,
            buckets=buckets,
            options={**SMALL_BUFFERS, **(options or {})},
            overwrite=overwrite,
        )

    def read(
        self,
        table: str,
        *,
        where: tuple[str, str, Any] | None = None,
        options: Mapping[str, str] | None = None,
    ) -> ReadRows:
        """Read all rows, or those that ``where`` selects by comparing a column with a value."""
        found = self.call("read", table=table, where=where, options=dict(options or {}))
        assert set(found["kinds"]) <= {"+I", "+U"}
        return ReadRows(found["columns"], found["rows"], found["splits"])

    def stream(self, table: str, start: int) -> list[list[tuple[str, list[Any]]]]:
        """Return the changes of a streaming read from a snapshot on: kinds and values."""
        found = self.call("stream", table=table, options={}, **{"from": start})
        return [[(kind, values) for kind, values in rows] for rows in found]

    def call(self, verb: str, **arguments: Any) -> Any:
        """Any verb of peer/Peer.java."""
        place = {"warehouse": str(self.warehouse), "catalog": dict(self.catalog)}
        return self.process.call(verb, **place, **arguments)
