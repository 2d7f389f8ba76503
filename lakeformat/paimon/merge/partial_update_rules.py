# SPDX-License-Identifier: Apache-2.0
"""The rules of a partial-update table for its columns, in the form the engine needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from lakeformat.paimon.merge.functions.function import AggregateFunction
from lakeformat.paimon.schema_changes.sequence_groups import SequenceGroup

__all__ = ["PartialUpdateRules"]


@dataclass(frozen=True)
class PartialUpdateRules:
    """The rules of a table: its sequence groups, aggregated columns, and the effect of deletes."""

    columns: tuple[str, ...]
    """Every column of the table, in the order of the schema."""
    keys: tuple[str, ...] = ()
    """The primary-key columns, for error messages."""
    not_null: frozenset[str] = frozenset()
    groups: tuple[SequenceGroup, ...] = ()
    functions: Mapping[str, AggregateFunction] = field(default_factory=dict)
    """The aggregate functions of columns in sequence groups, by column name."""
    ignore_delete: bool = False
    remove_on_delete: bool = False
    remove_on_groups: frozenset[str] = frozenset()
    """The sequence columns of the groups in which a delete removes the row.

    A delete that is older than the group's sequence removes nothing.
    """

    @cached_property
    def group_of(self) -> Mapping[str, int]:
        """The sequence group of each column, as a position in ``groups``, by column name.

        A group has sequence columns and protected columns. Columns without a group are absent.
        """
        return {
            name: number
            for number, group in enumerate(self.groups)
            for name in (*group.sequence, *group.protected)
        }

    @cached_property
    def place_of(self) -> Mapping[str, int]:
        """The position of each column in the table; columns are processed from left to right."""
        return {name: place for place, name in enumerate(self.columns)}

    def removes(self, group: SequenceGroup) -> bool:
        """Return True if a delete in this group removes the row."""
        return not self.remove_on_groups.isdisjoint(group.sequence)
