"""Tables whose compactions look rows up: what is above level 0 has met all older rows already.

Of the rows of a key above level 0 the one of the lowest level is what the others came to; merging
it with them again would count them twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakeformat.paimon.merge.engine import MergeEngine
from lakeformat.paimon.merge.ignored_deletes import without
from lakeformat.paimon.options import TableOptions
from lakeformat.rows.groups import KeyGroups, Mask, Positions

__all__ = [
    "LEVEL",
    "NOWHERE",
    "CurrentRows",
    "Levels",
    "LookedUp",
    "current_rows",
    "looks_up",
    "supersedes",
    "with_level",
]

LEVEL = "_LEVEL"
"""The column that says which level of its bucket a row comes from."""

NOWHERE = -1

Levels = npt.NDArray[np.int32]


def looks_up(options: TableOptions) -> bool:
    """Whether compactions of a table with a primary key merge new rows with all older ones."""
    return options.looks_up


def supersedes(options: TableOptions) -> bool:
    """Whether a read must leave out rows of higher levels that a lower one has in it already.

    The engines that take a whole row from somewhere come to the same either way.
    """
    return looks_up(options) and options.merge_engine in ("aggregation", "partial-update")


def with_level(batch: pa.RecordBatch, level: int) -> pa.RecordBatch:
    """Rows of a file with the level of that file."""
    levels = pa.array(np.full(batch.num_rows, level, np.int32))
    return pa.RecordBatch.from_arrays(
        [*batch.columns, levels], schema=batch.schema.append(pa.field(LEVEL, pa.int32()))
    )


@dataclass(frozen=True, slots=True)
class CurrentRows:
    """The rows of each key without those that a lower level has superseded."""

    groups: KeyGroups
    compacted: Positions
    """The one row of each key that is above level 0, else ``NOWHERE``."""
    is_fresh: Mask
    """Which keys have a row of level 0."""


def current_rows(groups: KeyGroups, levels: Levels) -> CurrentRows:
    """What is left to merge of each key."""
    found = levels[groups.order]
    places = np.flatnonzero(found > 0)
    is_fresh = np.zeros(len(groups), np.bool_)
    is_fresh[groups.key_of[found == 0]] = True
    groups, places = _without_superseded(groups, found, places)
    compacted = np.full(len(groups), NOWHERE)
    compacted[groups.key_of[places]] = groups.order[places]
    return CurrentRows(groups, compacted, is_fresh)


def _without_superseded(
    groups: KeyGroups, levels: Levels, places: Positions
) -> tuple[KeyGroups, Positions]:
    """The groups with one row above level 0 for each key, and where in their order those are.

    ``places`` are those of all rows above level 0.
    """
    keys = groups.key_of[places]
    is_first = np.append(True, keys[1:] != keys[:-1])[: len(places)]
    if is_first.all():
        return groups, places
    found = levels[places]
    lowest = np.minimum.reduceat(found, np.flatnonzero(is_first))
    is_superseded = found > lowest[np.cumsum(is_first) - 1]
    ignored = np.zeros(len(levels), np.bool_)
    ignored[places[is_superseded]] = True
    left = places[~is_superseded]
    # Every ignored row before a place brings it one further to the front.
    return without(groups, ignored), left - np.cumsum(ignored)[left]


@dataclass(frozen=True, slots=True)
class LookedUp:
    """An engine for reads: rows come with their level, which is left out of the result."""

    engine: MergeEngine

    def needs(self, columns: Sequence[str]) -> tuple[str, ...]:
        return self.engine.needs(columns)

    def merge(self, rows: pa.Table, groups: KeyGroups) -> pa.Table:
        levels = rows[LEVEL].to_numpy()
        current = current_rows(groups, levels).groups
        return self.engine.merge(rows.drop_columns([LEVEL]), current)
