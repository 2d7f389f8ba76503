# SPDX-License-Identifier: Apache-2.0
"""A tag as ``table.tags.list()`` returns it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from lakeformat.tables.moment import iso_text
from lakeformat.types.duration_text import java_duration

__all__ = ["TagInfo"]


@dataclass(frozen=True, slots=True)
class TagInfo:
    """One tag, as ``table.tags.list()`` returns it."""

    name: str
    snapshot_id: int
    schema_id: int
    commit_millis: int
    """The commit time of the tag's snapshot, in epoch milliseconds."""
    rows: int
    created: str | None = None
    """Creation time in UTC; known only for tags with a retention time."""
    retained: timedelta | None = None
    expires: str | None = None
    """Expiry time in UTC; None for never."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON. The keys are the columns of ``$tags``, and
        ``expire_time``.
        """
        return {
            "tag_name": self.name,
            "snapshot_id": self.snapshot_id,
            "schema_id": self.schema_id,
            "commit_time": iso_text(self.commit_millis),
            "record_count": self.rows,
            "create_time": None if self.created is None else self.created.replace(" ", "T"),
            "time_retained": None if self.retained is None else java_duration(self.retained),
            "expire_time": None if self.expires is None else self.expires.replace(" ", "T"),
        }
