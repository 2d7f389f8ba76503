# SPDX-License-Identifier: Apache-2.0
"""Producer ``full-compaction``: the difference between two full compactions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakeformat.paimon.compact.changelogs.changelog import Merged, Unchanged, changes_of
from lakeformat.paimon.compact.changelogs.lookup import trivial_groups, without_ignored
from lakeformat.paimon.merge.engine import MergeEngine
from lakeformat.paimon.merge.looked_up import LEVEL, NOWHERE
from lakeformat.rows.groups import KeyGroups

__all__ = ["FullChangelogMerge"]


@dataclass(frozen=True, slots=True)
class FullChangelogMerge:
    """Compares the merged rows with the rows of the highest level.

    The highest level is the state after the last full compaction. A key without a row of a lower
    level is unchanged.
    """

    engine: MergeEngine
    max_level: int
    unchanged: Unchanged | None = None

    def merge(self, rows: pa.Table, groups: KeyGroups | None) -> Merged:
        levels = rows[LEVEL].to_numpy()
        stored = rows.drop_columns([LEVEL])
        if groups is None:
            groups, after = trivial_groups(rows), stored
        else:
            groups = without_ignored(self.engine, stored, groups)
            after = self.engine.merge(stored, groups)
        before = np.full(len(groups), NOWHERE)
        places = np.flatnonzero(levels[groups.order] == self.max_level)
        before[groups.key_of[places]] = groups.order[places]
        in_changelog = (before == NOWHERE) | (groups.sizes > 1)
        changelog = changes_of(stored, before, after, seen=in_changelog, unchanged=self.unchanged)
        return Merged(after, changelog)
