"""Primary-key tables of sample rows in runs that overlap, and reads of their files with pyarrow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import lakeformat as lake
from benchmarks.key_runs import Numbers, scattered
from benchmarks.sample_rows import sample_batches
from lakeformat.files.data_file import BATCH_ROWS

__all__ = [
    "Batches",
    "KeyColumns",
    "distinct_keys",
    "drain",
    "keyed_files",
    "open_keyed",
    "write_runs",
]

Batches: TypeAlias = Iterator[pa.RecordBatch]

KeyColumns: TypeAlias = Callable[[Numbers], dict[str, pa.Array]]
"""Returns the columns of a primary key for ascending numbers; the key ascends with them."""

NAME = "bench.keyed"
RUNS = 5
VALUES = ("v", "s", "ts", "status", "amt")


def write_runs(folder: Path, rows: int, key: KeyColumns) -> None:
    """Write five commits, each a sorted run; in all but the first, half of the keys are new and
    half are updates.
    """
    catalog = lake.open_catalog(str(folder))
    catalog.create_database("bench")
    table: lake.Table | None = None
    for keys in scattered(RUNS, again=0.5)(rows):
        columns = key(keys)
        values = pa.Table.from_batches(sample_batches(len(keys))).select(VALUES)
        run = pa.table({**columns, **dict(zip(VALUES, values.columns, strict=True))})
        if table is None:
            options = {"bucket": "1", "target-file-size": "1 gb"}
            table = catalog.create_table(NAME, run.schema, primary_key=[*columns], options=options)
        table.write(run)


def open_keyed(folder: Path, **options: str) -> lake.Table:
    """Open the table that ``write_runs`` wrote, with other options. In their names ``_`` stands for
    a hyphen, and ``__`` for a dot.
    """
    table = lake.open_catalog(str(folder)).table(NAME)
    named = {name.replace("__", ".").replace("_", "-"): text for name, text in options.items()}
    schema = replace(table.schema, options={**table.schema.options, **named})
    return lake.Table(replace(table._handle, schema=schema)) if options else table


def keyed_files(folder: Path, *, verified: bool = False) -> Callable[[], Batches]:
    """Return a function that reads all rows of the table's files with pyarrow alone. It reads the
    columns of the table, without the system columns.

    If ``verified`` is True, it compares the checksums of pages, as the library always does.
    """
    files = sorted(folder.glob("**/bucket-0/*.parquet"))
    columns = open_keyed(folder).schema.column_names
    return lambda: (
        batch
        for file in files
        for batch in pq.ParquetFile(file, page_checksum_verification=verified).iter_batches(
            BATCH_ROWS, columns=columns
        )
    )


def distinct_keys(batches: Batches, names: Sequence[str] = ("k",)) -> tuple[int, int]:
    """Return the number of different keys, and the total length of the values of the first key
    column as texts.
    """
    rows = pa.Table.from_batches(batch.select(names) for batch in batches)
    keys = rows.group_by(list(names)).aggregate([])
    return keys.num_rows, int(pc.sum(pc.binary_length(keys[names[0]].cast(pa.string()))).as_py())


def drain(batches: Batches) -> None:
    """Read every batch and keep none."""
    for _ in batches:
        pass
