# SPDX-License-Identifier: Apache-2.0
"""The plan of a scan: the numbers of files that the scan reads and skips."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from lakeformat.types.byte_size import size
from lakeformat.types.count_text import counted

__all__ = ["ScanPlan"]


@dataclass(frozen=True, slots=True)
class ScanPlan:
    """The numbers of one planned scan; ``str`` returns them as sentences."""

    snapshot_id: int | None
    """The id of the snapshot to read; None before the first commit."""
    manifests: int
    manifests_read: int
    files: int
    """The number of data files of the snapshot."""
    left_out_by_partition: int
    left_out_by_statistics: int
    """The number of files that are skipped because of the column bounds in manifests."""
    left_out_by_index: int
    """The number of files that are skipped because of their file indexes."""
    left_out_otherwise: int
    """The number of files that are skipped for other reasons. For example, batch reads of some
    tables skip level-0 files, and a scan with a limit skips the files that it does not need.
    """
    files_to_read: int
    bytes_to_read: int
    """The total size in bytes of the files to read, including row groups and columns that are
    skipped.
    """
    splits: int
    raw_splits: int
    """The number of splits whose rows need no merge."""
    decided_by: str | None = None
    """The table option that chose the snapshot, with its value; None if no option chose it."""

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers as a dict, ready for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        by = "" if self.decided_by is None else f" (the table sets {self.decided_by})"
        if self.snapshot_id is None:
            return f"no snapshot yet: nothing to read{by}"
        return "\n".join(
            (
                f"snapshot {self.snapshot_id}{by}: {counted(self.files, 'file')} in "
                f"{counted(self.manifests, 'manifest')}, manifests read: {self.manifests_read}",
                f"files skipped: {self.left_out_by_partition} by partition, "
                f"{self.left_out_by_statistics} by statistics, {self.left_out_by_index} by index, "
                f"{self.left_out_otherwise} for other reasons",
                f"to read: {counted(self.files_to_read, 'file')}, {size(self.bytes_to_read)}",
                f"splits: {self.splits} ({self.raw_splits} read as stored, "
                f"{self.splits - self.raw_splits} merged or joined)",
            )
        )
