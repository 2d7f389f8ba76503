"""The newest snapshots of many tables, looked at again and again for little."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from lakeformat.catalog.base import Catalog
from lakeformat.catalog.names import parse_name
from lakeformat.errors import LakeError, NotFoundError
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.table import Table

__all__ = ["Head", "Heads", "Look"]

# A bucket answers in some 20 ms: five hundred tables one after the other would take 20 s.
_ASKED_AT_ONCE = 32


@dataclass(frozen=True, slots=True)
class Head:
    """A table that is there, and its newest snapshot; None before the first commit."""

    table: Table
    snapshot: Snapshot | None


@dataclass(frozen=True, slots=True)
class Look:
    """What one look has found; a table that is not there yet is in neither."""

    heads: dict[str, Head] = field(default_factory=dict)
    failed: dict[str, LakeError] = field(default_factory=dict)
    """What went wrong with single tables; the others are in ``heads`` all the same."""


class Heads:
    """Remembers the head of each table of a catalog it was asked for.

    A look costs one listing for each database, however many tables there are, and two small
    requests for each table that is there; more only for those that are new or have changed.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._known: dict[str, Head] = {}

    def look(self, names: Collection[str]) -> Look:
        """The heads of the tables ``database.table`` that exist now."""
        there: dict[str, set[str]] = {}
        likely = []
        for name in sorted(names):
            parsed = parse_name(name)
            if parsed.database not in there:
                there[parsed.database] = self._catalog._likely_tables(parsed.database)
            if parsed.table in there[parsed.database]:
                likely.append(name)
            else:
                self._known.pop(name, None)
        found = Look()
        for name, head in zip(likely, self._heads_of(likely), strict=True):
            if isinstance(head, Head):
                found.heads[name] = self._known[name] = head
            elif isinstance(head, NotFoundError):  # dropped, or not a table yet
                self._known.pop(name, None)
            else:
                found.failed[name] = head
        return found

    def _heads_of(self, names: Sequence[str]) -> list[Head | LakeError]:
        """Each head, or why there is none; many at a time, because a look mostly waits."""
        if not names:
            return []
        with ThreadPoolExecutor(min(_ASKED_AT_ONCE, len(names))) as pool:
            return list(pool.map(self._head_or_reason, names))

    def _head_or_reason(self, name: str) -> Head | LakeError:
        try:
            return self._head(name)
        except LakeError as reason:
            return reason

    def _head(self, name: str) -> Head:
        before = self._known.get(name)
        if before is None:
            table = self._catalog.table(name)
            return Head(table, table.latest_snapshot())
        return Head(before.table, before.table.latest_snapshot(before.snapshot))
