# SPDX-License-Identifier: Apache-2.0
"""The class ``Table``: every method calls the package that does the work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from lakeformat.environment import Environment
from lakeformat.errors import (
    InvalidRequestError,
    NotFoundError,
    UnsupportedError,
)
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.layout import MAIN_BRANCH, TableLayout
from lakeformat.paimon.metadata.branch_directory import check_branch_name, require_branch
from lakeformat.paimon.metadata.schema_file import latest_schema_id, naming_schema, read_schema
from lakeformat.paimon.options import TableOptions
from lakeformat.paimon.schema import TableSchema
from lakeformat.paimon.table.commits import TableCommits
from lakeformat.paimon.table.expiry import TableExpiry
from lakeformat.paimon.table.orphans import TableOrphans
from lakeformat.paimon.table.partitions import TablePartitions
from lakeformat.paimon.table.reads import TableReads
from lakeformat.paimon.table.references import TableReferences
from lakeformat.paimon.table.row_changes import TableRowChanges
from lakeformat.paimon.table.upkeep import TableUpkeep
from lakeformat.storage import NO_ROOTS, ExternalRoots, Storage
from lakeformat.storage.links import within
from lakeformat.tables.position import AnyPosition
from lakeformat.tables.table import OPERATIONS
from lakeformat.tables.table import Table as AnyTable

if TYPE_CHECKING:
    from lakeformat.paimon.read.scan import Scan
    from lakeformat.paimon.system_tables import RowTable, SystemScan, SystemTableDeclaration
    from lakeformat.rows.conditions.filter import Where
    from lakeformat.tables.arguments import (
        Partitions,
        WindowEnd,
    )
    from lakeformat.tables.commit_observer import CommitObserver
    from lakeformat.tables.moment import Moment
    from lakeformat.tables.results import Rows

__all__ = ["ReadOnlyTable", "SystemTable", "Table", "load_table"]

_Shown = TypeVar("_Shown", bound="ReadOnlyTable")


def load_table(
    storage: Storage,
    layout: TableLayout,
    environment: Environment,
    external_roots: ExternalRoots = NO_ROOTS,
    observer: CommitObserver[TableHandle] | None = None,
) -> Table:
    """Return the table under ``layout``, with the newest schema of its branch.

    ``external_roots`` are the external paths that the table may use; ``observer`` does work that
    must follow each commit. Raise NotFoundError if the directory is not a table or the branch does
    not exist.
    """
    storage = within(storage, layout.root)
    if layout.branch != MAIN_BRANCH:
        check_branch_name(layout.branch)
        require_branch(storage, layout)
    schema_id = latest_schema_id(storage, layout)
    if schema_id is None:
        raise NotFoundError(
            f"{storage.uri(layout.root)} is not a table: it has no schema file; "
            "check the path, or create the table through a catalog"
        )
    schema = read_schema(storage, layout, schema_id)
    with naming_schema(storage, layout, schema_id):
        located = replace(layout, data_path=schema.table_options.data_file_path_directory)
    named = schema.table_options.text(TableOptions.data_file_external_paths)
    return Table(
        TableHandle(storage, located, schema, environment, external_roots, named, observer)
    )


class Table(
    TableCommits,
    TableUpkeep,
    TableExpiry,
    TableOrphans,
    TablePartitions,
    TableReferences,
    TableRowChanges,
    AnyTable,
):
    """A table in Paimon's format.

    Its schema is fixed when the table is opened, but every call sees the newest snapshots.
    """

    format = "paimon"
    cloned_into = "paimon"
    instead = MappingProxyType(
        {
            "analyze_partitions": "analyze(columns) counts rows and values of the whole table",
            "compact_deletes": "compact() removes the rows that deletion vectors hide",
            "end_batch": "a batch holds no lease; table.consumers.reset('batch-…') deletes the "
            "consumer that keeps its snapshots",
            "plan_optimizing": "plan_compaction() shows what a compaction would do",
            "upsert": "write(rows) replaces rows by the primary key, if the table has one",
        }
    )
    refused_arguments = MappingProxyType(
        {
            "compact": {
                "max_commits": "leave it out, because finished buckets are published in groups "
                "before the compaction ends"
            },
            "write": {
                "where": "name the partitions to replace, or call delete(where) and append the rows"
            },
        }
    )

    def __repr__(self) -> str:
        return f"<Table {self.location}>"

    def system_table(self, name: str) -> ReadOnlyTable:
        """Return a system table: metadata such as ``"files"``, or rows such as ``"ro"``.

        Raise InvalidRequestError for an unknown name; the error lists the names. Raise
        UnsupportedError for a system table that only other engines have.
        """
        from lakeformat.paimon.system_tables import find_row_table, find_system_table

        rows = find_row_table(name)
        if rows is not None:
            return RowSystemTable(self._handle, rows)
        return SystemTable(self._handle, find_system_table(name))

    @property
    def system_tables(self) -> Sequence[str]:
        """The names of the system tables with metadata."""
        from lakeformat.paimon.system_tables import system_table_names

        return system_table_names()


def _only_reads(shown: type[_Shown]) -> type[_Shown]:
    """Make each method that a system table lacks raise UnsupportedError, including methods added
    to ``Table`` later.
    """
    rows_of_its_own = {"changes", "stream", "state_scan"}
    contract = {*dir(AnyTable), *AnyTable.__annotations__}
    readable = ({*dir(TableReads)} | contract - OPERATIONS) - rows_of_its_own
    for name in dir(Table):
        if not name.startswith("_") and name not in readable:
            setattr(shown, name, _refusal(name, getattr(Table, name)))
    return shown


def _refusal(name: str, member: object) -> object:
    def refuse(self: ReadOnlyTable, *_: Any, **__: Any) -> NoReturn:
        """Raise UnsupportedError: only the table behind a system table has this method."""
        raise UnsupportedError(
            f"${self._name} of {self.location} is a system table, which is read-only: scan() "
            f"returns its rows. Use the table itself for {name!r}"
        )

    return property(refuse) if isinstance(member, property) else refuse


@_only_reads
class ReadOnlyTable(Table):
    """A read-only table that shows data of another table."""

    def __init__(self, handle: TableHandle, name: str) -> None:
        super().__init__(handle)
        self._name = name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.location}${self._name}>"

    @property
    def operations(self) -> frozenset[str]:
        """The operations that a read-only table supports."""
        return frozenset({"scan"})

    _scan_at = AnyTable._scan_at


class SystemTable(ReadOnlyTable):
    """A table's metadata as rows, such as ``shop.orders$files``; read-only."""

    shows_metadata = True

    def __init__(self, handle: TableHandle, declaration: SystemTableDeclaration[Any]) -> None:
        super().__init__(handle, declaration.name)
        self._declaration = declaration

    @property
    def schema(self) -> TableSchema:
        """The columns of the metadata."""
        return self._declaration.schema

    # This scan has fewer arguments and results: for example, it has no splits.
    def scan(  # type: ignore[override]
        self,
        columns: Sequence[str] | None = None,
        *,
        snapshot: AnyPosition | None = None,
        tag: str | None = None,
        as_of: Moment | None = None,
        watermark: int | None = None,
        newest: bool = False,
    ) -> SystemScan:
        """Return a scan of the metadata of the table.

        If the system table shows one snapshot, as ``$files`` does, the arguments choose the
        snapshot. Without them, the table options ``scan.*`` may choose it; by default it is the
        newest. ``newest`` ignores these options. Raise NotFoundError if the chosen snapshot does
        not exist, and InvalidRequestError if several arguments, ``newest`` included, choose a
        snapshot. Other system tables raise InvalidRequestError if a snapshot is chosen.
        """
        from lakeformat.paimon.read.shown_state import find_shown_state
        from lakeformat.paimon.read.time_travel import find_snapshot
        from lakeformat.paimon.system_tables import Source, SystemScan

        chosen = find_snapshot(
            self._handle,
            snapshot=snapshot,
            tag=tag,
            as_of=as_of,
            watermark=watermark,
            newest=newest,
        )
        if chosen is None and self._declaration.of_snapshot and not newest:
            state = find_shown_state(self._handle)
            chosen = None if state is None else state.snapshot
        if chosen is not None and not self._declaration.of_snapshot:
            raise InvalidRequestError(
                f"${self._declaration.name} shows the current state only: remove snapshot, tag, "
                "as_of and watermark"
            )
        return SystemScan(self._declaration, Source(self._handle, chosen), columns)


