# SPDX-License-Identifier: Apache-2.0
"""The numbers of a table that a maintenance report compares: before and after."""

from __future__ import annotations

from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.health import HealthReport, check_health
from lakeformat.paimon.metadata.changelog_directory import changelog_ids
from lakeformat.tables.maintain.maintain_report import Figures

__all__ = ["measure"]


def measure(handle: TableHandle) -> tuple[HealthReport, Figures]:
    """Return the health of a table, and the numbers of it that a maintenance report compares.

    Orphan files are not counted, because that needs a listing.
    """
    health = check_health(handle)
    files, storage = health.files, health.storage
    return health, Figures(
        verdict=health.verdict,
        score=health.score,
        files=files.files,
        level_0_files=files.level_0_files,
        most_sorted_runs=files.most_sorted_runs,
        live_bytes=storage.live_bytes,
        snapshots=health.snapshots.count,
        changelogs=len(changelog_ids(handle.storage, handle.layout)),
        time_travel_files=storage.time_travel_files,
        time_travel_bytes=storage.time_travel_bytes,
    )
