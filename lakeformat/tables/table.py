# SPDX-License-Identifier: Apache-2.0
"""The contract of a table of any format.

Code for tables of several formats uses this class. If a format lacks an operation, its class does
not define the method, and the method of this class raises ``UnsupportedError``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from types import FunctionType, MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, TypeVar

from lakeformat.errors import UnsupportedError
from lakeformat.tables.position import AnyPosition, Position
from lakeformat.tables.since import Since

if TYPE_CHECKING:
    from datetime import timedelta

    from lakeformat.executor import Executor
    from lakeformat.rows.conditions.filter import Where
    from lakeformat.rows.conditions.predicate import Predicate
    from lakeformat.tables.arguments import Conflict, PartitionSpec
    from lakeformat.tables.checks import CheckRequest, Columns
    from lakeformat.tables.commit_id import CommitId
    from lakeformat.tables.divided_writes import BegunBatch, WriterBuckets
    from lakeformat.tables.moment import Moment
    from lakeformat.tables.partition_rows import PartitionRows
    from lakeformat.tables.reference_reports import RollbackReport
    from lakeformat.tables.refused_arguments import RefusedArguments
    from lakeformat.tables.rollback_request import RollbackRequest
    from lakeformat.tables.row_checks.check_report import CheckReport
    from lakeformat.tables.wanted_table import WantedTable

__all__ = ["OPERATIONS", "Table", "offer_arguments", "offering_arguments", "refuse_operation"]

_CO_VARKEYWORDS = 8  # the flag in ``inspect`` of functions that take any keyword argument
P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C")

OPERATIONS = frozenset(
    {
        "analyze",
        "analyze_partitions",
        "branches",
        "changes",
        "check",
        "commit",
        "compact",
        "compact_deletes",
        "compact_manifests",
        "consumers",
        "delete",
        "drop_partitions",
        "end_batch",
        "expire_partitions",
        "expire_snapshots",
        "health",
        "maintain",
        "mark_partitions_done",
        "partition_rows",
        "plan_optimizing",
        "remove_orphans",
        "rescale",
        "rollback",
        "scan",
        "staged",
        "stream",
        "system_table",
        "tags",
        "truncate",
        "update",
        "upsert",
        "write",
    }
)
"""The operations of the contract, by the names of their methods."""


def offering_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Wrap ``function`` so that unknown arguments raise ``InvalidRequestError`` with advice."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except TypeError:
            from lakeformat.tables.unknown_arguments import refuse_call  # only for a message

            refuse_call(function, args, kwargs)
            raise

    call.offers_arguments = True  # type: ignore[attr-defined]
    return call


def offer_arguments(cls: type[C]) -> type[C]:
    """Apply ``offering_arguments`` to own and inherited public methods without ``**kwargs``."""
    for each in (base for base in cls.__mro__ if base.__module__.startswith("lakeformat.")):
        functions = [item for item in vars(each).items() if isinstance(item[1], FunctionType)]
        for name, member in (item for item in functions if not item[0].startswith("_")):
            takes_any = getattr(member, "__wrapped__", member).__code__.co_flags & _CO_VARKEYWORDS
            if not takes_any and not hasattr(member, "offers_arguments"):
                setattr(each, name, offering_arguments(member))
    return cls


class Table(ABC):
    """A table on one branch. By default every call reads the newest published snapshot."""

    format: ClassVar[str]
    """The name of the format: ``paimon``, ``iceberg`` or ``mixed``."""
    numbers_snapshots: ClassVar[bool] = True
    """True if snapshot ids are numbers in the order of commits, without gaps, as in Paimon."""
    instead: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """The advice for the caller, by the missing operation or feature, such as ``watermarks``."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        offer_arguments(cls)

    refused_arguments: ClassVar[RefusedArguments] = MappingProxyType({})
    """For each operation: each argument that the format lacks, with advice for the caller."""
    is_skipped_by_arguments: ClassVar[bool] = False
    """True if a run over many tables skips the table when its format lacks an argument."""
    cloned_into: ClassVar[str | None] = None
    """The ``format`` of catalogs that can hold a clone of the table; None if none can."""
    shows_metadata: ClassVar[bool] = False
    """True if the rows are metadata of another table, as in ``shop.orders$files``."""

    @property
    def operations(self) -> frozenset[str]:
        """The names of the operations that this table has."""
        return OPERATIONS - self.instead.keys()

    def require(self, operation: str) -> None:
        """Raise ``UnsupportedError`` if the format lacks this operation or feature."""
        if operation in self.instead:
            raise refuse_operation(self, operation)

    def require_arguments(self, operation: str, **given: Any) -> None:
        """Raise ``UnsupportedError`` for an argument that is not None and that the format lacks."""
        from lakeformat.tables.refused_arguments import refuse_arguments  # not needed by a read

        refuse_arguments(
            self.refused_arguments,
            operation,
            given,
            kind=self.kind,
            location=self.location,
            is_skipped=self.is_skipped_by_arguments,
        )

    def _require_options(
        self, operation: str, method: Callable[..., object], options: Mapping[str, Any]
    ) -> None:
        """Raise an error if the format refuses an option, or if ``method`` has no such argument."""
        self.require_arguments(operation, **options)
        if others := options.keys() - self.refused_arguments.get(operation, {}).keys():
            from lakeformat.tables.unknown_arguments import refuse_unknown  # only for a message

            refuse_unknown(method, sorted(others))

    def given_arguments(self, operation: str, **options: Any) -> dict[str, Any]:
        """Return the arguments that are not None, after the check of ``require_arguments``."""
        self.require_arguments(operation, **options)
        return {name: value for name, value in options.items() if value is not None}

    @property
    def kind(self) -> str:
        """The format with an article, such as "an Iceberg table", for messages."""
        return f"{'an' if self.format[0] in 'aeiou' else 'a'} {self.format.capitalize()} table"

    def writer_buckets(self, *, overwrites: bool = False) -> WriterBuckets | None:
        """Return the function that finds the bucket of each row; None if the schema alone
        determines the buckets. One writer must get all rows of a bucket.
        """
        return None

    def begin_write(self, overwrite: Any, conflict: Conflict | None) -> BegunBatch | None:
        """Begin a batch for a write and return the batch; None if this write needs no batch."""
        return None

    @property
    def has_unique_keys(self) -> bool:
        """True if the table keeps one row for each key; False if every written row is added."""
        return False

    @property
    def replaces_repeated_rows(self) -> bool:
        """True if writing the same rows a second time does not change the rows of the table."""
        return False

    @property
    def unique_within(self) -> list[str]:
        """The partition columns, if a key is unique only within a partition; else empty."""
        return []

    @property
    @abstractmethod
    def location(self) -> str:
        """The URI of the table."""

    @property
    def locations(self) -> list[str]:
        """The URIs of the table's directories; a Mixed table has two, one for each store."""
        return [self.location]

    @property
    @abstractmethod
    def schema_id(self) -> int:
        """The id of the current schema."""

    @property
    @abstractmethod
    def key_columns(self) -> list[str]:
        """The columns of the primary key, or the identifier fields in Iceberg; may be empty."""

    @property
    @abstractmethod
    def why_changes_delete(self) -> str | None:
        """The reason why changes may delete rows, like "has a primary key"; None if they cannot."""

    @abstractmethod
    def contradictions(self, wanted: WantedTable) -> list[str]:
        """Return each difference of this table from the description ``wanted``, as text."""

    @abstractmethod
    def position(self, named: Any = None) -> Position:
        """Return the newest position; with ``named``, parse a stored text or a snapshot number."""

    def snapshot_id_at(self, position: Position) -> int:
        """Return the id of the snapshot at a position of this table; 0 before the first commit."""
        return position.number

    def position_before(self, position: Position) -> Position:
        """Return the position right before the newest commit that ``position`` includes."""
        return position.before

    @abstractmethod
    def positions(
        self, *, after: AnyPosition | None = None, upto: AnyPosition | None = None, limit: int
    ) -> list[Position]:
        """Return the last ``limit`` positions after ``after``, up to ``upto``, oldest first."""

    @abstractmethod
    def advance(self, after: AnyPosition, limit: int | None = None) -> Position:
        """Return the newest position, but at most ``limit`` snapshots after ``after``."""

    @abstractmethod
    def since(self, after: AnyPosition, upto: AnyPosition | None = None) -> Since[Any]:
        """Return the snapshots after a position, and the flags ``missed`` and ``rewound``."""

    @abstractmethod
    def scan(self, *arguments: Any, **options: Any) -> Any:
        """Return the rows of the newest snapshot, or of a snapshot named by number, tag or time."""

    def _scan_at(self, position: Position, columns: Sequence[str], where: Predicate | None) -> Any:
        """Scan the rows of one snapshot with the columns that the table has now."""
        return self.scan(columns, where=where, snapshot=position)

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

        ``staged`` lists the addresses of staged results. Rows with the same key are merged before
        the check. With ``staged``, the check of ``unique`` also reads the published rows that
        remain after the results are committed. ``replaces`` is the number of the snapshot whose
        rows the results will replace. ``where`` limits the check to rows that meet a condition.

        ``not_null`` is a list of columns; ``unique`` can also contain lists of columns.
        ``accepted_values`` maps columns to allowed values. ``freshness`` maps columns to the
        maximum age of their newest time, as in ``{"ts": "1 d"}``; a column without any time fails.
        Each row must meet the SQL ``conditions``. All checks except ``not_null`` ignore nulls.
        ``warn_only`` names checks that only warn, such as ``"unique"`` or ``"not_null(note)"``.

        Memory is bounded: ``unique`` writes values that do not fit into memory to temporary files.
        ``executor`` (a ``spark_jobs.SparkExecutor``) reads rows in parallel, except for ``unique``.
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
        request = CheckRequest(
            checks=checks, where=where, executor=executor, staged=staged, replaces=replaces
        )
        return self._check(request)

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
        """Roll back to a snapshot, chosen by number or id, by tag, by time or by watermark.

        By default no data is lost. A Paimon table gets a new snapshot with the rows of the old one.
        In an Iceberg table the branch moves back to a snapshot of its history, and newer snapshots
        are kept until they expire. There ``watermark``, ``as_latest=False`` and ``force`` raise
        ``UnsupportedError``.

        With ``as_latest=False`` all newer snapshots of a Paimon table are deleted; later commits
        reuse their numbers. Raise ``InvalidRequestError`` if a tag or branch needs such a snapshot.
        ``force`` deletes such tags; such branches are kept, but cannot be fast-forwarded. Call
        ``remove_orphans`` to delete orphan files. Running commits retry on the remaining history.

        If a rollback with the same ``commit`` has finished (with ``as_latest=False``: in the last
        7 days), nothing is done, so later commits are kept. For this, an Iceberg table needs
        ``commit.first_try_millis``, and on branches other than main also ``first_try_head``.
        With ``commit`` and ``as_latest``, a Paimon table gets a snapshot even if no row changes.
        """
        from lakeformat.tables.rollback_request import RollbackRequest

        request = RollbackRequest(
            snapshot=snapshot,
            tag=tag,
            as_of=as_of,
            watermark=watermark,
            as_latest=as_latest,
            force=force,
            commit=commit,
            dry_run=dry_run,
        )
        return self._rollback(request)

    def _check(self, request: CheckRequest) -> CheckReport:
        raise refuse_operation(self, "check")

    def _rollback(self, request: RollbackRequest) -> RollbackReport:
        raise refuse_operation(self, "rollback")

    if TYPE_CHECKING:  # at run time a property refuses a missing operation

        def upsert(
            self,
            data: Any,
            by: Sequence[str] | None = None,
            *,
            kinds: Any = None,
            commit: CommitId | None = None,
            properties: Mapping[str, str] | None = None,
        ) -> Any: ...

        def partition_rows(self, partition: PartitionSpec) -> PartitionRows: ...


def refuse_operation(table: Table, operation: str) -> UnsupportedError:
    """Return the error, with advice, for an operation that the table's format lacks."""
    instead = table.instead.get(operation, "table.operations lists the available operations")
    lack = f"has no operation {operation!r}: {instead}"
    refusal = UnsupportedError(f"{table.location} is {table.kind}, which {lack}")
    refusal.lacks = f"{table.kind} {lack}"
    return refusal


def _refusing(operation: str) -> property:
    def refuse(self: Table) -> Any:
        raise refuse_operation(self, operation)

    return property(refuse, doc=f"Refuse {operation!r}, which the format lacks.")


for _operation in OPERATIONS - vars(Table).keys():
    setattr(Table, _operation, _refusing(_operation))
