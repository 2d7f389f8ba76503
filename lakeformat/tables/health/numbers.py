# SPDX-License-Identifier: Apache-2.0
"""Numbers about snapshots and stored bytes in the health report of a table of any format."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["HistoryNumbers", "StorageNumbers"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryNumbers:
    """The number and age of the snapshots, and the number of tags and branches."""

    count: int = 0
    oldest: int | None = None
    """The id of the oldest snapshot; None without snapshots."""
    newest: int | None = None
    """The id of the newest snapshot of the branch; None without snapshots."""
    oldest_age_seconds: float | None = None
    newest_age_seconds: float | None = None
    tags: int = 0
    branches: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageNumbers:
    """The bytes of a table's files: of the newest snapshot, and of files kept for time travel."""

    live_bytes: int = 0
    """The bytes of files that the newest snapshot needs."""
    time_travel_files: int | None = None
    time_travel_bytes: int | None = None
    """The bytes of files that only older snapshots, tags, branches or changelogs need; None if not
    measured.
    """