class RowSystemTable(ReadOnlyTable):
    """Another view of a table's rows, such as ``shop.orders$audit_log``; read-only."""

    def __init__(self, handle: TableHandle, declaration: RowTable) -> None:
        super().__init__(handle, declaration.name)
        self._rows = declaration

    @property
    def schema(self) -> TableSchema:
        """The columns of the rows."""
        return self._rows.schema(self._handle.schema)

    def scan(  # type: ignore[override]
        self,
        columns: Sequence[str] | None = None,
        *,
        where: Where | None = None,
        partitions: Partitions | None = None,
        snapshot: AnyPosition | None = None,
        tag: str | None = None,
        as_of: Moment | None = None,
        watermark: int | None = None,
        newest: bool = False,
        limit: int | None = None,
    ) -> Scan | Rows:
        """Return a scan of a snapshot's rows, as this view shows them.

        The arguments are those of ``Table.scan``. Raise UnsupportedError if a table option, such as
        ``scan.creation-time-millis``, skips older files.
        """
        from lakeformat.paimon.system_tables import RowSelection
        from lakeformat.tables.scan_arguments import check_limit

        handle, state = self._state(snapshot, tag, as_of, watermark, newest=newest)
        if state.created_from_millis is not None:
            raise UnsupportedError(
                f"{self.location} sets {state.decided_by}, which skips older files, but "
                f"${self._rows.name} needs all files: pass a snapshot, or newest=True"
            )
        asked = RowSelection(columns, where, partitions, check_limit(limit))
        return self._rows.scan(handle, state.snapshot, asked)

    def changes(  # type: ignore[override]
        self,
        after: WindowEnd,
        upto: WindowEnd | None = None,
        mode: str = "auto",
        *,
        columns: Sequence[str] | None = None,
        where: Where | None = None,
        partitions: Partitions | None = None,
    ) -> Rows:
        """Return this view of the changes between two snapshots.

        The arguments are those of ``Table.changes``. Raise UnsupportedError if this view cannot
        show changes.
        """
        from lakeformat.paimon.read.changes.window import find_window
        from lakeformat.paimon.system_tables import RowSelection

        if self._rows.changes is None:
            raise UnsupportedError(
                f"${self._rows.name} of {self.location} has no changes: read the changes of the "
                "table itself"
            )
        window = find_window(self._handle, after, upto, mode)
        return self._rows.changes(self._handle, window, RowSelection(columns, where, partitions))
