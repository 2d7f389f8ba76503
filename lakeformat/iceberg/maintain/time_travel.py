# SPDX-License-Identifier: Apache-2.0
"""A sentence about the files that a table keeps only for older snapshots."""

from __future__ import annotations

from collections.abc import Sequence

from lakeformat.iceberg.health import IcebergHealthReport
from lakeformat.tables.maintain.maintain_report import StepReport
from lakeformat.types.byte_size import size
from lakeformat.types.count_text import counted

__all__ = ["time_travel_note"]


def time_travel_note(
    health: IcebergHealthReport | None, steps: Sequence[StepReport], table: str, *, dry_run: bool
) -> str | None:
    """Return the number of files, and until when they are kept; None if there are none."""
    replaced = sum(step.files_in for step in steps) if dry_run else 0
    if replaced:
        what = f"the compaction replaces {counted(replaced, 'file')}, kept for time travel"
    elif health is not None and health.storage.time_travel_files:
        kept, held = health.storage.time_travel_files, size(health.storage.time_travel_bytes or 0)
        what = f"{counted(kept, 'file')} of {held} are kept only for time travel"
    else:
        return None
    return (
        f"{what}: their snapshots are kept by 'history.expire.max-snapshot-age-ms', "
        "'history.expire.min-snapshots-to-keep', tags and branches. Once these have expired, "
        f"lake maintain {table} deletes the files"
    )
