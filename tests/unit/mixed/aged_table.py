"""A Mixed table whose writers and readers have a clock that a test moves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

import lakeformat as lake
from lakeformat.environment import Environment
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.write.file_changes import ChangedFiles
from lakeformat.iceberg.write.publish import publish_change
from lakeformat.mixed.write.write_changes import change_handle
from tests.unit.mixed.edited_stores import edit

__all__ = ["COLUMNS", "HOUR", "AgedTable"]

COLUMNS = pa.schema([("k", pa.int64()), ("p", pa.string()), ("v", pa.string())])
HOUR = 60 * 60 * 1000
_START = 1_700_000_000_000


@dataclass
class AgedTable:
    """The table ``db.t`` below a directory, partitioned by ``p``; each write takes a minute."""

    root: Path
    properties: Mapping[str, str] = field(default_factory=dict)
    now: int = _START

    def __post_init__(self) -> None:
        catalog = self.catalog()
        catalog.create_database("db")
        made = catalog.create_table(
            "db.t",
            COLUMNS,
            format="mixed",
            primary_key=["k", "p"],
            partition_by=["p"],
            options={"change.file-index.hash-bucket": "1", "base.file-index.hash-bucket": "1"},
        )
        assert isinstance(made, lake.MixedTable)
        self.table = made
        self.set(self.properties)

    def set(self, properties: Mapping[str, str], store: str = "t") -> None:
        """Change properties of one store."""
        edit(self.root / "db" / store, properties=dict(properties))
        self.table = self.catalog().table("db.t")

    def catalog(self) -> Any:
        world = Environment(now_millis=lambda: self.now)
        return lake.open_catalog(str(self.root), format="iceberg", environment=world)

    def write(self, *rows: tuple[int, str, str], kind: str = "+U") -> None:
        keys, parts, values = zip(*rows, strict=True)
        data = pa.table([keys, parts, values], schema=COLUMNS)
        self.table.write(data, kinds=[kind] * len(rows))
        self.now += 60_000

    def merge(self) -> Any:
        report = self.table.compact(strategy="full", executor="serial")
        self.now += 60_000
        return report

    def begin(self) -> int:
        """Begin a batch as Amoro does, with an empty commit; return its transaction."""
        handle: TableHandle = change_handle(self.table._pair)
        made = publish_change(
            handle,
            ChangedFiles(is_recorded=True),
            commit=None,
            properties={"tx.begin.signature": "batch"},
        )
        self.now += 60_000
        assert made.snapshot is not None
        return made.snapshot.sequence_number

    def rows(self) -> list[tuple[Any, ...]]:
        return sorted(tuple(each.values()) for each in self.table.scan().to_arrow().to_pylist())

    def files(self) -> set[Path]:
        return {path for path in self.root.rglob("*") if path.is_file()}

    def change_files(self) -> list[int]:
        """Return the sequence numbers of the files that the change store lists."""
        found = self.table.system_table("files").scan().to_arrow().to_pylist()
        return sorted({e["sequence_number"] for e in found if e["store"] == "change"})
