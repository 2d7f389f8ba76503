# SPDX-License-Identifier: Apache-2.0
"""Counts the live files of a snapshot, and adds up their rows and bytes.

The sums are by partition, or by partition and bucket.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from lakeformat.paimon.system_tables.live_files import LiveFiles
from lakeformat.paimon.system_tables.source import Source

__all__ = ["FileSums", "summed"]

_SUMS = [("rows", "sum"), ("bytes", "sum"), ("rows", "count"), ("created", "max")]


class FileSums:
    """The number of live files, with their rows, bytes and newest time.

    Files are grouped by the columns ``keys``: ``partition``, or ``partition`` and ``bucket``.
    """

    def __init__(self, source: Source, keys: Sequence[str]) -> None:
        self.source = source
        self.files = LiveFiles(source)
        grouped = self._table().group_by([*keys], use_threads=False)
        sums = grouped.aggregate([*_SUMS, ("total_buckets", "last")])
        order = [(key, "ascending") for key in ("shown", *keys)]
        shown = pa.array(self.names(), pa.string()).take(sums["partition"].combine_chunks())
        self.sums: pa.Table = sums.append_column("shown", shown).sort_by(order)

    def __len__(self) -> int:
        return int(self.sums.num_rows)

    def names(self) -> list[str]:
        """Return the text of each distinct partition."""
        return [*self.files.partitions.distinct_in_braces.to_pylist()]

    def _table(self) -> pa.Table:
        files = self.files
        columns = {
            "partition": files.partitions.indices.cast(pa.int64()),
            "bucket": files.numbers("bucket"),
            "rows": files.numbers("row_count"),
            "bytes": files.numbers("file_size"),
            "created": files.numbers("creation_time"),
            "total_buckets": files.numbers("total_buckets"),
        }
        return pa.table(columns)


def summed(name: str) -> Callable[[FileSums], Any]:
    """Return a function that takes ``FileSums`` and returns the values of one column, ``name``."""
    return lambda groups: groups.sums[name]
