# SPDX-License-Identifier: Apache-2.0
"""Compactions that look up the old row of a key in files of higher levels.

Files of levels above the output are read together with the compacted files if their keys overlap.
One pass over all of them finds every row that is replaced. The files of higher levels are not
written again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from lakeformat.paimon.compact.changelogs.changelog import Merged, Unchanged, changes_of
from lakeformat.paimon.merge.deduplicate import Deduplicate
from lakeformat.paimon.merge.engine import MergeEngine
from lakeformat.paimon.merge.first_row import FirstRow
from lakeformat.paimon.merge.ignored_deletes import meeting_retracts, without
from lakeformat.paimon.merge.looked_up import LEVEL, NOWHERE, Levels, current_rows
from lakeformat.rows.groups import KeyGroups, Mask, Positions
from lakeformat.rows.take_rows import take_rows

__all__ = ["LookupMerge", "keys_without", "trivial_groups", "without_ignored"]


@dataclass(frozen=True, slots=True)
class LookupMerge:
    """Merges the rows of level 0 with the newest row of a higher level, if the key has one.

    Each key with a row of level 0 counts as changed.
    """

    engine: MergeEngine
    output_level: int
    """The level of the new files. Files of higher levels are only read, to find old rows."""
    unchanged: Unchanged | None = None
    makes_changelog: bool = True
    """True to make the changelog; False to leave it empty."""

    def merge(self, rows: pa.Table, groups: KeyGroups | None) -> Merged:
        levels = rows[LEVEL].to_numpy()
        stored = rows.drop_columns([LEVEL])
        if groups is None:
            if not (levels == 0).any():
                kept = levels <= self.output_level
                found = stored if kept.all() else take_rows(stored, np.flatnonzero(kept))
                return Merged(found, stored.slice(0, 0))
            groups = trivial_groups(rows)
        groups = replace(groups, with_lone=bool((levels == 0).any()))
        groups = without_ignored(self.engine, stored, groups)
        groups = keys_without(groups, levels, self.output_level)
        current = current_rows(groups, levels)
        after = self.engine.merge(stored, current.groups)
        compacted, is_fresh = current.compacted, current.is_fresh
        in_changelog = is_fresh if self.makes_changelog else np.zeros(len(after), np.bool_)
        changelog = changes_of(
            stored, compacted, after, seen=in_changelog, unchanged=self.unchanged
        )
        return Merged(after, changelog, self._superseded(compacted, levels, is_fresh))

    def _superseded(self, compacted: Positions, levels: Levels, fresh: Mask) -> Positions:
        found = compacted[fresh & (compacted != NOWHERE)]
        superseded: Positions = found[levels[found] > self.output_level]
        return superseded


def trivial_groups(rows: pa.Table) -> KeyGroups:
    """Return one group for each row; no two of ``rows`` may have the same key."""
    positions = np.arange(rows.num_rows)
    return KeyGroups(positions, positions)


def without_ignored(engine: MergeEngine, rows: pa.Table, groups: KeyGroups) -> KeyGroups:
    """Return the groups without the deletes that ``ignore-delete`` drops, and without keys that
    have no other row.

    The groups are unchanged if ``ignore-delete`` is not set. They are also unchanged for engines
    other than ``deduplicate`` and ``first-row``.
    """
    if isinstance(engine, Deduplicate | FirstRow) and engine.ignore_delete:
        return without(groups, meeting_retracts(rows, groups))
    return groups


def keys_without(groups: KeyGroups, levels: Levels, output_level: int) -> KeyGroups:
    """Return the groups without keys whose rows are all in levels above ``output_level``.

    ``levels`` has the level of each row.
    """
    if not len(groups) or levels.max(initial=0) <= output_level:
        return groups
    is_input = np.minimum.reduceat(levels[groups.order], groups.starts) <= output_level
    if is_input.all():
        return groups
    return without(groups, ~is_input[groups.key_of])
