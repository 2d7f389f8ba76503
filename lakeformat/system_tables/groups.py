"""``$partitions`` and ``$buckets``: the live files of a snapshot, summed up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa

from lakeformat.metadata.index_manifest import DELETION_VECTORS, IndexManifestEntry
from lakeformat.system_tables.declaration import column, declare
from lakeformat.system_tables.live_files import LiveFiles
from lakeformat.system_tables.source import Source
from lakeformat.system_tables.table_indexes import read_index_state

__all__ = ["BUCKETS", "PARTITIONS"]

_SUMS = [("rows", "sum"), ("bytes", "sum"), ("rows", "count"), ("created", "max")]


class _Groups:
    """Files by partition, or by partition and bucket."""

    def __init__(self, source: Source, keys: Sequence[str]) -> None:
        self.source = source
        self.files = LiveFiles(source)
        grouped = self._table().group_by([*keys], use_threads=False)
        sums = grouped.aggregate([*_SUMS, ("total_buckets", "last")])
        order = [(key, "ascending") for key in ("shown", *keys)]
        shown = pa.array(self._names(), pa.string()).take(sums["partition"].combine_chunks())
        self.sums: pa.Table = sums.append_column("shown", shown).sort_by(order)

    def __len__(self) -> int:
        return int(self.sums.num_rows)

    def _names(self) -> list[str]:
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


class _Buckets(_Groups):
    """Sorted by what is shown of the partition, then by bucket."""

    def __init__(self, source: Source) -> None:
        super().__init__(source, ["partition", "bucket"])


class _Partitions(_Groups):
    """Sorted by what is shown of the partition."""

    def __init__(self, source: Source) -> None:
        super().__init__(source, ["partition"])

    def deleted(self) -> list[int | None]:
        """How many rows deletion vectors hide; None where an old writer did not count them."""
        distinct = self.files.partitions.distinct.to_pylist()
        counts = [self._deleted_by_partition.get(row, 0) for row in distinct]
        return [counts[index] for index in self.sums["partition"].to_pylist()]

    def _names(self) -> list[str]:
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


def _sum(name: str) -> Callable[[_Groups], Any]:
    return lambda groups: groups.sums[name]


def _nothing(groups: _Groups) -> pa.Array:
    """What only catalogs with a service of their own know."""
    return pa.nulls(len(groups))


PARTITIONS = declare(
    "partitions",
    "Partitions of the snapshot with their rows, files and sizes.",
    _Partitions,
    [
        column("partition", "STRING", _sum("shown")),
        column("record_count", "BIGINT NOT NULL", _sum("rows_sum")),
        column("file_size_in_bytes", "BIGINT NOT NULL", _sum("bytes_sum")),
        column("file_count", "BIGINT NOT NULL", _sum("rows_count")),
        column("last_update_time", "TIMESTAMP(3)", _sum("created_max")),
        column("created_at", "TIMESTAMP(3)", _nothing),
        column("created_by", "STRING", _nothing),
        column("updated_by", "STRING", _nothing),
        column("options", "STRING", _nothing),
        column("total_buckets", "INT NOT NULL", _sum("total_buckets_last")),
        column("done", "BOOLEAN NOT NULL", lambda groups: [False] * len(groups)),
        column("deleted_record_count", "BIGINT", _Partitions.deleted),
    ],
    of_snapshot=True,
)

BUCKETS = declare(
    "buckets",
    "Buckets of the snapshot with their rows, files and sizes.",
    _Buckets,
    [
        column("partition", "STRING", _sum("shown")),
        column("bucket", "INT NOT NULL", _sum("bucket")),
        column("record_count", "BIGINT NOT NULL", _sum("rows_sum")),
        column("file_size_in_bytes", "BIGINT NOT NULL", _sum("bytes_sum")),
        column("file_count", "BIGINT NOT NULL", _sum("rows_count")),
        column("last_update_time", "TIMESTAMP(3)", _sum("created_max")),
    ],
    of_snapshot=True,
)
