# SPDX-License-Identifier: Apache-2.0
"""The report of an expiry of an Iceberg table."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from lakeformat.tables.deleter import Deleted
from lakeformat.tables.expire_report import AnyExpireReport
from lakeformat.tables.removal import Removal
from lakeformat.types.count_text import counted

__all__ = ["IcebergExpireReport"]


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergExpireReport(AnyExpireReport):
    """The report of an expiry, or of its dry run."""

    table: str
    dry_run: bool
    snapshots: tuple[int, ...]
    """The ids of the expired snapshots, oldest first."""
    references: tuple[str, ...]
    """The names of branches and tags that were removed because of their age."""
    earliest_snapshot: int | None
    """The id of the oldest snapshot that was kept; None if the table has no snapshot."""
    deleted: Deleted
    outside: int = 0
    """The number of files that were kept, because they are outside of the table and of allowed
    directories."""
    held: int = 0
    """The number of snapshots that were kept only because a consumer has not read them."""
    needed: int = 0
    """The number of snapshots that were kept only because the Mixed table still needs them."""
    schemas: int = 0
    """The number of schemas that ``clean_metadata`` removed from the metadata."""
    partition_specs: int = 0
    """The number of partition specs that ``clean_metadata`` removed from the metadata."""
    removals: tuple[Removal, ...] = field(default=(), repr=False)
    """In a dry run without ``on_progress``, the files that would be deleted; else empty."""

    @property
    def has_work(self) -> bool:
        """True if the expiry removed snapshots, branches, tags, schemas or partition specs.

        In a dry run, True if it would remove some.
        """
        return bool(self.snapshots or self.references or self.schemas or self.partition_specs)

    @property
    def is_complete(self) -> bool:
        """True if no deletion failed; a file that could not be deleted is an orphan file."""
        return not self.deleted.failures

    @property
    def lines(self) -> tuple[str, ...]:
        """The outcome in lines: snapshots, branches, tags and files that expired, or would in a dry
        run.
        """
        return tuple(_lines(self))

    @property
    def reason(self) -> str:
        """The outcome in one sentence, for the log."""
        return "; ".join(self.lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as a dict, without the list of files."""
        return {
            "table": self.table,
            "dry_run": self.dry_run,
            "snapshots": [*self.snapshots],
            "references": [*self.references],
            "earliest_snapshot": self.earliest_snapshot,
            **self.deleted.to_dict(),
            "outside": self.outside,
            "held": self.held,
            "needed": self.needed,
            "schemas": self.schemas,
            "partition_specs": self.partition_specs,
        }


def _lines(report: IcebergExpireReport) -> Iterator[str]:
    verb = "would expire" if report.dry_run else "expired"
    count = len(report.snapshots)
    yield f"{counted(count, 'snapshot')} {verb}" if count else f"no snapshot {verb}"
    if report.held:
        yield (
            f"kept {counted(report.held, 'snapshot')} for the consumers that "
            f"`lake consumer list {shlex.quote(report.table)}` shows"
        )
    if report.needed:
        yield (
            f"kept {counted(report.needed, 'snapshot')} that the newest state or an open batch of "
            "the Mixed table needs"
        )
    removed = "would remove" if report.dry_run else "removed"
    unused = [
        counted(number, name)
        for number, name in ((report.schemas, "schema"), (report.partition_specs, "partition spec"))
        if number
    ]
    if unused:
        yield f"{removed} {' and '.join(unused)} that no kept snapshot uses"
    if report.references:
        yield f"{removed} branches and tags that are too old: {', '.join(report.references)}"
    deleted = report.deleted
    if deleted.total:
        yield deleted.line(dry_run=report.dry_run)
    if report.outside:
        yield (
            f"kept {counted(report.outside, 'file that is', 'files that are')} outside of the "
            "table and of the directories that external_roots allows"
        )
    if deleted.failures:
        failures = counted(deleted.failures, "file")
        yield f"{failures} could not be deleted; remove_orphans deletes them later"
