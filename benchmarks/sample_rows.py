"""The rows for questions about tables: mixed types, hard to compress."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

__all__ = ["SCHEMA", "read_rows", "sample_batches", "write_rows"]

SCHEMA = pa.schema(
    [
        ("k", pa.int64()),
        ("v", pa.float64()),
        ("s", pa.string()),
        ("ts", pa.timestamp("us")),
        ("status", pa.string()),
        ("amt", pa.decimal128(18, 2)),
    ]
)
SEED = 20_240_229
BATCH_ROWS = 1 << 20
STATUSES = ("new", "paid", "packed", "shipped", "returned")
LETTERS = np.frombuffer(
    b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_", np.uint8
)
FIRST_MICROS = 1_700_000_000_000_000


def sample_batches(rows: int) -> Iterator[pa.RecordBatch]:
    """Yield batches with this number of rows in all; the same number gives the same rows."""
    random = np.random.default_rng(SEED)
    for first in range(0, rows, BATCH_ROWS):
        yield _batch(random, first, min(BATCH_ROWS, rows - first))


def write_rows(path: Path, rows: int) -> None:
    """Write sample rows to an Arrow file."""
    with pa.OSFile(str(path), "wb") as stream, pa.ipc.new_file(stream, SCHEMA) as writer:
        for batch in sample_batches(rows):
            writer.write_batch(batch)


def read_rows(path: Path) -> pa.Table:
    """Load the rows of an Arrow file into memory."""
    with pa.OSFile(str(path), "rb") as stream, pa.ipc.open_file(stream) as reader:
        return reader.read_all()


def _batch(random: np.random.Generator, first: int, rows: int) -> pa.RecordBatch:
    numbers = np.arange(first, first + rows)
    columns = [
        pa.array(numbers * 7 + random.integers(0, 7, rows)),
        pa.array(random.standard_normal(rows)),
        _texts(random, rows),
        pa.array(FIRST_MICROS + numbers * 250_000 + random.integers(0, 250_000, rows)),
        pa.array(STATUSES).take(pa.array(random.integers(0, len(STATUSES), rows))),
        _decimals(random.integers(-1_000_000, 100_000_000, rows)),
    ]
    columns[3] = columns[3].cast(pa.timestamp("us"))
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def _texts(random: np.random.Generator, rows: int) -> pa.Array:
    """Return random texts of 16 to 24 characters."""
    offsets = np.zeros(rows + 1, np.int32)
    np.cumsum(random.integers(16, 25, rows), out=offsets[1:])
    letters = LETTERS[random.integers(0, len(LETTERS), offsets[-1], np.uint8)]
    return pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(letters))


def _decimals(hundredths: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pa.Array:
    """Return the numbers as decimals with two digits after the point."""
    words = np.column_stack([hundredths, hundredths >> 63])
    return pa.Array.from_buffers(
        SCHEMA.field("amt").type, len(hundredths), [None, pa.py_buffer(words)]
    )
