# SPDX-License-Identifier: Apache-2.0
"""The contract of a table of any format.

Jobs, operators, sensors, pages and commands work with this class alone. A format that lacks an
operation does not define its method, so the method of this class refuses the call by name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from lakeformat.errors import UnsupportedError
from lakeformat.tables.position import AnyPosition, Position
from lakeformat.tables.since import Since

if TYPE_CHECKING:
    from datetime import timedelta

    from lakeformat.executor import Executor
    from lakeformat.rows.conditions.filter import Where
    from lakeformat.tables.checks import CheckRequest, Columns
    from lakeformat.tables.commit_id import CommitId
    from lakeformat.tables.moment import Moment
    from lakeformat.tables.reference_reports import RollbackReport
    from lakeformat.tables.rollback_request import RollbackRequest
    from lakeformat.tables.row_checks.check_report import CheckReport

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
        "upsert",
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

    def check(
        self,
        *,
        staged: Sequence[str] | None = None,
        replaces: int | None = None,
        where: Where | None = None,
        min_rows: int | None = None,
        max_rows: int | None = None,
        not_null: Sequence[str] = (),
        unique: Sequence[Columns] = (),
        accepted_values: Mapping[str, Sequence[Any]] = MappingProxyType({}),
        freshness: Mapping[str, str | timedelta] = MappingProxyType({}),
        conditions: Sequence[str] = (),
        warn_only: Sequence[str] = (),
        executor: Executor | None = None,
    ) -> CheckReport:
        """Check rows of the newest snapshot, or of staged results before they are published.

        ``staged`` are the addresses of staged results. Their rows are checked as they were written,
        rows of one key merged; ``unique`` is checked for the table as it will be after the commit.
        ``replaces`` is the snapshot whose rows that commit replaces (see ``CommitId``). ``where``
        restricts the rows.

        ``not_null`` lists columns, ``unique`` columns or lists of columns, ``accepted_values`` the
        values of a column, ``freshness`` the highest age of the newest time in a column, such as
        ``"1 d"``, and ``conditions`` SQL conditions that each row must meet. Nulls break only
        ``not_null``. ``warn_only`` names checks that only warn, such as ``"unique"`` or
        ``"not_null(note)"``.

        Memory is bounded: repeated values that do not fit are counted in temporary files.
        ``executor`` is an object such as ``spark_jobs.SparkExecutor``, which reads the rows in
        parallel, except for ``unique``.
        """
        from lakeformat.tables.checks import CheckRequest, Checks

        checks = Checks(
            min_rows=min_rows,
            max_rows=max_rows,
            not_null=not_null,
            unique=unique,
            accepted_values=accepted_values,
            freshness=freshness,
            conditions=conditions,
            warn_only=warn_only,
        )
        return self._check(
            CheckRequest(
                checks=checks, where=where, executor=executor, staged=staged, replaces=replaces
            )
        )

    def rollback(
        self,
        *,
        snapshot: AnyPosition | None = None,
        tag: str | None = None,
        as_of: Moment | None = None,
        watermark: int | None = None,
        as_latest: bool = True,
        force: bool = False,
        commit: CommitId | None = None,
        dry_run: bool = False,
    ) -> RollbackReport:
        """Roll back to a snapshot: by number or id, by tag, or the last at a time or watermark.

        Nothing is lost. A Paimon table gets a new snapshot with the rows of the old one. In an
        Iceberg table the branch moves back to a snapshot of its history, and newer snapshots are
        kept until they expire; ``watermark``, ``as_latest=False`` and ``force`` are refused.

        ``as_latest=False`` cuts the history of a Paimon table instead: every newer snapshot and its
        tags are deleted, and their numbers are reused. That is refused without ``force`` if tags or
        branches depend on them. Files left without references are removed by ``remove_orphans``;
        commits in progress retry on the remaining history.

        With ``commit`` a repeated rollback finds the first one and does nothing, so rows committed
        since are kept; in an Iceberg table this needs its ``first_try_millis``, and works on main.
        In a Paimon table such a rollback publishes a snapshot even if the rows are equal already,
        and one that cuts history is recognised for 7 days.
        """
        from lakeformat.tables.rollback_request import RollbackRequest

        return self._rollback(
            RollbackRequest(
                snapshot=snapshot,
                tag=tag,
                as_of=as_of,
                watermark=watermark,
                as_latest=as_latest,
                force=force,
                commit=commit,
                dry_run=dry_run,
            )
        )

    def _check(self, request: CheckRequest) -> CheckReport:
        raise refuse_operation(self, "check")

    def _rollback(self, request: RollbackRequest) -> RollbackReport:
        raise refuse_operation(self, "rollback")

    if TYPE_CHECKING:  # at run time a property refuses it

        def upsert(
            self,
            data: Any,
            by: Sequence[str] | None = None,
            *,
            kinds: Any = None,
            commit: CommitId | None = None,
            properties: Mapping[str, str] | None = None,
        ) -> Any: ...


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


for _operation in OPERATIONS - vars(Table).keys():
    setattr(Table, _operation, _refusing(_operation))
