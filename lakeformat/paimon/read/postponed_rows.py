"""Rows that wait for a bucket, merged into what a read sees where the table says so.

A partition with such rows is one split: they may be of any key. They are sorted in memory, as newer
than every row that has its bucket already.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from lakeformat.paimon.datafile.system_fields import SEQUENCE_NUMBER
from lakeformat.paimon.layout import POSTPONE_BUCKET
from lakeformat.paimon.merge.engine import MergeEngine
from lakeformat.paimon.merge.looked_up import with_level
from lakeformat.paimon.merge.order import MergeOrder
from lakeformat.paimon.metadata.manifest import ManifestEntry
from lakeformat.paimon.read.buckets import visible_buckets
from lakeformat.paimon.schema import TableSchema
from lakeformat.rows.take_rows import take_rows

__all__ = [
    "as_one_run",
    "chained",
    "merged_buckets",
    "merges_postponed_rows",
    "parted",
    "reports_postponed_rows",
]

_LEVEL = 0
_NO_PRODUCER = "none"


def merges_postponed_rows(schema: TableSchema) -> bool:
    """Whether a batch read sees rows that have no bucket yet."""
    options = schema.table_options
    return options.bucket == POSTPONE_BUCKET and options.postpone_merge_on_read


def reports_postponed_rows(schema: TableSchema) -> bool:
    """Whether a stream of changes tells rows before they have a bucket, not when they get one."""
    options = schema.table_options
    return options.bucket == POSTPONE_BUCKET and options.changelog_producer == _NO_PRODUCER


def merged_buckets(
    schema: TableSchema, files: Sequence[ManifestEntry], *, level_zero: bool = False
) -> list[tuple[ManifestEntry, ...]]:
    """The visible files of each bucket, and all files of partitions in which rows wait."""
    waiting = {entry.partition for entry in files if entry.bucket == POSTPONE_BUCKET}
    groups: dict[bytes, list[ManifestEntry]] = {}
    for entry in files:
        if entry.partition in waiting:
            groups.setdefault(entry.partition, []).append(entry)
    others = [entry for entry in files if entry.partition not in waiting]
    return [*map(tuple, groups.values()), *visible_buckets(schema, others, level_zero=level_zero)]


def parted(
    files: Iterable[ManifestEntry],
) -> tuple[list[ManifestEntry], list[ManifestEntry]]:
    """The files of rows that wait for a bucket, and those of rows that have one."""
    waiting: list[ManifestEntry] = []
    others: list[ManifestEntry] = []
    for entry in files:
        (waiting if entry.bucket == POSTPONE_BUCKET else others).append(entry)
    return waiting, others


def chained(sections: Sequence[Sequence[Sequence[ManifestEntry]]]) -> list[list[ManifestEntry]]:
    """Sections whose keys rise as one: their oldest runs behind one another, then the next."""
    depth = max(map(len, sections), default=0)
    return [
        [entry for section in sections if turn < len(section) for entry in section[turn]]
        for turn in range(depth)
    ]


def as_one_run(
    batches: Iterable[pa.RecordBatch],
    order: MergeOrder,
    engine: MergeEngine,
    *,
    first_number: int,
    batch_rows: int,
    has_level: bool,
) -> Iterator[pa.RecordBatch]:
    """Rows in the order they came in, numbered from there on, as a run with each key once."""
    found = list(batches)
    if not found:
        return
    rows = pa.Table.from_batches(found).combine_chunks()
    numbers = pa.array(np.arange(first_number, first_number + rows.num_rows))
    rows = rows.set_column(0, rows.schema.field(SEQUENCE_NUMBER.name), numbers)
    groups = order.group(rows, numbered=True)
    is_merged = len(groups) == len(groups.order)
    one = take_rows(rows, groups.order) if is_merged else engine.merge(rows, groups)
    for batch in one.to_batches(max_chunksize=batch_rows):
        yield with_level(batch, _LEVEL) if has_level else batch
