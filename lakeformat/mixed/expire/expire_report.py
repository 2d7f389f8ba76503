# SPDX-License-Identifier: Apache-2.0
"""The report of an expiry of a Mixed table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from lakeformat.iceberg.expire.expire_report import IcebergExpireReport
from lakeformat.types.byte_size import size
from lakeformat.types.count_text import counted

__all__ = ["MixedExpireReport"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedExpireReport(IcebergExpireReport):
    """The report of an expiry of both stores, or of its dry run; its numbers are the sums
    of both.
    """

    earliest_snapshot: None = None
    """Always None; the oldest snapshot of each store is in ``change`` and ``base``."""
    change: IcebergExpireReport
    """The expiry of snapshots of the change store."""
    base: IcebergExpireReport
    """The expiry of snapshots of the base store."""
    merged_files: int
    """The number of files with merged changes that the change store does not list any more; they
    are deleted when its older snapshots expire."""
    merged_rows: int
    merged_bytes: int
    open_batch: str | None
    """The oldest batch that has begun but not committed, for which changes and snapshots are kept;
    None if there is none."""
    to_end_batch: str | None = field(default=None, repr=False)
    """A sentence with the command that ends ``open_batch``; None if no batch is open."""

    @property
    def has_work(self) -> bool:
        """True if something expired, or would expire in a dry run."""
        return bool(self.snapshots or self.references or self.merged_files)

    @property
    def lines(self) -> tuple[str, ...]:
        """Lines about the work that was done, or that a dry run would do."""
        return tuple(self._lines())

    def _lines(self) -> Iterator[str]:
        # Commands find the consumers of the pair by the name or address of the base store.
        change = replace(self.change, table=self.table)
        for name, report in (("change", change), ("base", self.base)):
            yield from (f"{name} store: {line}" for line in report.lines)
        verb = "would remove" if self.dry_run else "removed"
        if self.merged_files:
            yield (
                f"{verb} {counted(self.merged_files, 'file')} of {size(self.merged_bytes)} with "
                f"{counted(self.merged_rows, 'merged change')} from the newest snapshot of the "
                "change store; a later expiry of its older snapshots deletes the files"
            )
        if self.open_batch:
            since = f"the oldest open batch, {self.open_batch}"
            yield f"kept all changes since {since}: {self.to_end_batch}"

    def to_dict(self) -> dict[str, Any]:
        """Return the report as a dict, without the list of files."""
        found = IcebergExpireReport.to_dict(self)
        for key in ("earliest_snapshot", "schemas", "partition_specs"):
            found.pop(key)
        return {
            **found,
            "merged_files": self.merged_files,
            "merged_rows": self.merged_rows,
            "merged_bytes": self.merged_bytes,
            "open_batch": self.open_batch,
            "change": self.change.to_dict(),
            "base": self.base.to_dict(),
        }
