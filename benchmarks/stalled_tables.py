"""Tables that are upserted and never optimized: a Mixed table, and Iceberg with equality deletes.

``python -m benchmarks.stalled_tables LOCATION`` reads all rows of a table and prints by how many
bytes the peak memory of this process grew.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import lakeformat as lake
from benchmarks.iceberg_metadata import Manifest, write_iceberg_table
from benchmarks.peak_memory import ROOT, forget_peak, peak_bytes

__all__ = [
    "EqualityTable",
    "Numbers",
    "Sums",
    "changes_of",
    "create_mixed",
    "read_peak_bytes",
    "rows_of",
    "sums_of",
    "time_read",
]

COLUMNS = {"k": "long", "v": "long"}
SCHEMA = pa.schema([pa.field(name, pa.int64()) for name in COLUMNS])
Numbers = npt.NDArray[np.int64]
Sums = tuple[int, int]
"""The number of rows, and the sum of their values."""


@dataclass
class EqualityTable:
    """An Iceberg table. Each upsert adds a data file and a file of equality deletes with the same
    keys.
    """

    folder: Path
    manifests: list[Manifest] = field(default_factory=list)

    def upsert(self, keys: Numbers, values: Numbers) -> None:
        number = len(self.manifests) // 2 + 1
        self.folder.mkdir(exist_ok=True)
        data = self._file(f"data-{number}", {"k": keys, "v": values})
        deletes = {**self._file(f"deletes-{number}", {"k": keys}), "content": 2}
        self.manifests.append(Manifest([data], sequence_number=number))
        listed = [{**deletes, "equality_ids": [1]}]
        self.manifests.append(Manifest(listed, sequence_number=number, is_deletes=True))

    def published(self) -> Any:
        write_iceberg_table(self.folder, COLUMNS, (), self.manifests)
        return lake.open_table(str(self.folder))

    def _file(self, name: str, columns: dict[str, Numbers]) -> dict[str, object]:
        path = self.folder / f"{name}.parquet"
        fields = [
            pa.field(column, pa.int64(), metadata={"PARQUET:field_id": str(number)})
            for number, column in enumerate(columns, 1)
        ]
        pq.write_table(pa.table([*columns.values()], schema=pa.schema(fields)), path)
        return {
            "file_path": f"file://{path}",
            "record_count": len(columns["k"]),
            "file_size_in_bytes": path.stat().st_size,
        }


def create_mixed(folder: Path, keys: Numbers, nodes: int, change_nodes: int | None = None) -> Any:
    """Create a Mixed table with rows of these keys in its base store.

    Base files are divided into ``nodes`` hash buckets, and change files into ``change_nodes``, by
    default the same number.
    """
    catalog = lake.open_catalog(str(folder), format="iceberg")
    catalog.create_database("bench")
    options = {
        "base.file-index.hash-bucket": str(nodes),
        "change.file-index.hash-bucket": str(change_nodes or nodes),
    }
    table = catalog.create_table(
        "bench.t", SCHEMA, format="mixed", primary_key=["k"], options=options
    )
    table.write(rows_of(keys, keys * 7))
    table.compact(strategy="full")
    return table


def rows_of(keys: Numbers, values: Numbers) -> pa.Table:
    """Return the rows with these keys and values."""
    return pa.table([keys, values], schema=SCHEMA)


def changes_of(
    keys: Numbers, commits: int, rows_per_commit: int, tables: tuple[Any, EqualityTable]
) -> Iterator[int]:
    """Upsert random keys into both tables, ``commits`` times.

    Yield the number of commits so far: 0 before the first commit, then the number after each
    quarter of ``commits``.
    """
    random, (mixed, plain) = np.random.default_rng(7), tables
    for number in range(commits + 1):
        if number % max(commits // 4, 1) == 0:
            yield number
        if number == commits:
            return
        changed = random.choice(keys, rows_per_commit, replace=False)
        values = changed * 7 + number + 1
        mixed.write(rows_of(changed, values))
        plain.upsert(changed, values)


def time_read(batches: Iterator[pa.RecordBatch]) -> tuple[float, Sums]:
    """Return the CPU seconds of a read, and the sums of its rows."""
    began = process_time()
    found = sums_of(batches)
    return process_time() - began, found


def sums_of(batches: Iterator[pa.RecordBatch]) -> Sums:
    """Return the sums of the rows; each batch is read, and none is kept."""
    rows = values = 0
    for batch in batches:
        rows += batch.num_rows
        values += pc.sum(batch.column("v")).as_py() or 0
    return rows, values


def read_peak_bytes(table: Any) -> int:
    """Return by how many bytes the peak memory of a fresh process grows in a read of all rows."""
    command = [sys.executable, "-m", "benchmarks.stalled_tables", table.location]
    child = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return int(child.stdout)


def peak_here(location: str) -> int:
    table = lake.open_table(location)
    forget_peak()
    before = peak_bytes()
    sums_of(table.scan().to_batches())
    return peak_bytes() - before


if __name__ == "__main__":
    print(peak_here(sys.argv[1]))
