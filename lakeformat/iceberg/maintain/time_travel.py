# SPDX-License-Identifier: Apache-2.0
"""Describes the files that a table keeps only for older snapshots."""

from __future__ import annotations

from collections.abc import Sequence

from lakeformat.iceberg.health import IcebergHealthReport
from lakeformat.tables.maintain.maintain_report import StepReport
from lakeformat.tables.maintain.time_travel import files_for_time_travel

__all__ = ["time_travel_note"]


def time_travel_note(
    health: IcebergHealthReport | None, steps: Sequence[StepReport], table: str, *, dry_run: bool
) -> str | None:
    """Return a sentence about the files that only older snapshots need and what keeps them; None if
    there are none.
    """
    storage = None if health is None else health.storage
    what = files_for_time_travel(storage, steps, dry_run=dry_run)
    if what is None:
        return None
    return (
        f"{what}: their snapshots are kept by 'history.expire.max-snapshot-age-ms', "
        "'history.expire.min-snapshots-to-keep', tags and branches. Once these have expired, "
        f"lake maintain {table} deletes the files"
    )
