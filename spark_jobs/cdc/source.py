"""Messages in files, as rows of a table with what they do.

They are read twice: once to know the columns, so that the table is widened before its first row
comes, and once with the types of the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

import lakeformat as lake
from lakeformat.executor import Executor, in_order
from lakeformat.files.foreign.dialect import CSV_AND_PLAIN, TextDialect
from lakeformat.files.foreign.plain_copy import plain_copy
from lakeformat.files.foreign.rows import naming
from lakeformat.paimon.aggregate_rules import function_of_column
from lakeformat.types.arrow_types import to_arrow_type
from lakeformat.types.types import AtomicType
from spark_jobs.cdc.canal import Canal
from spark_jobs.cdc.changes import SourceTable, arranged
from spark_jobs.cdc.columns import MessageColumns
from spark_jobs.cdc.debezium import Debezium
from spark_jobs.cdc.evolve import changes_for, declaration
from spark_jobs.cdc.lines import blocks_of, lines_where, parse_block
from spark_jobs.cdc.maxwell import Maxwell
from spark_jobs.cdc.values import column_values, read_as
from spark_jobs.ingestion.remote_files import opener_of
from spark_jobs.runtime.progress import tell_progress

__all__ = ["ROW_KIND", "MessageFiles"]

ROW_KIND = "rowkind"
"""The column that says what each row does."""

_FILE_BYTES = 32 << 20
"""What a file is thought to hold, so that few share a task."""

_REPLACING = {None, "last_value", "last_non_null_value"}

_FORMATS: dict[str, Canal | Debezium | Maxwell] = {
    each.name: each for each in (Debezium(), Canal(), Maxwell())
}


@dataclass(slots=True)
class MessageFiles:
    """The messages of some files, and what is known of their columns."""

    format: str
    paths: Sequence[str]
    keys: Sequence[str]
    """The primary key, by which an update is seen to move a row."""
    only: str | None = None
    """The source table whose messages are meant."""
    columns: MessageColumns = field(default_factory=MessageColumns)
    options: Mapping[str, str] | None = field(default=None, repr=False)
    """Of the storage remote files are in."""
    dialect: TextDialect = CSV_AND_PLAIN

    def look(self, executor: Executor | None = None) -> None:
        """Read all messages for what they say of columns, wherever there is room for it."""
        source = SourceTable(self.only)
        look = partial(MessageFiles.of_file, self)
        found = (
            map(look, self.paths)
            if executor is None
            else in_order(executor, look, self.paths, lambda _: _FILE_BYTES)
        )
        for path, (columns, tables) in zip(self.paths, found, strict=True):
            source.note(tables, path)
            self.columns.merge(columns)

    def of_file(self, path: str) -> tuple[MessageColumns, set[str]]:
        """What the messages of one file say of columns, and whose they are."""
        envelope, source = _FORMATS[self.format], SourceTable(self.only)
        columns = MessageColumns()
        for block in self._blocks(path):
            with naming(path):
                messages = self._parsed(block, source, path)
            changes = envelope.changes(messages, self.keys, source, path)
            for declared in envelope.declared(block):
                columns.declare(declared)
            columns.note(changes)
        return columns, source.seen

    def new_columns(self) -> list[tuple[str, str]] | pa.Schema:
        """The columns of a table that does not exist yet."""
        found = [(column.name, column.type) for column in self.columns.by_name.values()]
        unknown = [name for name, type in found if type is None]
        if unknown or not found:
            raise lake.InvalidRequestError(
                f"no value shows the type of column {', '.join(map(repr, unknown))}: create the "
                "table first, then ingest"
                if unknown
                else "the messages hold no row: nobody can tell the columns of the table"
            )
        for column in self.columns.by_name.values():
            column.require_exact([column.name])
        if all(isinstance(type, AtomicType) for _, type in found):
            return [(name, str(declaration(type))) for name, type in found if type is not None]
        return pa.schema([(name, to_arrow_type(type)) for name, type in found if type is not None])

    def widen(self, catalog: lake.Catalog, name: str) -> lake.Table:
        """Bring the table to what the messages need; another run may have done it meanwhile."""
        table = catalog.table(name)
        envelope = _FORMATS[self.format]
        self._require_whole_rows(table)
        changes = changes_for(table, self.columns, texts_hold_all=envelope.texts_hold_all)
        if not changes:
            return table
        try:
            return catalog.alter_table(name, *changes)
        except lake.LakeError:
            table = catalog.table(name)
            if changes_for(table, self.columns, texts_hold_all=envelope.texts_hold_all):
                raise
            return table

    def rows(self, table: lake.Table) -> Iterator[pa.RecordBatch]:
        """Every row with its kind, as columns of the table."""
        envelope, source = _FORMATS[self.format], SourceTable(self.only)
        there = {each.name: each for each in table.schema.fields}
        types = {each.name: each for each in table.schema.arrow_schema()}
        known = [each for each in self.columns.by_name.values() if each.name in there]
        row = pa.struct([(each.name, read_as(each, types[each.name].type)) for each in known])
        for number, path in enumerate(self.paths, 1):
            for block in self._blocks(path):
                with naming(path):
                    messages = parse_block(block, envelope.wanted(row, self.keys))
                found = arranged(envelope.changes(messages, self.keys, source, path))
                if found is None:
                    continue
                kinds, rows = found
                arrays = [
                    column_values(values, column, there[column.name], types[column.name])
                    for values, column in zip(rows.flatten(), known, strict=True)
                ]
                names = [ROW_KIND, *(column.name for column in known)]
                yield pa.RecordBatch.from_arrays([kinds, *arrays], names=names)
            tell_progress(number, len(self.paths), "files")

    def rows_of(self, table: lake.Table, path: str) -> Iterator[pa.RecordBatch]:
        """The rows of one file alone."""
        return replace(self, paths=[path]).rows(table)

    def _blocks(self, path: str) -> Iterator[bytes]:
        """The messages that are meant: what others say of columns is none of this table's."""
        opener = opener_of(path, self.options)
        with plain_copy(path, "json", self.dialect, opener) as local:
            for block in blocks_of(local):
                if meant := block if self.only is None else self._meant(block, self.only, path):
                    yield meant

    def _meant(self, block: bytes, only: str, path: str) -> bytes:
        """The lines of a table, and those that do not say whose they are."""
        with naming(path):
            names = self._tables(block)
        if names is None:
            return block
        return lines_where(block, pc.is_in(pc.fill_null(names, ""), pa.array([only, ""])), path)

    def _tables(self, block: bytes) -> pa.Array | None:
        envelope = _FORMATS[self.format]
        return envelope.tables(parse_block(block, envelope.of_tables()))

    def _parsed(self, block: bytes, source: SourceTable, path: str) -> pa.Table:
        """Messages as they are; if they do not go together they may be of several tables."""
        try:
            return parse_block(block)
        except pa.ArrowInvalid:
            source.mask(self._tables(block), path)
            raise

    def _require_whole_rows(self, table: lake.Table) -> None:
        """An aggregate takes an update back by the whole row before it."""
        if not _aggregates(table):
            return
        if not _FORMATS[self.format].tells_before:
            raise lake.UnsupportedError(
                f"{table.location} aggregates, and messages of {self.format} do not hold the whole "
                "row before an update: what it added could not be taken back"
            )
        if self.columns.lacks_before:
            raise lake.InvalidRequestError(
                f"{table.location} aggregates, and a message of op 'u' does not hold the row "
                "before: what it added could not be taken back. Let the source tell of it (of "
                "PostgreSQL by REPLICA IDENTITY FULL)"
            )


def _aggregates(table: lake.Table) -> bool:
    """Whether a row does more than take the place of the one before, of any engine."""
    if table.options.merge_engine == "aggregation":
        return True
    keys = table.schema.primary_keys
    values = [each.name for each in table.schema.fields if each.name not in keys]
    functions = {function_of_column(table.options, name) for name in values}
    return table.options.merge_engine == "partial-update" and not functions <= _REPLACING
