# SPDX-License-Identifier: Apache-2.0
"""``$partitions``: the size of each partition of a snapshot."""

from __future__ import annotations

from functools import cached_property

import pyarrow as pa

from lakeformat.paimon.metadata.index_manifest import DELETION_VECTORS, IndexManifestEntry
from lakeformat.paimon.system_tables.declaration import column, declare
from lakeformat.paimon.system_tables.file_sums import FileSums, summed
from lakeformat.paimon.system_tables.source import Source
from lakeformat.paimon.system_tables.table_indexes import read_index_state

__all__ = ["PARTITIONS"]


class _Partitions(FileSums):
    """The rows of ``$partitions``, sorted by the text of the partition."""

    def __init__(self, source: Source) -> None:
        super().__init__(source, ["partition"])

    def deleted(self) -> list[int | None]:
        """Return, for each partition, the number of rows that deletion vectors delete.

        The number is None if an older writer did not count these rows.
        """
        distinct = self.files.partitions.distinct.to_pylist()
        counts = [self._deleted_by_partition.get(row, 0) for row in distinct]
        return [counts[index] for index in self.sums["partition"].to_pylist()]

    def names(self) -> list[str]:
        return self.files.partitions.distinct_as_path

    @cached_property
    def _deleted_by_partition(self) -> dict[bytes, int | None]:
        counts: dict[bytes, int | None] = {}
        for entry in read_index_state(self.source):
            if entry.index_type == DELETION_VECTORS:
                before, found = counts.get(entry.partition, 0), _cardinality(entry)
                known = None if before is None or found is None else before + found
                counts[entry.partition] = known
        return counts


def _cardinality(entry: IndexManifestEntry) -> int | None:
    total = 0
    for found in entry.ranges or ():
        if found.cardinality is None:
            return None
        total += found.cardinality
    return total


def _nothing(sums: FileSums) -> pa.Array:
    """Return nulls, for columns whose values only catalog services know."""
    return pa.nulls(len(sums))


PARTITIONS = declare(
    "partitions",
    _Partitions,
    [
        column("partition", "STRING", summed("shown")),
        column("record_count", "BIGINT NOT NULL", summed("rows_sum")),
        column("file_size_in_bytes", "BIGINT NOT NULL", summed("bytes_sum")),
        column("file_count", "BIGINT NOT NULL", summed("rows_count")),
        column("last_update_time", "TIMESTAMP(3)", summed("created_max")),
        column("created_at", "TIMESTAMP(3)", _nothing),
        column("created_by", "STRING", _nothing),
        column("updated_by", "STRING", _nothing),
        column("options", "STRING", _nothing),
        column("total_buckets", "INT NOT NULL", summed("total_buckets_last")),
        column("done", "BOOLEAN NOT NULL", lambda sums: [False] * len(sums)),
        column("deleted_record_count", "BIGINT", _Partitions.deleted),
    ],
    of_snapshot=True,
)
