# SPDX-License-Identifier: Apache-2.0
"""Reads postponed rows: rows that get a bucket in a later compaction.

A partition with postponed rows is one split, because these rows may have any key. Postponed rows
are sorted in memory, and count as written after all rows that have a bucket.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from lakeformat.paimon.datafile.system_fields import SEQUENCE_NUMBER
from lakeformat.paimon.merge.engine import MergeEngine
from lakeformat.paimon.merge.looked_up import with_level
from lakeformat.paimon.merge.order import MergeOrder
from lakeformat.paimon.metadata.manifest import ManifestEntry
from lakeformat.paimon.options.kinds import POSTPONE_BUCKET
from lakeformat.paimon.read.buckets import visible_buckets
from lakeformat.paimon.schema import TableSchema
from lakeformat.rows.take_rows import take_rows

__all__ = [
    "as_one_run",
    "chain_sections",
    "merged_buckets",
    "merges_postponed_rows",
    "postponed_partitions",
    "reports_postponed_rows",
    "split_off_postponed",
]

_LEVEL = 0
_NO_PRODUCER = "none"


def merges_postponed_rows(schema: TableSchema) -> bool:
    """Return True if batch reads include postponed rows."""
    options = schema.table_options
    return options.bucket == POSTPONE_BUCKET and options.postpone_merge_on_read


def reports_postponed_rows(schema: TableSchema) -> bool:
    """Return True if change streams deliver postponed rows when they are written.

    Return False if the changelog of a compaction delivers the rows, and for tables that never
    postpone rows.
    """
    options = schema.table_options
    return options.bucket == POSTPONE_BUCKET and options.changelog_producer == _NO_PRODUCER


def postponed_partitions(entries: Iterable[ManifestEntry]) -> set[bytes]:
    """Return the partitions that have postponed rows."""
    return {entry.partition for entry in entries if entry.bucket == POSTPONE_BUCKET}


def merged_buckets(
    schema: TableSchema, files: Sequence[ManifestEntry], *, level_zero: bool = False
) -> list[tuple[ManifestEntry, ...]]:
    """Group the files of a read by bucket; a partition with postponed rows is one group.

    ``level_zero=True`` includes level-0 files even if batch reads of the table skip them.
    """
    postponed = postponed_partitions(files)
    groups: dict[bytes, list[ManifestEntry]] = {}
    for entry in files:
        if entry.partition in postponed:
            groups.setdefault(entry.partition, []).append(entry)
    others = [entry for entry in files if entry.partition not in postponed]
    return [*map(tuple, groups.values()), *visible_buckets(schema, others, level_zero=level_zero)]


def split_off_postponed(
    files: Iterable[ManifestEntry],
) -> tuple[list[ManifestEntry], list[ManifestEntry]]:
    """Return the files of postponed rows, and the other files."""
    postponed: list[ManifestEntry] = []
    others: list[ManifestEntry] = []
    for entry in files:
        (postponed if entry.bucket == POSTPONE_BUCKET else others).append(entry)
    return postponed, others


def chain_sections(
    sections: Sequence[Sequence[Sequence[ManifestEntry]]],
) -> list[list[ManifestEntry]]:
    """Join the runs of several sections into a few long runs.

    Sections must be in key order. The first runs of all sections become one run, their second runs
    another run, and so on.
    """
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
    """Merge rows, given in the order in which they were written, into one run with each key once.

    The rows get sequence numbers from ``first_number`` on. ``has_level`` adds the column
    ``_LEVEL``, which is 0.
    """
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
