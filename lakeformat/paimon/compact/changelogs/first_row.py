# SPDX-License-Identifier: Apache-2.0
"""Compactions of the merge engine ``first-row``.

A key gets one changelog row, by the compaction that moves its first row out of level 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from lakeformat.paimon.compact.changelogs.changelog import Merged, inserted
from lakeformat.paimon.compact.changelogs.lookup import (
    keys_without,
    trivial_groups,
    without_ignored,
)
from lakeformat.paimon.merge.first_row import FirstRow
from lakeformat.paimon.merge.ignored_deletes import without
from lakeformat.paimon.merge.looked_up import LEVEL
from lakeformat.rows.groups import KeyGroups
from lakeformat.rows.take_rows import take_rows

__all__ = ["FirstRowMerge"]


@dataclass(frozen=True, slots=True)
class FirstRowMerge:
    """Keeps the first row of each key.

    A row of level 0 is dropped if a file of a higher level already has a row with the same key.
    """

    engine: FirstRow
    output_level: int
    """The level of the new files. Files of higher levels are only read, to find known keys."""

    def merge(self, rows: pa.Table, groups: KeyGroups | None) -> Merged:
        levels = rows[LEVEL].to_numpy()
        stored = rows.drop_columns([LEVEL])
        groups = replace(trivial_groups(rows) if groups is None else groups, with_lone=True)
        groups = without_ignored(self.engine, stored, groups)
        groups = keys_without(groups, levels, self.output_level)
        if not len(groups):
            return Merged(stored.slice(0, 0), stored.slice(0, 0))
        found = levels[groups.order]
        is_above = found > self.output_level
        is_known = np.logical_or.reduceat((found > 0) & ~is_above, groups.starts)
        is_elsewhere = np.logical_or.reduceat(is_above, groups.starts) & ~is_known
        kept = without(groups, is_above | is_elsewhere[groups.key_of])
        firsts = self.engine.merge(stored, kept)
        is_new = ~is_known[~is_elsewhere]
        return Merged(firsts, inserted(take_rows(firsts, np.flatnonzero(is_new))))
