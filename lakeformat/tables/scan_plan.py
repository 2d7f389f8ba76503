# SPDX-License-Identifier: Apache-2.0
"""The explanation of a scan: what it reads, and which conditions skip the rest."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["ScanPlan"]


@dataclass(frozen=True, slots=True)
class ScanPlan:
    """Counts of one planned scan; ``str`` prints them as sentences."""

    snapshot_id: int | None
    """None before the first commit."""
    manifests: int
    manifests_read: int
    files: int
    """Live files of the snapshot."""
    left_out_by_partition: int
    left_out_by_statistics: int
    """Skipped by the value ranges that manifests hold for keys and other columns."""
    left_out_by_index: int
    """Skipped by the indexes of single files."""
    left_out_otherwise: int
    """Skipped because a batch read does not see them, the level is lower than requested, or the
    limit is reached."""
    files_to_read: int
    bytes_to_read: int
    """Total size of the files to read; unneeded row groups and columns are skipped later."""
    splits: int
    raw_splits: int
    """Splits whose rows need no merge."""
    decided_by: str | None = None
    """The table option that chose the snapshot; None if no option did."""

    def to_dict(self) -> dict[str, Any]:
        """Return every count by its name, for programs."""
        return asdict(self)

    def __str__(self) -> str:
        by = "" if self.decided_by is None else f" (the table sets {self.decided_by})"
        if self.snapshot_id is None:
            return f"no snapshot yet: nothing to read{by}"
        return "\n".join(
            (
                f"snapshot {self.snapshot_id}{by}: {self.files} files in {self.manifests} "
                f"manifests, of which {self.manifests_read} are read",
                f"skipped: {self.left_out_by_partition} files by partition, "
                f"{self.left_out_by_statistics} by statistics, {self.left_out_by_index} by index, "
                f"{self.left_out_otherwise} otherwise",
                f"to read: {self.files_to_read} files, {self.bytes_to_read} bytes",
                f"splits: {self.splits}, of which {self.raw_splits} are read as they are and "
                f"{self.splits - self.raw_splits} are merged",
            )
        )
