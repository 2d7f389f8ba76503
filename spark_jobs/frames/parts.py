# SPDX-License-Identifier: Apache-2.0
"""A DataFrame with rows that are computed by Python tasks.

Each task computes the rows of one part, which is a list of splits or files.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from heapq import heapreplace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import pyarrow as pa
from pyspark import cloudpickle

from spark_jobs.frames.worker import prepare_worker

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = [
    "PartWork",
    "classic_context",
    "pack",
    "pack_in_order",
    "spread",
    "tasks_at_once",
    "to_send",
]

T = TypeVar("T")
PartWork: TypeAlias = "Callable[[Any], Iterator[pa.RecordBatch]]"
"""A function that computes the rows of one part in a task; pickled with all that it refers to."""

_WHERE_UNKNOWN = 64
"""The number of concurrent tasks that is assumed if it is unknown. A number that is too high only
makes parts smaller.
"""


def spread(
    spark: SparkSession, parts: Sequence[Any], work: PartWork, columns: StructType | str
) -> DataFrame:
    """Return the rows that ``work`` computes from the parts, each part in a separate task.

    Parts and work are pickled into the tasks, so that no plan or web page of Spark shows them.
    """
    packed = [to_send(part) for part in parts]
    numbers = spark.range(0, len(packed), 1, max(len(packed), 1))
    return numbers.mapInArrow(partial(_run_parts, packed, to_send(work)), columns)


def to_send(thing: object) -> bytes:
    """Pickle an object for tasks. The object is pickled here, because Spark would hide the cause of
    a failure.
    """
    dumps: Callable[[object], bytes] = cloudpickle.dumps
    return dumps(thing)


def _run_parts(
    packed: Sequence[bytes], sent: bytes, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    work: PartWork = pickle.loads(sent)
    prepare_worker()
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield from work(pickle.loads(packed[number]))


def tasks_at_once(spark: SparkSession) -> int:
    """Return the number of tasks that the session can run at the same time; 64 if it is unknown."""
    context = classic_context(spark)
    return _WHERE_UNKNOWN if context is None else int(context.defaultParallelism)


def classic_context(spark: SparkSession) -> SparkContext | None:
    """Return the context of a session; None with Spark Connect, which has no context in this
    process.
    """
    from pyspark.errors import PySparkException

    try:
        return spark.sparkContext
    except (PySparkException, AttributeError):
        return None


def pack(
    pieces: Sequence[tuple[T, int]], *, at_once: int, target_bytes: int, least_bytes: int
) -> list[list[T]]:
    """Group ``pieces`` into parts, one part for each task; the largest part is the first.

    Each piece is given with its size in bytes, and counts as at least ``least_bytes``. A part has
    about ``target_bytes``, or less if there would otherwise be fewer than ``at_once`` parts.
    """
    weighed = sorted(
        ((piece, max(size, least_bytes)) for piece, size in pieces), key=lambda each: -each[1]
    )
    total = sum(weight for _, weight in weighed)
    several = max(1, -(-total // _room(total, at_once, target_bytes, least_bytes)))
    parts: list[list[T]] = [[] for _ in range(min(len(weighed), several))]
    lightest = [(0, number) for number in range(len(parts))]
    for piece, weight in weighed:
        taken, number = lightest[0]
        parts[number].append(piece)
        heapreplace(lightest, (taken + weight, number))
    return [parts[number] for _, number in sorted(lightest, key=lambda each: (-each[0], each[1]))]


def pack_in_order(
    pieces: Sequence[tuple[T, int]], *, at_once: int, target_bytes: int, least_bytes: int
) -> list[list[T]]:
    """Group ``pieces`` into parts, one part for each task, in the order of the pieces.

    Each piece is given with its size in bytes. Parts have the sizes that ``pack`` describes.
    """
    weights = [max(size, least_bytes) for _, size in pieces]
    room = _room(sum(weights), at_once, target_bytes, least_bytes)
    parts: list[list[T]] = []
    left = 0
    for (piece, _), weight in zip(pieces, weights, strict=True):
        if weight > left:
            parts.append([])
            left = room
        parts[-1].append(piece)
        left -= weight
    return parts


def _room(total: int, at_once: int, target_bytes: int, least_bytes: int) -> int:
    return max(1, least_bytes, min(target_bytes, -(-total // at_once)))
