# SPDX-License-Identifier: Apache-2.0
"""Sequence groups of a partial-update table: columns that decide which values are newer."""

from __future__ import annotations

from dataclasses import dataclass

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.options import TableOptions
from lakeformat.paimon.schema import TableSchema

__all__ = ["SequenceGroup", "sequence_groups"]


@dataclass(frozen=True, slots=True)
class SequenceGroup:
    """Columns that decide which row is newer, and the columns whose values they decide about."""

    option: str
    """The key of the option that defines the group, for messages."""
    sequence: tuple[str, ...]
    """The columns that decide which row is newer, compared from left to right; null is the smallest
    value.
    """
    protected: tuple[str, ...]


def sequence_groups(schema: TableSchema) -> tuple[SequenceGroup, ...]:
    """Return the sequence groups of a table, sorted by option key.

    Raise InvalidRequestError if the groups name a column twice.
    """
    start, end = TableOptions.sequence_group.key.split("<column>")
    groups = tuple(
        _group(key, key.removeprefix(start).removesuffix(end), text)
        for key, text in sorted(schema.options.items())
        if TableOptions.sequence_group.sets(key)
    )
    _check_apart(groups)
    return groups


def _group(key: str, names: str, text: str) -> SequenceGroup:
    sequence = tuple(names.split(","))
    protected = TableOptions.sequence_group.parse(text, key)
    # A group may also list its own sequence columns, which always change with the group.
    return SequenceGroup(key, sequence, tuple(n for n in protected if n not in sequence))


def _check_apart(groups: tuple[SequenceGroup, ...]) -> None:
    owners: dict[str, str] = {}
    for group in groups:
        for name in (*group.sequence, *group.protected):
            if name in owners:
                owner = owners[name]
                where = "twice" if owner == group.option else f"and so does option {owner!r}"
                raise InvalidRequestError(
                    f"option {group.option!r} names the column {name!r} {where}: a column can be "
                    "named once, in one sequence group; remove one of the two"
                )
            owners[name] = group.option
