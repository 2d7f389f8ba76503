"""Mixed tables of sample rows, with changes that are not merged into the base store.

``read_files`` reads the files of such a table with pyarrow alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import lakeformat as lake
from benchmarks.sample_rows import SCHEMA, SEED, sample_batches
from lakeformat.mixed.table import MixedTable

__all__ = [
    "CHANGED_PART",
    "Batches",
    "changed_rows",
    "create_pair",
    "data_files",
    "drain",
    "keyed_sum",
    "open_pair",
    "read_files",
    "write_pair",
]

CHANGED_PART = 5
"""One of every ``CHANGED_PART`` rows is changed after all rows were merged into the base store."""
_BATCH_ROWS = 1 << 17
Batches = Iterator[pa.RecordBatch]


def create_pair(folder: Path, properties: Mapping[str, str] | None = None) -> MixedTable:
    """Create an empty Mixed table with the sample columns and four nodes in each store."""
    catalog = lake.open_catalog(str(folder), format="iceberg")
    catalog.create_database("bench")
    made = catalog.create_table(
        "bench.t",
        SCHEMA,
        format="mixed",
        primary_key=["k"],
        options={"base.file-index.hash-bucket": "4", **(properties or {})},
    )
    assert isinstance(made, MixedTable)
    return made


def open_pair(folder: Path) -> MixedTable:
    """Open the table below a folder."""
    found = lake.open_table(str(folder / "bench/t"))
    assert isinstance(found, MixedTable)
    return found


def changed_rows(rows: int) -> pa.Table:
    """Return new values for one key in every ``CHANGED_PART``, unsorted."""
    every = pa.Table.from_batches(sample_batches(rows))
    order = np.random.default_rng(SEED).permutation(rows)[: rows // CHANGED_PART]
    chosen = every.take(pa.array(order)).combine_chunks()
    shift = np.random.default_rng(SEED + 1).permutation(len(chosen))
    values = chosen.take(pa.array(shift))
    return pa.table([chosen["k"], *values.columns[1:]], schema=SCHEMA).combine_chunks()


def write_pair(folder: Path, rows: int, properties: Mapping[str, str] | None = None) -> None:
    """Write rows, merge them into the base store, and write changes that remain in the change
    store.
    """
    table = create_pair(folder, properties)
    table.write(sample_batches(rows))
    table.compact(strategy="full")
    table.write(changed_rows(rows))


def data_files(table: MixedTable) -> list[Path]:
    """Return the files that a read of the table needs, those of the base store first."""
    splits = table.scan().splits()
    found = {
        each.path: each.in_change for split in splits for each in (*split.files, *split.deletes)
    }
    ordered = sorted(found, key=lambda path: (found[path], path))
    return [Path(each.removeprefix("file://")) for each in ordered]


def read_files(table: MixedTable) -> Callable[[], Batches]:
    """Return a function that reads every row of ``data_files`` with pyarrow alone, file by file."""

    def work() -> Batches:
        for path in data_files(table):
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches(_BATCH_ROWS):
                    yield batch.select(SCHEMA.names)

    return work


def drain(batches: Batches) -> None:
    """Read every batch."""
    for _ in batches:
        pass


def keyed_sum(batches: Batches) -> tuple[int, int]:
    """Return the number of distinct keys and their sum."""
    keys = np.unique(np.concatenate([batch.column("k").to_numpy() for batch in batches]))
    return len(keys), int(keys.sum())
