"""Writes unsorted rows to a primary-key table of four buckets. The write hashes the rows to find
their buckets, sorts them, and commits.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import lakeformat as lake
from benchmarks.question import Question
from benchmarks.sample_rows import SCHEMA, SEED, read_rows, sample_batches
from lakeformat.files.parquet.dictionary_columns import pick_dictionary_columns
from lakeformat.paimon.bucketing import bucket_function
from lakeformat.paimon.datafile.rolling_writer import ROW_GROUP_ROWS
from lakeformat.types.types import TypeName, atomic

__all__ = ["QUESTION", "create_table", "shuffled_rows"]

BUCKETS = 4

ReadBack = Callable[[], pa.Table]


@dataclass(frozen=True, slots=True)
class Rows:
    """The same rows in two forms: unsorted, as from a user, and sorted as in the files of the
    buckets.
    """

    shuffled: pa.Table
    runs: list[pa.Table]


def shuffled_rows(rows: int) -> pa.Table:
    """Return the sample rows, each key once, unsorted."""
    order = np.random.default_rng(SEED).permutation(rows)
    return pa.Table.from_batches(sample_batches(rows)).take(pa.array(order)).combine_chunks()


def sorted_runs(rows: pa.Table) -> list[pa.Table]:
    """Return the rows of each bucket's file."""
    buckets = bucket_function("default", [atomic(TypeName.BIGINT)], BUCKETS)
    places = buckets([rows["k"].combine_chunks()])
    runs = []
    for bucket in range(BUCKETS):
        run = rows.filter(pa.array(places == bucket))
        columns = {
            "_KEY_k": run["k"],
            "_SEQUENCE_NUMBER": pa.array(np.arange(run.num_rows)),
            "_VALUE_KIND": pa.array(np.zeros(run.num_rows, np.int8)),
            **dict(zip(run.column_names, run.columns, strict=True)),
        }
        runs.append(pa.table(columns).sort_by("k").combine_chunks())
    return runs


def make_rows(folder: Path, rows: int) -> None:
    """Write both forms to Arrow files."""
    shuffled = shuffled_rows(rows)
    for name, table in [("rows", shuffled), *enumerate(sorted_runs(shuffled))]:
        path = str(folder / f"{name}.arrow")
        with pa.OSFile(path, "wb") as stream, pa.ipc.new_file(stream, table.schema) as writer:
            writer.write_table(table)


def open_rows(folder: Path) -> Rows:
    """Load both forms into memory."""
    runs = [read_rows(folder / f"{bucket}.arrow") for bucket in range(BUCKETS)]
    return Rows(read_rows(folder / "rows.arrow").combine_chunks(), runs)


def ready_runs(rows: Rows, folder: Path) -> Callable[[], ReadBack]:
    """Return a function that writes a durable file for each bucket, with pyarrow alone: the floor.
    The rows are already sorted.
    """

    def work() -> ReadBack:
        paths = [folder / f"{bucket}.parquet" for bucket in range(BUCKETS)]
        for path, run in zip(paths, rows.runs, strict=True):
            _write_file(path, run)
        return lambda: pa.concat_tables(map(pq.read_table, paths)).select(SCHEMA.names)

    return work


def _write_file(path: Path, run: pa.Table) -> None:
    with (
        pa.OSFile(str(path), "wb") as stream,
        pq.ParquetWriter(
            stream,
            run.schema,
            compression="zstd",
            compression_level=1,
            use_dictionary=pick_dictionary_columns(run),
            store_decimal_as_integer=True,
            write_page_checksum=True,
            store_schema=False,
        ) as writer,
    ):
        writer.write_table(run, row_group_size=ROW_GROUP_ROWS)
    with path.open("rb") as written:
        os.fsync(written.fileno())


def create_table(catalog: lake.Catalog, name: str) -> lake.Table:
    """Create an empty table for the rows."""
    catalog.create_database("bench", exist_ok=True)
    return catalog.create_table(name, SCHEMA, primary_key=["k"], options={"bucket": str(BUCKETS)})


def table_write(rows: Rows, folder: Path) -> Callable[[], ReadBack]:
    """Return a function that calls ``write``, which includes the commit, on an existing empty
    table.
    """
    table = create_table(lake.open_catalog(str(folder)), "bench.keyed")

    def work() -> ReadBack:
        table.write(rows.shuffled)
        return lambda: table.scan().to_arrow()

    return work


def by_key(read_back: ReadBack) -> list[pa.Array]:
    """Return the rows sorted by key, to compare them independently of their files."""
    rows = read_back().sort_by("k").combine_chunks()
    return [column.chunk(0) for column in rows.columns]


QUESTION: Question[Rows, ReadBack] = Question(
    sentence="What does writing unsorted rows to a keyed table cost beyond writing sorted files?",
    rows=1_000_000,
    make_data=make_rows,
    open_data=open_rows,
    candidates={"ready-sorted runs": ready_runs, "table.write": table_write},
    baseline="ready-sorted runs",
    answer=by_key,
    targets={"table.write": 0.6},
)
