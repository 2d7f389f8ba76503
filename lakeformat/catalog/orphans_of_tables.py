"""Removes the orphan files of many tables, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from lakeformat.paimon.orphans.orphan_report import OrphanReport
from lakeformat.tables.table_by_table import TableOutcome, table_by_table

__all__ = ["remove_orphans_of"]


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


def remove_orphans_of(
    catalog: Tables,
    names: Sequence[str],
    *,
    began: Callable[[str], None] | None = None,
    **how: Any,
) -> Iterator[TableOutcome[OrphanReport]]:
    """Each table as ``Table.remove_orphans`` does it; one that fails stops no other.

    ``began`` hears the name of each before it is looked at.
    """

    def remove(name: str) -> OrphanReport:
        return catalog.table(name).remove_orphans(**how)

    yield from table_by_table(names, remove, began=began)
