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
    """The effect in other engines; follows "which" in a message if it has a meaning."""
    advice: str = ""
    """The next step for the caller whose operation is refused."""
    refuses: frozenset[Operation] = frozenset()
    harmless: tuple[str, ...] = ()
    """Values at which it refuses nothing, in lower case."""
    only: Trait | None = None
    """It has no effect on tables without this trait."""
    apart: bool = False
    """True if a separate check refuses the operations, because it depends on other options too."""

    def is_harmless(self, value: str) -> bool:
        """Return True if it refuses nothing with this value."""
        return not self.refuses or value.strip().lower() in self.harmless

    def forbids(self, operation: Operation, value: str, traits: frozenset[Trait]) -> bool:
        """Return True if a table with this value cannot be worked on in this way."""
        return (
            operation in self.refuses
            and not self.apart
            and not self.is_harmless(value)
            and (self.only is None or self.only in traits)
        )


def by_key(
    kind: ForeignClass, by_reason: Mapping[str, tuple[str, ...]]
) -> dict[str, ForeignOption]:
    """Declare options that refuse nothing, given as keys below their common reason."""
    return {
        key: ForeignOption(kind=kind, says=reason)
        for reason, keys in by_reason.items()
        for key in keys
    }
