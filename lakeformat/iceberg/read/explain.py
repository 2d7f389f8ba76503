# SPDX-License-Identifier: Apache-2.0
"""Explains a scan: the files that each level of metadata excludes, and the delete files that
apply.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakeformat.iceberg.read.data_file import FileSplit
from lakeformat.iceberg.read.plan import FilePlan, TableState, plan_files
from lakeformat.tables.scan_plan import ScanPlan

__all__ = ["IcebergScanPlan", "explain_plan"]


@dataclass(frozen=True, slots=True)
class IcebergScanPlan(ScanPlan):
    """Numbers about one planned scan; ``str`` returns them as sentences."""

    delete_files: int = 0
    """The number of delete files that apply to the files to read."""

    def __str__(self) -> str:
        lines = ScanPlan.__str__(self)
        return f"{lines}\ndelete files: {self.delete_files}" if self.delete_files else lines


def explain_plan(state: TableState, plan: FilePlan, splits: Sequence[FileSplit]) -> IcebergScanPlan:
    """Return the numbers of a plan.

    Manifests are read again only if the manifest list does not count files.
    """
    if state.snapshot is None:
        return IcebergScanPlan(None, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    files = plan.files if plan.files is not None else plan_files(state).files_in_manifests
    deletes = {each.path: each for split in splits for each in split.deletes}
    return IcebergScanPlan(
        snapshot_id=state.snapshot.snapshot_id,
        manifests=plan.manifests,
        manifests_read=plan.manifests_read,
        files=files,
        left_out_by_partition=files - plan.left_by_partition,
        left_out_by_statistics=plan.left_by_partition - plan.files_to_read,
        left_out_by_index=0,
        left_out_otherwise=0,
        files_to_read=len(splits),
        bytes_to_read=sum(split.file.size_bytes for split in splits),
        splits=len(splits),
        raw_splits=sum(not split.deletes for split in splits),
        delete_files=len(deletes),
    )
