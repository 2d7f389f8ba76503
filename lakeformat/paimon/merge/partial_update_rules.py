"""What a partial-update table says about its columns, as the engine wants to know it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from lakeformat.paimon.merge.functions.function import AggregateFunction
from lakeformat.paimon.schema_changes.sequence_groups import SequenceGroup

__all__ = ["PartialUpdateRules"]


@dataclass(frozen=True)
class PartialUpdateRules:
    """Which columns follow which sequence, which are aggregated, and what a delete does."""

    columns: tuple[str, ...]
    """Every column of the table, in its order."""
    keys: tuple[str, ...] = ()
    """Those that identify a row, for errors."""
    not_null: frozenset[str] = frozenset()
    groups: tuple[SequenceGroup, ...] = ()
    functions: Mapping[str, AggregateFunction] = field(default_factory=dict)
    """Of protected columns that are aggregated."""
    ignore_delete: bool = False
    remove_on_delete: bool = False
    remove_on_groups: frozenset[str] = frozenset()
    """Sequence columns whose group removes the row with a delete that is not late."""

    @cached_property
    def group_of(self) -> Mapping[str, int]:
        """Which group a sequence or protected column is in."""
        return {
            name: number
            for number, group in enumerate(self.groups)
            for name in (*group.sequence, *group.protected)
        }

    @cached_property
    def place_of(self) -> Mapping[str, int]:
        """Where a column stands: columns are looked at from left to right."""
        return {name: place for place, name in enumerate(self.columns)}

    def removes(self, group: SequenceGroup) -> bool:
        """Whether a delete in this group removes the row."""
        return not self.remove_on_groups.isdisjoint(group.sequence)
