# SPDX-License-Identifier: Apache-2.0
"""System tables that show a table's own rows: ``$ro``, ``$audit_log`` and ``$binlog``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.read.changes.changes import Changes
from lakeformat.paimon.read.changes.rows import ROW_KIND, ChangedRows, changed_rows
from lakeformat.paimon.read.changes.state_rows import StateRows
from lakeformat.paimon.read.changes.window import SnapshotWindow
from lakeformat.paimon.read.scan import Scan
from lakeformat.paimon.read.where import row_filter
from lakeformat.paimon.schema import TableSchema
from lakeformat.paimon.system_tables.binlog import pack_updates, packed_schema
from lakeformat.rows.conditions.filter import Where
from lakeformat.tables.arguments import Partitions
from lakeformat.tables.results import Rows
from lakeformat.types.type_rules import require_text
from lakeformat.types.types import ArrayType, DataField, with_nullability

__all__ = ["RowSelection", "RowTable", "find_row_table", "row_table_names"]

_WITH_SEQUENCE_NUMBER = "table-read.sequence-number.enabled"


@dataclass(frozen=True, slots=True)
class RowSelection:
    """The arguments of a call that choose columns and rows; see ``Table.scan``."""

    columns: Sequence[str] | None = None
    where: Where | None = None
    partitions: Partitions | None = None
    limit: int | None = None

    def of(self, schema: TableSchema) -> ChangedRows:
        """Return the request for these columns, rows and partitions, without ``limit``.

        ``rowkind`` is the first column. Raise InvalidRequestError if ``schema`` lacks a requested
        column.
        """
        return changed_rows(schema, self.columns, self.where, self.partitions)


@dataclass(frozen=True, slots=True)
class RowTable:
    """The declaration of a system table that shows a table's own rows."""

    name: str
    fields: Callable[[TableSchema], tuple[DataField, ...]]
    scan: Callable[[TableHandle, Snapshot | None, RowSelection], Scan | Rows]
    changes: Callable[[TableHandle, SnapshotWindow, RowSelection], Rows] | None = None

    def schema(self, table: TableSchema) -> TableSchema:
        """Return the schema of this system table for a table with the schema ``table``."""
        return replace(table, fields=self.fields(table))


def row_table_names() -> list[str]:
    """Return the names, without the ``$``, of the system tables that show rows."""
    return [*_BY_NAME]


def find_row_table(name: str) -> RowTable | None:
    """Return the declaration of a system table that shows rows; None for any other name.

    Letter case does not matter.
    """
    require_text("the name of a system table", name)
    return _BY_NAME.get(name.lower())


def _scan_top_level(handle: TableHandle, snapshot: Snapshot | None, asked: RowSelection) -> Scan:
    """Return a scan of the highest level, whose rows need no merge; lower levels are left out.

    A table without a primary key is scanned as a whole.
    """
    where = row_filter(handle.schema, asked.where, asked.partitions)
    least = handle.options.level_count - 1 if handle.schema.primary_keys else 0
    return Scan(handle, snapshot, asked.columns, where, asked.limit, least_level=least)


def _scan_audit_log(handle: TableHandle, snapshot: Snapshot | None, asked: RowSelection) -> Rows:
    rows = StateRows(handle, snapshot, _audited(handle, asked), keep_retracts=True)
    return Rows(rows.asked.schema, rows.read, asked.limit)


def _change_audit_log(handle: TableHandle, window: SnapshotWindow, asked: RowSelection) -> Rows:
    return Changes(handle, window, _audited(handle, asked), keep_deletes=True)


def _scan_binlog(handle: TableHandle, snapshot: Snapshot | None, asked: RowSelection) -> Rows:
    _refuse_condition(asked)
    return _packed(_scan_audit_log(handle, snapshot, replace(asked, limit=None)), asked)


def _change_binlog(handle: TableHandle, window: SnapshotWindow, asked: RowSelection) -> Rows:
    _refuse_condition(asked)
    return _packed(_change_audit_log(handle, window, asked), asked)


def _packed(rows: Rows, asked: RowSelection) -> Rows:
    schema = packed_schema(rows.schema)
    return Rows(schema, lambda: pack_updates(rows.to_batches(), schema), asked.limit)


def _audited(handle: TableHandle, asked: RowSelection) -> ChangedRows:
    said = handle.options.to_dict().get(_WITH_SEQUENCE_NUMBER, "false")
    if said.strip().lower() != "false":
        raise UnsupportedError(
            f"{handle.uri} sets {_WITH_SEQUENCE_NUMBER!r} to {said!r}: this version shows no "
            "sequence numbers in $audit_log and $binlog; remove the option to read these tables"
        )
    return asked.of(handle.schema)


def _refuse_condition(asked: RowSelection) -> None:
    if asked.where is not None:
        raise InvalidRequestError(
            "$binlog cannot be filtered, because its columns are arrays: filter $audit_log, or "
            "choose partitions"
        )


def _nullable(schema: TableSchema) -> tuple[DataField, ...]:
    return tuple(
        replace(field, type=with_nullability(field.type, nullable=True)) for field in schema.fields
    )


def _arrays(schema: TableSchema) -> tuple[DataField, ...]:
    return tuple(
        replace(field, type=ArrayType(field.type, nullable=False)) for field in _nullable(schema)
    )


_BY_NAME = {
    table.name: table
    for table in (
        RowTable("ro", lambda schema: schema.fields, _scan_top_level),
        RowTable(
            "audit_log",
            lambda schema: (ROW_KIND, *_nullable(schema)),
            _scan_audit_log,
            _change_audit_log,
        ),
        RowTable(
            "binlog",
            lambda schema: (ROW_KIND, *_arrays(schema)),
            _scan_binlog,
            _change_binlog,
        ),
    )
}
