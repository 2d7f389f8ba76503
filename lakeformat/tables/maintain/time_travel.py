# SPDX-License-Identifier: Apache-2.0
"""Describes the files that a table keeps only for older snapshots."""

from __future__ import annotations

from collections.abc import Sequence

from lakeformat.tables.health.numbers import StorageNumbers
from lakeformat.tables.maintain.maintain_report import StepReport
from lakeformat.types.byte_size import size
from lakeformat.types.count_text import counted

__all__ = ["files_for_time_travel"]


def files_for_time_travel(
    storage: StorageNumbers | None, steps: Sequence[StepReport], *, dry_run: bool
) -> str | None:
    """Return a clause about the files that are kept only for time travel; None without such files.

    In a dry run whose compaction would replace files, the clause is only about these files: after
    the compaction, they would be kept for time travel.
    """
    replaced = sum(step.files_in for step in steps) if dry_run else 0
    if replaced:
        verb = "is" if replaced == 1 else "are"
        files = f"{counted(replaced, 'file')}, which {verb} then kept for time travel"
        return f"the compaction would replace {files}"
    if storage is None or not storage.time_travel_files:
        return None
    kept, held = storage.time_travel_files, size(storage.time_travel_bytes or 0)
    verb = "is" if kept == 1 else "are"
    return f"{counted(kept, 'file')} of {held} {verb} kept only for time travel"
