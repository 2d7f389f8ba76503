# SPDX-License-Identifier: Apache-2.0
"""The numbers that the health report has for a table of any format."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["HistoryNumbers", "StorageNumbers"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryNumbers:
    """The snapshots that have not expired, and the names that keep some of them."""

    count: int = 0
    oldest: int | None = None
    """The id of the oldest snapshot."""
    newest: int | None = None
    """The id of the newest snapshot of the branch."""
    oldest_age_seconds: float | None = None
    newest_age_seconds: float | None = None
    tags: int = 0
    branches: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageNumbers:
    """Bytes of files by their use."""

    live_bytes: int = 0
    """Read by the newest snapshot."""
    time_travel_files: int | None = None
    time_travel_bytes: int | None = None
    """Only for older snapshots, tags, branches and changelogs; None without ``time_travel``."""
