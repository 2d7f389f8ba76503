# SPDX-License-Identifier: Apache-2.0
"""The declaration of an option that only other engines implement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from lakeformat.paimon.options.operation import Operation
from lakeformat.types.closest import closest

__all__ = ["ForeignClass", "ForeignOption", "Trait", "by_key"]


class ForeignClass(StrEnum):
    """The way this library treats an option that only other engines implement."""

    THEIRS = "theirs"
    """Ignored: the option concerns only the jobs of another engine."""
    LAYOUT = "layout"
    """Ignored: the option changes the size, order or encoding of files, but no rows."""
    MEANING = "meaning"
    """Some operations are refused. This library does not implement the option, so these operations
    would return or write wrong rows, or break a promise to readers.
    """


class Trait(StrEnum):
    """A property of a table, or of the branch that the caller opened.

    Some options have an effect only on tables or branches with a certain trait.
    """

    KEYED = "primary-key tables"
    MAIN = "operations on the branch main"
    PARTITIONED = "partitioned tables"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignOption:
    """One option that only other engines implement.

    ``refuses`` has the operations that this library refuses if a table sets the option.
    """

    kind: ForeignClass
    says: str
    """The effect in other engines, as a clause for messages, such as "calls Java classes".

    If no operation is refused, the text is a noun phrase, such as "settings of a Hive catalog".
    """
    advice: str = ""
    """The next step for the caller whose operation is refused."""
    refuses: frozenset[Operation] = frozenset()
    harmless: tuple[str, ...] = ()
    """The values, in lower case, with which no operation is refused."""
    values: tuple[str, ...] = ()
    """All values that the option has in other engines, in lower case; empty for free text."""
    only: Trait | None = None
    """Only tables with this trait are affected; None: all tables and branches."""
    apart: bool = False
    """True if the refusal also depends on the values of other options.

    Then ``forbids`` always returns False, and a check outside of this class refuses operations.
    """

    def is_harmless(self, value: str) -> bool:
        """Return True if no operation is refused when the option has this value."""
        return not self.refuses or value.strip().lower() in self.harmless

    def likely_value(self, value: str) -> str:
        """Return the end of an error message about an unknown value, with all known values.

        The message also names the nearest value, if one is near. Return an empty text if the value
        is known, or if all values are allowed.
        """
        if not self.values or value.strip().lower() in self.values:
            return ""
        listed = ", ".join(map(repr, self.values))
        return f". Its values are {listed}{closest(value, self.values)}"

    def forbids(self, operation: Operation, value: str, traits: frozenset[Trait]) -> bool:
        """Return True if ``operation`` is refused on a table with these traits and this value."""
        return (
            operation in self.refuses
            and not self.apart
            and not self.is_harmless(value)
            and (self.only is None or self.only in traits)
        )


def by_key(
    kind: ForeignClass, by_reason: Mapping[str, tuple[str, ...]]
) -> dict[str, ForeignOption]:
    """Return declarations of options that forbid no operation, by key.

    ``by_reason`` maps a description, such as "settings of a Hive catalog", to the keys
    that it describes.
    """
    return {
        key: ForeignOption(kind=kind, says=reason)
        for reason, keys in by_reason.items()
        for key in keys
    }
