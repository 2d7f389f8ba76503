"""Writes unsorted rows to the change store of a Mixed table: inserts, and a delete of each key.

It is compared with a floor: pyarrow alone writes the same rows, at the compression level of the
change store.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.mixed_table import create_pair
from benchmarks.question import Question
from benchmarks.questions.keyed_write import shuffled_rows
from benchmarks.sample_rows import SCHEMA, read_rows
from lakeformat.files.parquet.dictionary_columns import pick_dictionary_columns

__all__ = ["QUESTION"]

ReadBack = Callable[[], pa.Table]
_ROW_GROUP_ROWS = 1 << 17
_OPTIONAL = [name for name in SCHEMA.names if name != "k"]


def _make(folder: Path, rows: int) -> None:
    shuffled = shuffled_rows(rows)
    with (
        pa.OSFile(str(folder / "rows.arrow"), "wb") as stream,
        pa.ipc.new_file(stream, shuffled.schema) as writer,
    ):
        writer.write_table(shuffled)


def _open(folder: Path) -> pa.Table:
    return read_rows(folder / "rows.arrow").combine_chunks()


def _ready_files(rows: pa.Table, folder: Path) -> Callable[[], ReadBack]:
    """Return a function that writes the inserts and the deletes to a durable file each, with
    pyarrow alone: the floor.
    """
    offsets = pa.array(np.arange(1, len(rows) + 1))
    inserts = rows.append_column("_file_offset", offsets)
    nulls = {name: pa.nulls(len(rows), rows[name].type) for name in _OPTIONAL}
    deletes = pa.table({"k": rows["k"], **nulls, "_file_offset": offsets})

    def work() -> ReadBack:
        for name, table in (("inserts", inserts), ("deletes", deletes)):
            _write_file(folder / f"{name}.parquet", table)
        return lambda: pq.read_table(folder / "inserts.parquet").select(SCHEMA.names)

    return work


def _write_file(path: Path, rows: pa.Table) -> None:
    with (
        pa.OSFile(str(path), "wb") as stream,
        pq.ParquetWriter(
            stream,
            rows.schema,
            compression="zstd",
            compression_level=1,
            use_dictionary=pick_dictionary_columns(rows),
            store_decimal_as_integer=True,
            write_page_checksum=True,
            store_schema=False,
        ) as writer,
    ):
        writer.write_table(rows, row_group_size=_ROW_GROUP_ROWS)
    with path.open("rb") as written:
        os.fsync(written.fileno())


def _upsert(rows: pa.Table, folder: Path) -> Callable[[], ReadBack]:
    """Return a function that calls ``write``, which includes the commit, on an existing empty
    table.
    """
    table = create_pair(folder)

    def work() -> ReadBack:
        table.write(rows)
        return lambda: table.scan().to_arrow()

    return work


def _by_key(read_back: ReadBack) -> list[pa.Array]:
    rows = read_back().sort_by("k").combine_chunks()
    return [column.chunk(0) for column in rows.columns]


QUESTION: Question[pa.Table, ReadBack] = Question(
    sentence="What does an upsert into a Mixed table cost beyond writing its inserts and deletes?",
    rows=1_000_000,
    make_data=_make,
    open_data=_open,
    candidates={"ready files": _ready_files, "table.write": _upsert},
    baseline="ready files",
    answer=_by_key,
    targets={"table.write": 0.6},
)
