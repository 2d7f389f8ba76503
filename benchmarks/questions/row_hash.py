"""Finds the buckets of rows by an int64 key."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.question import Question
from benchmarks.sample_rows import read_rows, write_rows
from lakeformat.paimon.bucketing import bucket_function
from lakeformat.types.types import TypeName, atomic

__all__ = ["BUCKETS", "QUESTION", "bucket_of", "key_column", "same_buckets", "write_keys"]

BUCKETS = 7
MASK = 0xFFFFFFFF
KEYS = "keys.arrow"

Buckets = Sequence[int] | np.ndarray[tuple[int], np.dtype[np.int32]]


def write_keys(folder: Path, rows: int) -> None:
    """Write sample rows, for ``row_hash`` and ``row_hash_text``."""
    write_rows(folder / KEYS, rows)


def key_column(folder: Path, name: str) -> pa.Array:
    """Return one column of the sample rows as one array."""
    return read_rows(folder / KEYS).column(name).combine_chunks()


def bucket_of(row: bytes, words: tuple[int, ...]) -> int:
    """Return the default bucket of one encoded row; ``words`` are its 32-bit words."""
    h = 42
    for k in words:
        k = k * 0xCC9E2D51 & MASK
        h ^= (k << 15 | k >> 17) * 0x1B873593 & MASK
        h = ((h << 13 | h >> 19) * 5 + 0xE6546B64) & MASK
    h ^= len(row)
    h = (h ^ h >> 16) * 0x85EBCA6B & MASK
    h = (h ^ h >> 13) * 0xC2B2AE35 & MASK
    h ^= h >> 16
    return (h if h < 1 << 31 else (1 << 32) - h) % BUCKETS


def python_loop(keys: pa.Array, _: Path) -> Callable[[], Buckets]:
    """Return a function that computes the buckets row by row, from keys that are already Python
    objects.
    """
    values = keys.to_pylist()
    encode = struct.Struct("<qq").pack
    split = struct.Struct("<4I").unpack

    def run() -> list[int]:
        return [bucket_of(row, split(row)) for row in (encode(0, value) for value in values)]

    return run


def bucket_function_of_arrays(keys: pa.Array, _: Path) -> Callable[[], Buckets]:
    """Return a function that hashes a whole batch at once, as a writer does."""
    function = bucket_function("default", [atomic(TypeName.BIGINT)], BUCKETS)
    return lambda: function([keys])


def same_buckets(buckets: Buckets) -> list[int]:
    """Return the result of a candidate in the common form: the bucket of every row."""
    every: list[int] = np.asarray(buckets).tolist()
    return every


QUESTION: Question[pa.Array, Buckets] = Question(
    sentence="How much faster than a Python loop are the buckets of int64 keys found?",
    rows=2_000_000,
    make_data=write_keys,
    open_data=lambda folder: key_column(folder, "k"),
    candidates={"Python loop": python_loop, "bucket_function": bucket_function_of_arrays},
    baseline="Python loop",
    answer=same_buckets,
    targets={"bucket_function": 100},
)
