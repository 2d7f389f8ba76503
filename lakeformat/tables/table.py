# SPDX-License-Identifier: Apache-2.0
"""The contract of a table of any format.

Jobs, operators, sensors, pages and commands work with this class alone. A format that lacks an
operation does not define its method, so the method of this class refuses the call by name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from lakeformat.errors import UnsupportedError
from lakeformat.tables.position import AnyPosition, Position
from lakeformat.tables.since import Since

__all__ = ["OPERATIONS", "Table", "refuse_operation"]

OPERATIONS = frozenset(
    {
        "analyze",
        "branches",
        "changes",
        "check",
        "commit",
        "compact",
        "compact_manifests",
        "consumers",
        "drop_partitions",
        "expire_partitions",
        "expire_snapshots",
        "health",
        "maintain",
        "remove_orphans",
        "rescale",
        "rollback",
        "scan",
        "staged",
        "stream",
        "system_table",
        "tags",
        "truncate",
        "write",
    }
)
"""The operations of the contract, by the names of their methods."""


class Table(ABC):
    """A table on one branch; every call sees the newest published snapshots."""

    format: ClassVar[str]
    """The name of the format: ``paimon``."""
    numbers_snapshots: ClassVar[bool] = True
    """True if ids of snapshots are numbers in the order of commits, without gaps."""
    instead: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """The operations that the format lacks, and the advice for each; also kinds of work that are
    no method, such as ``changelog``."""

    @property
    def operations(self) -> frozenset[str]:
        """The operations that this table has."""
        return OPERATIONS - self.instead.keys()

    def require(self, operation: str) -> None:
        """Raise ``UnsupportedError`` if the format lacks an operation or kind of work."""
        if operation in self.instead:
            raise refuse_operation(self, operation)

    @property
    @abstractmethod
    def location(self) -> str:
        """The place of the table, as a URI."""

    @abstractmethod
    def position(self, named: Any = None) -> Position:
        """Return the newest position, or parse a position that was stored as text or as a
        number.
        """

    def snapshot_id_at(self, position: Position) -> int:
        """Return the id of the snapshot at a position of this table; 0 at the beginning."""
        return position.number

    @abstractmethod
    def positions(
        self, *, after: AnyPosition | None = None, upto: AnyPosition | None = None, limit: int
    ) -> list[Position]:
        """Return the newest ``limit`` positions after ``after`` and up to ``upto``, oldest
        first.
        """

    @abstractmethod
    def advance(self, after: AnyPosition, limit: int | None = None) -> Position:
        """Return the newest position that is at most ``limit`` snapshots after ``after``."""

    @abstractmethod
    def since(self, after: AnyPosition, upto: AnyPosition | None = None) -> Since[Any]:
        """Return the snapshots after a position, and signs that a reader there has lost some."""

    @abstractmethod
    def scan(self, *arguments: Any, **options: Any) -> Any:
        """Return the rows of the newest snapshot, or of a snapshot given by number, tag or time."""

    @abstractmethod
    def write(self, *arguments: Any, **options: Any) -> Any:
        """Add or replace rows in one commit."""


def refuse_operation(table: Table, operation: str) -> UnsupportedError:
    """Return the error for an operation that the format of a table lacks."""
    article = "an" if table.format[0] in "aeiou" else "a"
    instead = table.instead.get(operation, "table.operations lists the available operations")
    return UnsupportedError(
        f"{table.location} is {article} {table.format.capitalize()} table, which has no operation "
        f"{operation!r}: {instead}"
    )


def _refusing(operation: str) -> property:
    def refuse(self: Table) -> Any:
        raise refuse_operation(self, operation)

    return property(refuse, doc=f"Refuse {operation!r}, which the format lacks.")


for _operation in OPERATIONS - {"scan", "write"}:
    setattr(Table, _operation, _refusing(_operation))
