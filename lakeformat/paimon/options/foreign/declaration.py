# SPDX-License-Identifier: Apache-2.0
"""The declaration of an option of other engines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from lakeformat.paimon.options.operation import Operation

__all__ = ["ForeignClass", "ForeignOption", "Trait", "by_key"]


class ForeignClass(StrEnum):
    """The effect that an option of other engines has here."""

    THEIRS = "theirs"
    """Ignored: it concerns the jobs of another engine alone."""
    LAYOUT = "layout"
    """Ignored: the rows are the same, their files differ in size, order or encoding."""
    MEANING = "meaning"
    """Some operations would give wrong rows or break a promise, and are refused."""


class Trait(StrEnum):
    """A property of tables on which the effect of some options depends."""

    KEYED = "primary-key tables"
    MAIN = "the branch main"
    PARTITIONED = "partitioned tables"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignOption:
    """One option that this version does not carry out."""

    kind: ForeignClass
    says: str
    """The effect in other engines, as a clause for messages: "calls Java classes"."""
    advice: str = ""
    """The next step for the caller whose operation is refused."""
    refuses: frozenset[Operation] = frozenset()
    harmless: tuple[str, ...] = ()
    """Values with which the option refuses no operation, in lower case."""
    only: Trait | None = None
    """The option affects only tables with this trait; None: all tables."""
    apart: bool = False
    """True if a separate check refuses the operations, because it depends on other options too."""

    def is_harmless(self, value: str) -> bool:
        """Return True if the option refuses no operation with this value."""
        return not self.refuses or value.strip().lower() in self.harmless

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
    """Declare options that refuse no operation, from a map of each reason to its keys."""
    return {
        key: ForeignOption(kind=kind, says=reason)
        for reason, keys in by_reason.items()
        for key in keys
    }
