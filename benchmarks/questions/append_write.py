"""Writing an append table, from rows in memory to the committed snapshot."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.question import Question
from benchmarks.sample_rows import read_rows, write_rows
from benchmarks.sample_table import create_table
from lakeformat.paimon.datafile.rolling_writer import ROW_GROUP_ROWS

__all__ = ["QUESTION"]

ReadBack = Callable[[], pa.Table]


def plain_parquet(
    rows: pa.Table, folder: Path, *, dictionary_columns: bool | list[str]
) -> Callable[[], ReadBack]:
    """Return a function that writes one durable file with pyarrow alone, with the row groups and
    the compression of a table.
    """
    path = folder / "plain.parquet"

    def work() -> ReadBack:
        with (
            pa.OSFile(str(path), "wb") as stream,
            pq.ParquetWriter(
                stream,
                rows.schema,
                compression="zstd",
                compression_level=1,
                use_dictionary=dictionary_columns,
                store_decimal_as_integer=True,
                store_schema=False,
            ) as writer,
        ):
            writer.write_table(rows, row_group_size=ROW_GROUP_ROWS)
        with path.open("rb") as written:
            os.fsync(written.fileno())
        return lambda: pq.read_table(path)

    return work


def table_write(rows: pa.Table, folder: Path) -> Callable[[], ReadBack]:
    """Return a function that calls ``write`` on an existing empty table."""
    table = create_table(folder)

    def work() -> ReadBack:
        table.write(rows)
        return lambda: table.scan().to_arrow()

    return work


QUESTION: Question[pa.Table, ReadBack] = Question(
    sentence="What does writing and committing an append table cost beyond plain Parquet?",
    rows=10_000_000,
    make_data=lambda folder, rows: write_rows(folder / "rows.arrow", rows),
    open_data=lambda folder: read_rows(folder / "rows.arrow"),
    candidates={
        "ParquetWriter, tuned": partial(plain_parquet, dictionary_columns=["status"]),
        "ParquetWriter": partial(plain_parquet, dictionary_columns=True),
        "table.write": table_write,
    },
    baseline="ParquetWriter, tuned",
    answer=lambda read_back: read_back(),
    targets={"table.write": 0.95},
    controls=frozenset({"ParquetWriter"}),
)
