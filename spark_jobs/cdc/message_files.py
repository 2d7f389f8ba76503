# SPDX-License-Identifier: Apache-2.0
"""Reads files of change messages as rows of a table, each with its kind.

Each file is read twice: first to find the columns, so that the schema of the table changes before
the first row is written; then with the types of the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

import lakeformat as lake
from lakeformat.catalog.row_schema import row_schema
from lakeformat.executor import Executor, in_order
from lakeformat.files.foreign.dialect import CSV_AND_PLAIN, TextDialect
from lakeformat.files.foreign.plain_copy import plain_copy
from lakeformat.files.foreign.rows import naming
from spark_jobs.cdc.canal import Canal
from spark_jobs.cdc.changes import SourceTable, arranged
from spark_jobs.cdc.columns import MessageColumns
from spark_jobs.cdc.debezium import Debezium
from spark_jobs.cdc.evolve import changes_for, column_list
from spark_jobs.cdc.key_only_deletes import require_sequences
from spark_jobs.cdc.lines import blocks_of, lines_where, parse_block
from spark_jobs.cdc.maxwell import Maxwell
from spark_jobs.cdc.moved_rows import parse_with_old_rows
from spark_jobs.cdc.values import column_values, read_as
from spark_jobs.ingestion.remote_files import opener_of
from spark_jobs.runtime.progress import report_progress

__all__ = ["ROW_KIND", "MessageFiles"]

ROW_KIND = "__row_kind"
"""The name of the column with the kind of each row. It is not ``rowkind``, because an Iceberg table
can have a column of that name.
"""

_FILE_BYTES = 32 << 20
"""The size in bytes that is assumed for each file, so that a task gets only a few files."""

_REPLACING = {None, "last_value", "last_non_null_value"}

_FORMATS: dict[str, Canal | Debezium | Maxwell] = {
    each.name: each for each in (Debezium(), Canal(), Maxwell())
}


@dataclass(slots=True)
class MessageFiles:
    """Files of change messages in one format, and the columns that ``look`` has found in them."""

    format: str
    paths: Sequence[str]
    keys: Sequence[str]
    """The primary key of the table; an update that changes the key deletes the row of the old
    key.
    """
    within: Sequence[str] = ()
    """The partition columns of a Mixed table. Each partition can have a row with the same key, so
    an update that changes these columns deletes the row in the old partition.
    """
    only: str | None = None
    """The source table whose messages are read; None if all messages must be of the same table."""
    columns: MessageColumns = field(default_factory=MessageColumns)
    options: Mapping[str, str] | None = field(default=None, repr=False)
    """Options of the storage that has the files; None for local files."""
    dialect: TextDialect = CSV_AND_PLAIN

    def look(self, executor: Executor | None = None) -> None:
        """Find the columns of all messages, and add them to ``columns``.

        The files are read in the tasks of ``executor``; ``executor=None`` reads them in this
        process. Raise ``InvalidRequestError`` for messages that cannot be read, and, if ``only`` is
        None, for messages of several source tables. Raise ``UnsupportedError`` for a type that has
        no equivalent. Log a warning if no message is of the table ``only``, or if messages without
        the name of a source table are skipped.
        """
        source = SourceTable(self.only)
        look = partial(MessageFiles.of_file, self)
        found = (
            map(look, self.paths)
            if executor is None
            else in_order(executor, look, self.paths, lambda _: _FILE_BYTES)
        )
        for path, (columns, tables) in zip(self.paths, found, strict=True):
            with naming(path):
                source.note(tables, path)
                self.columns.merge(columns)
        source.warn()

    def of_file(self, path: str) -> tuple[MessageColumns, set[str]]:
        """Return the columns of the messages in one file, and the names of all source tables in it,
        as in ``SourceTable.seen``. Raise ``InvalidRequestError`` for messages that cannot be read,
        and ``UnsupportedError`` for a type that has no equivalent.
        """
        envelope, source = _FORMATS[self.format], SourceTable(self.only)
        columns = MessageColumns()
        for block in self._blocks(path, source.seen):
            with naming(path):
                messages = self._parsed(block, source, path)
                changes = envelope.changes(messages, self._compared, source, path)
                for declared in envelope.declared(block):
                    columns.declare(declared)
                columns.note(changes)
        return columns, source.seen

    def new_columns(self) -> list[tuple[str, str]] | pa.Schema:
        """Return the columns of a new table for the messages. Raise ``InvalidRequestError`` if a
        type is unknown, or would come from numbers that may have been rounded.
        """
        found = [(column.name, column.type) for column in self.columns.by_name.values()]
        unknown = [name for name, type in found if type is None]
        if unknown or not found:
            raise lake.InvalidRequestError(
                "cannot create the table, because no message shows the type of column "
                f"{' or '.join(map(repr, unknown))}. Create the table with its columns, then run "
                "the ingest again"
                if unknown
                else "cannot create the table: its columns are unknown, because the messages have "
                "no row. Create the table with its columns, then run the ingest again"
            )
        for column in self.columns.by_name.values():
            column.require_exact([column.name])
        return column_list({name: type for name, type in found if type is not None})

    def changes_for(self, table: lake.Table) -> list[lake.SchemaChange]:
        """Return the schema changes that the table needs before it can take the messages.

        Raise ``InvalidRequestError`` or ``UnsupportedError`` if the table cannot take them.
        """
        self._require_whole_rows(table)
        texts_hold_all = _FORMATS[self.format].texts_hold_all
        return changes_for(table, self.columns, texts_hold_all=texts_hold_all)

    def rows(self, table: lake.Table) -> Iterator[pa.RecordBatch]:
        """Yield every row in the types of the table, with its kind in the first column,
        ``ROW_KIND``. Raise ``InvalidRequestError`` for a message that cannot be read, a value that
        does not fit its column, or a delete that lacks the sequence which the table needs.
        """
        envelope, source = _FORMATS[self.format], SourceTable(self.only)
        schema = row_schema(table)
        there = {each.name: each for each in schema.fields}
        types = {each.name: each for each in schema.arrow_schema()}
        known = [each for each in self.columns.by_name.values() if each.name in there]
        row = pa.struct([(each.name, read_as(each, types[each.name].type)) for each in known])
        nullable = [each.name for each in known if there[each.name].type.nullable]
        # A Mixed table takes no delete without a version: it keeps the new version then.
        # ``row_schema`` makes a new schema for any table but a Paimon table.
        nulls = nullable if schema is table.schema else []
        parse = partial(
            parse_with_old_rows,
            wanted=envelope.wanted,
            row=row,
            keys=self._compared,
            within=self.within,
            nulls=nulls,
        )
        for number, path in enumerate(self.paths, 1):
            for block in self._blocks(path):
                with naming(path):
                    messages = parse(block, path=path)
                found = arranged(envelope.changes(messages, self._compared, source, path))
                if found is None:
                    continue
                kinds, rows, whole = found
                with naming(path):
                    arrays = [
                        column_values(values, column, there[column.name], types[column.name])
                        for values, column in zip(rows.flatten(), known, strict=True)
                    ]
                given = dict(zip((column.name for column in known), arrays, strict=True))
                require_sequences(schema, kinds, given, path, whole)
                yield pa.RecordBatch.from_arrays([kinds, *arrays], names=[ROW_KIND, *given])
            report_progress(number, len(self.paths), "files")

    def rows_of(self, table: lake.Table, path: str) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one file in the same form as ``rows``."""
        return replace(self, paths=[path]).rows(table)

    @property
    def _compared(self) -> list[str]:
        return [*dict.fromkeys([*self.keys, *self.within])]

    def _blocks(self, path: str, seen: set[str] | None = None) -> Iterator[bytes]:
        """Yield the messages of a file in blocks.

        If ``only`` is set, messages that name a different source table are left out, and the names
        of all source tables are added to ``seen``.
        """
        opener = opener_of(path, self.options)
        with plain_copy(path, "json", self.dialect, opener) as local:
            for block in blocks_of(local):
                if self.only is not None:
                    block = self._meant(block, self.only, path, seen)
                if block:
                    yield block

    def _meant(self, block: bytes, only: str, path: str, seen: set[str] | None) -> bytes:
        """Return the lines of ``block``, except those of messages that name a table other than
        ``only``. Add the names of all tables to ``seen``.
        """
        with naming(path):
            names = self._tables(block)
        found = {""} if names is None else {*pc.fill_null(names.unique(), "").to_pylist()}
        if seen is not None:
            seen |= found
        if names is None:
            return block
        return lines_where(block, pc.is_in(pc.fill_null(names, ""), pa.array([only, ""])), path)

    def _tables(self, block: bytes) -> pa.Array | None:
        envelope = _FORMATS[self.format]
        return envelope.tables(parse_block(block, envelope.of_tables()))

    def _parsed(self, block: bytes, source: SourceTable, path: str) -> pa.Table:
        """Parse messages with inferred types.

        If Arrow fails because the messages are of several source tables, raise the
        ``InvalidRequestError`` of ``SourceTable.mask``.
        """
        try:
            return parse_block(block)
        except pa.ArrowInvalid:
            source.mask(self._tables(block), path)
            raise

    def _require_whole_rows(self, table: lake.Table) -> None:
        """Raise ``InvalidRequestError`` or ``UnsupportedError`` if the table aggregates, but
        updates do not contain the whole old row, which an aggregation subtracts.
        """
        if not _aggregates(table):
            return
        if not _FORMATS[self.format].has_rows_before:
            raise lake.UnsupportedError(
                f"{table.location} aggregates, so an update must subtract the old row, but "
                f"messages of {self.format} do not contain the whole old row: ingest into a table "
                "that does not aggregate"
            )
        if self.columns.lacks_before:
            raise lake.InvalidRequestError(
                f"{table.location} aggregates, so an update must subtract the old row, but a "
                "message of op 'u' does not contain it: let the source send whole old rows "
                "(PostgreSQL: REPLICA IDENTITY FULL)"
            )


def _aggregates(table: lake.Table) -> bool:
    """Return True if an update must subtract the old row.

    This is so with merge engine ``aggregation``, and with ``partial-update`` if a column has an
    aggregate function other than ``last_value`` and ``last_non_null_value``.
    """
    schema = row_schema(table)
    options = schema.table_options
    if options.merge_engine == "aggregation":
        return True
    values = [each.name for each in schema.fields if each.name not in schema.primary_keys]
    functions = {options.aggregate_function_of(name) for name in values}
    return options.merge_engine == "partial-update" and not functions <= _REPLACING
