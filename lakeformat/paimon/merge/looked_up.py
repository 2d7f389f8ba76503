# SPDX-License-Identifier: Apache-2.0
"""Merges rows of tables whose compactions look up older rows.

The row of a key at the lowest level above 0 already includes the rows of this key at all higher
levels. Merging the included rows again would count them twice.
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
"""The column with the level of the file that a row was read from."""

NOWHERE = -1

Levels = npt.NDArray[np.int32]


def looks_up(options: TableOptions) -> bool:
    """Return True if compactions of the table look up all older rows of a key and merge them."""
    return options.looks_up


def supersedes(options: TableOptions) -> bool:
    """Return True if reads must leave out rows that a row of a lower level already includes.

    Engines that keep one whole row do not need this: they return the same row with and without
    the included rows.
    """
    return looks_up(options) and options.merge_engine in ("aggregation", "partial-update")


def with_level(batch: pa.RecordBatch, level: int) -> pa.RecordBatch:
    """Return the batch with an additional column ``LEVEL``, which is ``level`` in each row.

    ``level`` is the level of the file from which the batch was read.
    """
    levels = pa.array(np.full(batch.num_rows, level, np.int32))
    return pa.RecordBatch.from_arrays(
        [*batch.columns, levels], schema=batch.schema.append(pa.field(LEVEL, pa.int32()))
    )


@dataclass(frozen=True, slots=True)
class CurrentRows:
    """The rows of each key, without the rows that a row of a lower level already includes.

    Positions of rows are positions in the table that was grouped.
    """

    groups: KeyGroups
    compacted: Positions
    """For each key, the position of its row above level 0; ``NOWHERE`` if it has none."""
    is_fresh: Mask
    """A mask of the keys that have a row of level 0."""


def current_rows(groups: KeyGroups, levels: Levels) -> CurrentRows:
    """Return the rows of each key that must still be merged, given the level of each row."""
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
    """Keep the rows of level 0, and for each key its row at the lowest level above 0.

    ``places`` are the positions in ``groups.order`` of all rows above level 0. Return the new
    groups, and the positions in their ``order`` of the kept rows above level 0.
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
    # A place moves forward by the number of ignored rows before it.
    return without(groups, ignored), left - np.cumsum(ignored)[left]


@dataclass(frozen=True, slots=True)
class LookedUp:
    """A merge engine for reads: drops the rows that a row of a lower level includes, then merges.

    Its input has a column ``LEVEL`` with the level of each row; its result has no such column.
    """

    engine: MergeEngine

    def needs(self, columns: Sequence[str]) -> tuple[str, ...]:
        return self.engine.needs(columns)

    def merge(self, rows: pa.Table, groups: KeyGroups) -> pa.Table:
        levels = rows[LEVEL].to_numpy()
        current = current_rows(groups, levels).groups
        return self.engine.merge(rows.drop_columns([LEVEL]), current)
