"""A table on local disk with the sample rows, and its data files for other readers."""

from __future__ import annotations

from pathlib import Path

import lakeformat as lake
from benchmarks.sample_rows import SCHEMA, sample_batches

__all__ = ["create_table", "data_files", "open_table", "write_table"]

NAME = "bench.sample"


def create_table(folder: Path) -> lake.Table:
    """Create an empty append table for the sample rows, with default options."""
    catalog = lake.open_catalog(str(folder))
    catalog.create_database("bench")
    return catalog.create_table(NAME, SCHEMA)


def write_table(folder: Path, rows: int) -> None:
    """Write a table with this number of sample rows, in one commit."""
    create_table(folder).write(sample_batches(rows))


def open_table(folder: Path) -> lake.Table:
    """Open the table that ``write_table`` wrote."""
    return lake.open_catalog(str(folder)).table(NAME)


def data_files(folder: Path) -> list[Path]:
    """Return the Parquet files in ``folder``, in the order in which they were written."""
    return sorted(folder.glob("**/*.parquet"), key=lambda path: int(path.stem.rpartition("-")[2]))
