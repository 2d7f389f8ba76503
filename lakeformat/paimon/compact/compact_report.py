# SPDX-License-Identifier: Apache-2.0
"""The report of a compaction."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from lakeformat.paimon.compact.other_compactor import OtherCompactor
from lakeformat.tables.compact_summary import CompactSummary
from lakeformat.types.byte_size import size
from lakeformat.types.count_text import counted

__all__ = ["BucketOutcome", "CompactReport"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketOutcome:
    """The outcome of one bucket, or of some files of an append table's bucket, and the reason."""

    partition: str
    bucket: int
    outcome: str
    """``compacted``, ``not chosen``, ``refused`` (by a conflict) or ``failed``."""
    reason: str
    rows_in: int = 0
    rows_out: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    files_in: int = 0
    files_out: int = 0
    files_moved: int = 0
    """The number of files that only changed their level."""
    changelog_rows: int = 0
    """The number of rows in the written changelog files."""
    changelog_files: int = 0
    changelog_bytes: int = 0
    fresh_bytes_in: int = 0
    """The size of the rewritten and moved files that no compaction had written before."""
    millis: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactReport(CompactSummary):
    """The outcome of one compaction; its sums count only buckets that were compacted."""

    files_moved: int
    changelog_rows: int
    changelog_files: int
    changelog_bytes: int
    changelog_guarantee: str
    """``complete``, ``net``, ``as written`` or ``none``: what the table's changelog contains.

    docs/changelog.md explains these words.
    """
    write_amplification: float | None
    """The bytes written, divided by the sum of ``fresh_bytes_in``.

    None if this sum is 0.
    """
    unfinished: str | None = None
    """The reason why more compaction may still be due; None if the compaction is complete."""
    rounds: int
    """The number of rounds; later rounds plan buckets after a conflict, or if more work may be due.
    """
    groups: int
    """The number of commits that were attempted."""
    groups_refused: int
    """The number of commits that were refused because of a conflict."""
    plan_millis: int
    run_millis: int
    """The sum of the times of all units, which may have run at the same time."""
    commit_millis: int
    millis: int
    """The time from the first plan to the last commit."""
    buckets: tuple[BucketOutcome, ...]
    other_compactor: OtherCompactor | None = None
    """Another program that also compacts the table, or None.

    Its commits may conflict with the commits of this library.
    """
    reason: str
    """One sentence for the log: what was compacted, or why nothing was."""

    @property
    def sentence(self) -> str:
        """A sentence for the log: the reason, with the numbers of files and bytes if a snapshot was
        published.
        """
        if not self.snapshot_ids:
            return self.reason
        moved = f", {self.files_moved} moved to another level" if self.files_moved else ""
        return (
            f"{self.reason}: {counted(self.files_in, 'file')} of {size(self.bytes_in)} became "
            f"{counted(self.files_out, 'file')} of {size(self.bytes_out)}{moved}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        other = self.other_compactor
        return {**asdict(self), "other_compactor": None if other is None else other.to_dict()}
