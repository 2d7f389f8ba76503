# SPDX-License-Identifier: Apache-2.0
"""Changelog rows of a compaction: for each changed key the old row, the new row, or both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakeformat.paimon.datafile.system_fields import SEQUENCE_NUMBER, VALUE_KIND
from lakeformat.paimon.merge.looked_up import NOWHERE
from lakeformat.paimon.read.equal_rows import equal_rows
from lakeformat.paimon.schema import TableSchema
from lakeformat.rows.groups import KeyGroups, Mask, Positions
from lakeformat.rows.row_kinds import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE, is_retract
from lakeformat.rows.take_rows import take_rows

__all__ = ["ChangelogMerge", "Merged", "Unchanged", "changes_of", "inserted"]


@dataclass(frozen=True, slots=True)
class Merged:
    """The rows to write and the changelog rows of one merge."""

    rows: pa.Table
    """The merged rows, at most one for each key, in key order; rows of kind DELETE are included."""
    changelog: pa.Table
    """Changelog rows, in key order."""
    superseded: Positions | None = None
    """The rows of higher levels that the merge replaces, as indexes into the unmerged rows.

    None if the merge never replaces such rows.
    """


class ChangelogMerge(Protocol):
    """Merges rows by key, and finds their changelog."""

    def merge(self, rows: pa.Table, groups: KeyGroups | None) -> Merged:
        """Merge ``rows``, which have the level of their file in the column ``LEVEL``.

        ``groups`` are the rows of each key; None if each key occurs once.
        """
        ...


@dataclass(frozen=True, slots=True)
class Unchanged:
    """Finds updates that change no value, which ``changelog-producer.row-deduplicate`` omits."""

    columns: tuple[str, ...]

    @classmethod
    def of_schema(cls, schema: TableSchema) -> Unchanged | None:
        """Return the comparison that the options require; None if the changelog has every
        update.
        """
        options = schema.table_options
        if not options.changelog_row_deduplicate:
            return None
        ignored = {*options.changelog_row_deduplicate_ignore_fields, *schema.primary_keys}
        return cls(tuple(name for name in schema.column_names if name not in ignored))

    def mask(self, before: pa.Table, after: pa.Table) -> Mask:
        """Return a mask of the rows with equal values in ``before`` and ``after``."""
        return equal_rows(before.select(self.columns), after.select(self.columns))


def changes_of(
    rows: pa.Table,
    before: Positions,
    after: pa.Table,
    *,
    seen: Mask,
    unchanged: Unchanged | None,
) -> pa.Table:
    """Return the changelog: one row for each added or deleted key, two for each updated key.

    ``before`` has the index in ``rows`` of each key's old row, or ``NOWHERE`` for a new key.
    ``after`` has one row for each key: its new row, or a row of a delete kind if the key is
    deleted. ``seen`` is True for the keys that may have changed.
    ``unchanged`` finds the updates to leave out; None keeps all updates.
    """
    had, has = _were_there(rows, before) & seen, ~_retracts(after) & seen
    if unchanged is not None:
        both = np.flatnonzero(had & has)
        same = unchanged.mask(
            take_rows(rows.select(after.schema.names), before[both]), take_rows(after, both)
        )
        had[both[same]] = has[both[same]] = False
    old, new = np.flatnonzero(had), np.flatnonzero(has)
    if not len(old):
        return inserted(after if len(new) == len(after) else take_rows(after, new))
    counts = had.astype(np.int64) + has
    ends = np.cumsum(counts)
    order = np.empty(len(old) + len(new), np.int64)
    kinds = np.empty(len(order), np.int8)
    for keys, places, positions, alone, paired in (
        (old, (ends - counts)[old], before[old], DELETE, UPDATE_BEFORE),
        (new, (ends - 1)[new], rows.num_rows + new, INSERT, UPDATE_AFTER),
    ):
        order[places] = positions
        kinds[places] = np.where(counts[keys] == 2, paired, alone)
    both_sides = pa.concat_tables([rows.select(after.schema.names), after])
    return _with_kinds(take_rows(both_sides, order), kinds)


def inserted(rows: pa.Table) -> pa.Table:
    """Return changelog rows of kind INSERT for new keys, without keys whose row is a delete."""
    retracts = _retracts(rows)
    if retracts.any():
        rows = take_rows(rows, np.flatnonzero(~retracts))
    return _with_kinds(rows, np.full(rows.num_rows, INSERT, np.int8))


def _were_there(rows: pa.Table, before: Positions) -> Mask:
    found: Mask = before != NOWHERE
    found[found] = ~_retracts(rows)[before[found]]
    return found


def _retracts(rows: pa.Table) -> Mask:
    return is_retract(rows[VALUE_KIND.name].to_numpy())


def _with_kinds(rows: pa.Table, kinds: npt.NDArray[np.int8]) -> pa.Table:
    at = rows.schema.get_field_index(VALUE_KIND.name)
    assert rows.schema.names[0] == SEQUENCE_NUMBER.name
    return rows.set_column(at, rows.schema.field(at), pa.array(kinds))
