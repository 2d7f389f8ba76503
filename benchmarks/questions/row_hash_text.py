"""Finds the buckets of rows by a string key of 16 to 24 bytes."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from benchmarks.question import Question
from benchmarks.questions.row_hash import (
    BUCKETS,
    Buckets,
    bucket_of,
    key_column,
    same_buckets,
    write_keys,
)
from lakeformat.paimon.bucketing import bucket_function
from lakeformat.types.types import STRING

__all__ = ["QUESTION"]

FIXED_SIZE = 16


def encode(text: str) -> bytes:
    """Return the binary row of one string of more than 7 bytes."""
    content = text.encode()
    size = len(content)
    return struct.pack("<qII", 0, size, FIXED_SIZE) + content.ljust((size + 7) // 8 * 8, b"\0")


def python_loop(keys: pa.Array, _: Path) -> Callable[[], Buckets]:
    """Return a function that computes the buckets row by row, from keys that are already Python
    objects.
    """
    values = keys.to_pylist()

    def run() -> list[int]:
        rows = map(encode, values)
        return [bucket_of(row, struct.unpack(f"<{len(row) // 4}I", row)) for row in rows]

    return run


def bucket_function_of_arrays(keys: pa.Array, _: Path) -> Callable[[], Buckets]:
    """Return a function that hashes a whole batch at once, as a writer does."""
    function = bucket_function("default", [STRING], BUCKETS)
    return lambda: function([keys])


QUESTION: Question[pa.Array, Buckets] = Question(
    sentence="How much faster than a Python loop are the buckets of string keys found?",
    rows=1_000_000,
    make_data=write_keys,
    open_data=lambda folder: key_column(folder, "s"),
    candidates={"Python loop": python_loop, "bucket_function": bucket_function_of_arrays},
    baseline="Python loop",
    answer=same_buckets,
    targets={"bucket_function": 60},
)
