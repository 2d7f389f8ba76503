"""Merges changes of a fifth of the rows of a Mixed table into its base store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.mixed_table import data_files, keyed_sum, open_pair, write_pair
from benchmarks.question import Question
from benchmarks.sample_rows import SCHEMA
from lakeformat.files.parquet.dictionary_columns import pick_dictionary_columns
from lakeformat.mixed.table import MixedTable

__all__ = ["QUESTION"]

ReadBack = Callable[[], pa.Table]
_LEVEL = 3
"""The compression level of base files, the same as that of Iceberg tables."""


def _pair(rows: int, folder: Path) -> MixedTable:
    write_pair(folder, rows, {"self-optimizing.minor.trigger.interval": "0"})
    return open_pair(folder)


def _make(folder: Path, rows: int) -> None:
    (folder / "rows").write_text(str(rows))


def _files(rows: int, folder: Path) -> Callable[[], ReadBack]:
    """Return a function that reads all files of both stores, then writes rows that are already
    merged. It uses pyarrow alone and is the floor.
    """
    table = _pair(rows, folder)
    merged = table.scan().to_arrow().combine_chunks()
    paths, target = data_files(table), folder / "merged.parquet"

    def work() -> ReadBack:
        for path in paths:
            with pq.ParquetFile(path) as file:
                for _ in file.iter_batches(1 << 17):
                    pass
        pq.write_table(
            merged,
            target,
            compression="zstd",
            compression_level=_LEVEL,
            use_dictionary=pick_dictionary_columns(merged),
            store_decimal_as_integer=True,
            write_page_checksum=True,
        )
        return lambda: pq.read_table(target)

    return work


def _compact(rows: int, folder: Path) -> Callable[[], ReadBack]:
    """Return a function that calls ``compact``, which includes the plan and the commit. All files
    are fragments, so all are rewritten.
    """
    table = _pair(rows, folder)

    def work() -> ReadBack:
        table.compact(executor="serial")
        return lambda: table.base.scan(SCHEMA.names).to_arrow()

    return work


QUESTION: Question[int, ReadBack] = Question(
    sentence="What does merging changes into the base store cost beyond reading and writing?",
    rows=1_000_000,
    make_data=_make,
    open_data=lambda folder: int((folder / "rows").read_text()),
    candidates={"files": _files, "table.compact": _compact},
    baseline="files",
    answer=lambda read_back: keyed_sum(iter(read_back().to_batches())),
    targets={"table.compact": 0.7},
)
