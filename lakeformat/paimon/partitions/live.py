# SPDX-License-Identifier: Apache-2.0
"""The partitions of a snapshot, each with the number, size and rows of its files."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from lakeformat.paimon.handle import TableHandle, require_no_chain
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.partition import partition_path
from lakeformat.paimon.partition_filter import some_partitions
from lakeformat.paimon.read.plan import naming_partition, plan_columns
from lakeformat.paimon.read.row_ranges import rows_by_file
from lakeformat.tables.arguments import PartitionSpec

__all__ = ["LivePartition", "chosen", "live_partitions"]

_NEVER = -(2**63)
_SUMS = [("rows", "sum"), ("bytes", "sum"), ("rows", "count"), ("made", "max"), ("known", "min")]


@dataclass(frozen=True, slots=True, kw_only=True)
class LivePartition:
    """One partition that has files, with their number, rows and bytes."""

    row: bytes
    """The framed binary row of the partition."""
    path: str
    """The directory of the partition, relative to the table, such as ``day=2024-01-31``."""
    rows: int
    """The number of rows in its files; a key with several versions counts several times."""
    files: int
    bytes: int
    updated: datetime | None
    """The creation time of its newest file in the writer's local time; None if a file has no
    time.
    """

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {
            "partition": self.path,
            "rows": self.rows,
            "files": self.files,
            "bytes": self.bytes,
            "updated": None if self.updated is None else self.updated.isoformat(" "),
        }


def live_partitions(handle: TableHandle, snapshot: Snapshot | None) -> list[LivePartition]:
    """Return every partition that has files in a snapshot, sorted by path.

    The list is empty for ``snapshot=None``. Raise UnsupportedError for a chain table.
    """
    require_no_chain(handle)
    if snapshot is None:
        return []
    files = plan_columns(handle, snapshot).columns
    encoded = files.partition.to_arrow().dictionary_encode()
    made = files.creation_time
    known = np.ones(len(files), np.bool_) if made.present is None else made.present
    table = pa.table(
        {
            "place": encoded.indices.cast(pa.int64()),
            "rows": rows_by_file(handle.schema, files),
            "bytes": files.file_size.numbers,
            "made": np.where(known, made.numbers, _NEVER),
            "known": known.astype(np.int8),
        }
    )
    sums = table.group_by("place", use_threads=False).aggregate(_SUMS)
    rows = encoded.dictionary.take(sums["place"].combine_chunks()).to_pylist()
    with naming_partition(handle, snapshot):
        paths = [partition_path(handle.schema, row) for row in rows]
    found = [
        LivePartition(
            row=row,
            path=path,
            rows=each["rows_sum"],
            files=each["rows_count"],
            bytes=each["bytes_sum"],
            updated=_wall_clock(each["made_max"]) if each["known_min"] else None,
        )
        for row, path, each in zip(rows, paths, sums.to_pylist(), strict=True)
    ]
    return sorted(found, key=lambda partition: partition.path)


def chosen(
    handle: TableHandle, found: list[LivePartition], specs: Collection[PartitionSpec]
) -> list[LivePartition]:
    """Return the partitions of ``found`` that match one of ``specs``.

    Raise InvalidRequestError for an unknown column, or for a value that its column cannot hold.
    """
    meant = some_partitions(handle.schema, specs)
    mask = meant.mask(pa.array([partition.row for partition in found], pa.large_binary()))
    return [partition for partition, is_meant in zip(found, mask, strict=True) if is_meant]


def _wall_clock(millis: int) -> datetime:
    """Return ``millis``, the ``creation_time`` of a file, as datetime.

    The format stores the local time of the writer as if it were UTC.
    """
    return datetime.fromtimestamp(millis / 1000, UTC).replace(tzinfo=None)
