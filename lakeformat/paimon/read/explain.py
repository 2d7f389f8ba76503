# SPDX-License-Identifier: Apache-2.0
"""Explains a scan: the files that it reads, and the conditions that skip the other files."""

from __future__ import annotations

from collections.abc import Sequence

from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.read.plan import plan_columns
from lakeformat.paimon.read.splits import Split
from lakeformat.rows.prune import Conjunction, on_columns
from lakeformat.tables.scan_plan import ScanPlan

__all__ = ["explain_scan"]


def explain_scan(
    handle: TableHandle,
    snapshot: Snapshot | None,
    conditions: Conjunction,
    splits: Sequence[Split],
    *,
    unpublished: int,
) -> ScanPlan:
    """Return the number of files that each kind of condition skips, and what is left to read.

    The scan is planned three times: without conditions, with those on partition columns, and with
    all ``conditions`` by which the scan skips files. ``unpublished`` is the number of staged files
    that the scan reads besides those of the snapshot.
    """
    if snapshot is None:
        return ScanPlan(None, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    on_partitions = on_columns(conditions, handle.schema.partition_keys)
    everything = plan_columns(handle, snapshot)
    by_partition = plan_columns(handle, snapshot, conditions=on_partitions)
    planned = plan_columns(handle, snapshot, conditions=conditions)
    with_statistics = len(planned.columns) + planned.left_out_by_index
    found = sum(len(split.files) for split in splits)
    return ScanPlan(
        snapshot_id=snapshot.id,
        manifests=planned.manifests,
        manifests_read=planned.manifests_read,
        files=len(everything.columns),
        left_out_by_partition=len(everything.columns) - len(by_partition.columns),
        left_out_by_statistics=len(by_partition.columns) - with_statistics,
        left_out_by_index=planned.left_out_by_index,
        left_out_otherwise=len(planned.columns) + unpublished - found,
        files_to_read=found,
        bytes_to_read=sum(split.size_bytes for split in splits),
        splits=len(splits),
        raw_splits=sum(split.raw_convertible for split in splits),
    )
