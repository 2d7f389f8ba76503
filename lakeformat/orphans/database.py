"""Removes the orphan files of many tables, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from lakeformat.errors import LakeError
from lakeformat.orphans.report import OrphanReport

__all__ = ["TableOutcome", "remove_orphans_of"]


class Cleanable(Protocol):
    """A table that removes its own orphan files."""

    def remove_orphans(self, **how: Any) -> OrphanReport:
        """Remove them."""
        ...


class Tables(Protocol):
    """A catalog, as far as this module needs it."""

    def table(self, name: str) -> Cleanable:
        """The table of a name."""
        ...


@dataclass(frozen=True, slots=True)
class TableOutcome:
    """What became of one table."""

    table: str
    report: OrphanReport | None = None
    error: LakeError | None = None
    """Why nothing was removed, or not all of it; the other tables are all the same."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "table": self.table,
            "report": None if self.report is None else self.report.to_dict(),
            "error": None if self.error is None else f"{type(self.error).__name__}: {self.error}",
        }


def remove_orphans_of(
    catalog: Tables,
    names: Sequence[str],
    *,
    began: Callable[[str], None] | None = None,
    **how: Any,
) -> Iterator[TableOutcome]:
    """Each table as ``Table.remove_orphans`` does it; one that fails stops no other.

    ``began`` hears the name of each before it is looked at.
    """
    for name in names:
        if began is not None:
            began(name)
        try:
            yield TableOutcome(name, report=catalog.table(name).remove_orphans(**how))
        except LakeError as error:
            yield TableOutcome(name, error=error)
