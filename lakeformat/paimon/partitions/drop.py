# SPDX-License-Identifier: Apache-2.0
"""Finds the partitions that ``drop_partitions`` would delete."""

from __future__ import annotations

from collections.abc import Sequence

from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.snapshot_directory import latest_snapshot
from lakeformat.paimon.partitions.live import chosen, live_partitions
from lakeformat.paimon.partitions.partition_reports import DropPartitionsPlan
from lakeformat.tables.arguments import PartitionSpec
from lakeformat.types.type_rules import require_list

__all__ = ["plan_drop_partitions"]


def plan_drop_partitions(
    handle: TableHandle, partitions: Sequence[PartitionSpec]
) -> DropPartitionsPlan:
    """Return the existing partitions that match one of ``partitions``, and the specs without a
    match.
    """
    require_list("partitions", partitions, "[{'dt': '2024-01-01'}]")
    head = latest_snapshot(handle.storage, handle.layout)
    live = live_partitions(handle, head)
    there = chosen(handle, live, partitions)
    missing = [spec for spec in partitions if not chosen(handle, live, [spec])]
    return DropPartitionsPlan(
        table=handle.uri,
        snapshot_id=None if head is None else head.id,
        partitions=tuple(there),
        missing=tuple(dict(spec) for spec in missing),
    )
