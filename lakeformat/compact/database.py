"""Compacts many tables: those of a warehouse whose names match."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from lakeformat.compact.report import CompactReport
from lakeformat.errors import InvalidRequestError, LakeError

__all__ = ["TableOutcome", "compact_tables", "matching_tables"]


class Compactable(Protocol):
    """A table that compacts itself."""

    def compact(self, **how: Any) -> CompactReport:
        """Compact it."""
        ...


class Tables(Protocol):
    """A catalog, as far as this module needs it."""

    def list_databases(self) -> list[str]:
        """Their names."""
        ...

    def list_tables(self, database: str) -> list[str]:
        """The names of the tables of a database."""
        ...

    def table(self, name: str) -> Compactable:
        """The table of a name."""
        ...


@dataclass(frozen=True, slots=True)
class TableOutcome:
    """What became of one table."""

    table: str
    report: CompactReport | None = None
    error: LakeError | None = None
    """Why it was not compacted, or not all of it; the other tables are all the same."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "table": self.table,
            "report": None if self.report is None else self.report.to_dict(),
            "error": None if self.error is None else f"{type(self.error).__name__}: {self.error}",
        }


def matching_tables(
    catalog: Tables,
    *,
    databases: str = ".*",
    including: str = ".*",
    excluding: str | None = None,
) -> list[str]:
    """The tables ``database.table`` whose whole names match, by regular expressions.

    ``including`` and ``excluding`` are about ``database.table``, ``databases`` about the database.
    """
    database, wanted = _pattern("databases", databases), _pattern("including", including)
    unwanted = None if excluding is None else _pattern("excluding", excluding)
    names = [
        f"{name}.{table}"
        for name in catalog.list_databases()
        if database.fullmatch(name)
        for table in catalog.list_tables(name)
    ]
    return [
        name
        for name in names
        if wanted.fullmatch(name) and not (unwanted and unwanted.fullmatch(name))
    ]


def compact_tables(
    catalog: Tables,
    names: Sequence[str],
    *,
    began: Callable[[str], None] | None = None,
    **how: Any,
) -> Iterator[TableOutcome]:
    """Compact one table after the other, each as ``Table.compact`` does; one that fails stops
    no other. ``began`` hears the name of each before it is compacted.
    """
    for name in names:
        if began is not None:
            began(name)
        try:
            yield TableOutcome(name, report=catalog.table(name).compact(**how))
        except LakeError as error:
            yield TableOutcome(name, error=error)


def _pattern(name: str, text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as reason:
        raise InvalidRequestError(
            f"{name} is a regular expression, got {text!r}: {reason}"
        ) from None
