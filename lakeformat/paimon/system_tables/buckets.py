# SPDX-License-Identifier: Apache-2.0
"""``$buckets``: the size of each bucket of a snapshot."""

from __future__ import annotations

from lakeformat.paimon.system_tables.declaration import column, declare
from lakeformat.paimon.system_tables.file_sums import FileSums, summed
from lakeformat.paimon.system_tables.source import Source

__all__ = ["BUCKETS"]


class _Buckets(FileSums):
    """The rows of ``$buckets``, sorted by the text of the partition, then by bucket."""

    def __init__(self, source: Source) -> None:
        super().__init__(source, ["partition", "bucket"])


BUCKETS = declare(
    "buckets",
    _Buckets,
    [
        column("partition", "STRING", summed("shown")),
        column("bucket", "INT NOT NULL", summed("bucket")),
        column("record_count", "BIGINT NOT NULL", summed("rows_sum")),
        column("file_size_in_bytes", "BIGINT NOT NULL", summed("bytes_sum")),
        column("file_count", "BIGINT NOT NULL", summed("rows_count")),
        column("last_update_time", "TIMESTAMP(3)", summed("created_max")),
    ],
    of_snapshot=True,
)
