# SPDX-License-Identifier: Apache-2.0
"""The declaration of an option of other engines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from lakeformat.paimon.options.operation import Operation
from lakeformat.types.closest import closest

__all__ = ["ForeignClass", "ForeignOption", "Trait", "by_key"]


class ForeignClass(StrEnum):
    """The treatment of an option of other engines in this library."""

    THEIRS = "theirs"
    """Ignored: the option concerns only the jobs of another engine."""
    LAYOUT = "layout"
    """Ignored: the option changes the size, order or encoding of files, but no rows."""
    MEANING = "meaning"
    """Refuses some operations, which would give wrong rows or break a promise of the option."""


class Trait(StrEnum):
    """A property of tables on which the effect of some options depends."""

    KEYED = "primary-key tables"
    MAIN = "the branch main"
    PARTITIONED = "partitioned tables"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignOption:
    """One option of other engines, which this version does not implement.

    It may forbid operations.
    """

    kind: ForeignClass
    says: str
    """The effect in other engines, as a clause for messages, such as "calls Java classes"."""
    advice: str = ""
    """The next step for the caller whose operation is refused."""
    refuses: frozenset[Operation] = frozenset()
    harmless: tuple[str, ...] = ()
    """The values, in lower case, with which the option forbids no operation."""
    values: tuple[str, ...] = ()
    """All values that the option has in other engines, in lower case; empty for free text."""
    only: Trait | None = None
    """The property of the tables that the option affects; None: it affects all tables."""
    apart: bool = False
    """True if a separate check refuses the operations, because other options also decide
    about it.
    """

    def is_harmless(self, value: str) -> bool:
        """Return True if the option forbids no operation with this value."""
        return not self.refuses or value.strip().lower() in self.harmless

    def likely_value(self, value: str) -> str:
        """Return the end of a message about a value that no engine knows; else an empty text."""
        if not self.values or value.strip().lower() in self.values:
            return ""
        listed = ", ".join(map(repr, self.values))
        return f". Its values are {listed}{closest(value, self.values)}"

    def forbids(self, operation: Operation, value: str, traits: frozenset[Trait]) -> bool:
        """Return True if the operation is refused on a table with this value and these traits."""
        return (
            operation in self.refuses
            and not self.apart
            and not self.is_harmless(value)
            and (self.only is None or self.only in traits)
        )


def by_key(
    kind: ForeignClass, by_reason: Mapping[str, tuple[str, ...]]
) -> dict[str, ForeignOption]:
    """Declare options that forbid no operation; ``by_reason`` maps each reason to its keys."""
    return {
        key: ForeignOption(kind=kind, says=reason)
        for reason, keys in by_reason.items()
        for key in keys
    }
