# SPDX-License-Identifier: Apache-2.0
"""Reports on tags, for people and programs."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from lakeformat.paimon.system_tables.tags import duration_text
from lakeformat.tables.moment import iso_text
from lakeformat.tables.report import Report

__all__ = ["TagInfo", "TagReport"]


@dataclass(frozen=True, slots=True)
class TagInfo:
    """One tag of a listing."""

    name: str
    snapshot_id: int
    schema_id: int
    commit_millis: int
    """Commit time of its snapshot."""
    rows: int
    created: str | None = None
    """Creation time in UTC; known only for tags with a retention time."""
    retained: timedelta | None = None
    expires: str | None = None
    """Expiry time in UTC; None for never."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON, with the names of ``$tags``."""
        return {
            "tag_name": self.name,
            "snapshot_id": self.snapshot_id,
            "schema_id": self.schema_id,
            "commit_time": iso_text(self.commit_millis),
            "record_count": self.rows,
            "create_time": None if self.created is None else self.created.replace(" ", "T"),
            "time_retained": None if self.retained is None else duration_text(self.retained),
            "expire_time": None if self.expires is None else self.expires.replace(" ", "T"),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class TagReport(Report):
    """The result for one tag."""

    table: str
    tag: str
    action: str
    """``created``, ``kept``, ``replaced`` or ``renamed``; in a dry run the planned action."""
    snapshot_id: int
    retained_seconds: float | None = None
    reason: str = field(default="")
    """The outcome in one sentence, for the log."""
    dry_run: bool = False
