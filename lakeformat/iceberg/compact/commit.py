# SPDX-License-Identifier: Apache-2.0
"""Commits a compaction: new files with the same rows replace the old files."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lakeformat.iceberg.compact.plan import CompactPlan
from lakeformat.iceberg.compact.run import RewrittenUnit
from lakeformat.iceberg.write.replace_files import ReplaceFiles

__all__ = ["replace_units"]


def replace_units(plan: CompactPlan, made: Sequence[RewrittenUnit]) -> ReplaceFiles:
    """Return the change that replaces the files of rewritten groups."""
    assert plan.snapshot is not None
    return ReplaceFiles(
        name=f"compaction of {plan.table}",
        planned=plan.loaded.metadata,
        snapshot=plan.snapshot,
        files=[file for each in made for file in each.unit.files],
        added=pa.concat_tables([each.entries for each in made]),
    )
