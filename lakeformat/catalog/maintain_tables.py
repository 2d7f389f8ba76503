"""Maintenance of many tables, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from lakeformat.paimon.maintain.maintain_report import MaintainReport
from lakeformat.tables.table_by_table import TableOutcome, table_by_table

__all__ = ["maintain_tables"]


class Maintainable(Protocol):
    """A table that maintains itself."""

    def maintain(self, **how: Any) -> MaintainReport:
        """Maintain it."""
        ...


class Tables(Protocol):
    """A catalog, as far as this module needs it."""

    def table(self, name: str) -> Maintainable:
        """The table of a name."""
        ...


def maintain_tables(
    catalog: Tables,
    names: Sequence[str],
    *,
    began: Callable[[str], None] | None = None,
    **how: Any,
) -> Iterator[TableOutcome[MaintainReport]]:
    """Maintain each table as ``Table.maintain`` does; one that fails stops no other.

    ``began`` is called with the name of each before its first step.
    """

    def maintain(name: str) -> MaintainReport:
        return catalog.table(name).maintain(**how)

    yield from table_by_table(names, maintain, began=began)
