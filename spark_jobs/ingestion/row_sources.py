# SPDX-License-Identifier: Apache-2.0
"""Sources of an ingestion that this process reads, without Spark."""

from __future__ import annotations

import logging
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

import lakeformat as lake
from lakeformat.catalog.row_schema import row_schema
from spark_jobs.cdc.recognition import applying, message_format_of
from spark_jobs.ingestion.new_column_texts import column_texts
from spark_jobs.ingestion.row_key import keys_of_messages
from spark_jobs.ingestion.schema_change import changes_for_types
from spark_jobs.ingestion.source_files import SourceFiles, find_paths, find_source
from spark_jobs.runtime.progress import report_progress

if TYPE_CHECKING:
    from lakeformat.executor import Executor
    from spark_jobs.job_requests.ingest import IngestRequest, OnSchemaChange

_log = logging.getLogger(__name__)
_FIRST_ROW = re.compile(r"\brow (\d+) \(rows count from 0\)$")

__all__ = ["FileRows", "MessageRows", "RowSource", "rows_of", "target_table"]


class Columns(Protocol):
    """The columns of a source's rows, which a new table gets."""

    def new_columns(self) -> Any:
        """Return the columns of a new table for the rows, in a form that ``Catalog.create_table``
        takes. Raise ``InvalidRequestError`` for a type without an equivalent.
        """
        ...

    def changes_for(self, table: lake.Table) -> list[lake.SchemaChange]:
        """Return the schema changes that the table needs before it can take the rows. Raise
        ``InvalidRequestError`` or ``UnsupportedError`` if no change makes the rows fit.
        """
        ...


class RowSource(Columns, Protocol):
    """The rows of a source, read in this process."""

    kinds: str | None
    """The column with the kind of each row; None if all rows are inserts."""

    def batches(self, table: lake.Table) -> Iterator[pa.RecordBatch]:
        """Yield the rows with the columns of ``table``. Raise ``InvalidRequestError`` for rows that
        cannot be read.
        """
        ...


class FileRows:
    """The rows of plain files."""

    kinds: str | None = None

    def __init__(self, files: SourceFiles, on_change: OnSchemaChange) -> None:
        self.files = files
        self._on_change = on_change
        self._starts: list[int] = []
        """The number of the first row of each file read so far, counted over all files from 0."""

    def new_columns(self) -> Any:
        return self.files.new_columns()

    def changes_for(self, table: lake.Table) -> list[lake.SchemaChange]:
        if self._on_change == "fail":
            return []
        found = self.files.types_for(row_schema(table), widens=self._on_change == "widen")
        return changes_for_types(table, found, self._on_change)

    def batches(self, table: lake.Table) -> Iterator[pa.RecordBatch]:
        row, self._starts = 0, []
        for number, path in enumerate(self.files.paths, 1):
            self._starts.append(row)
            for batch in self.files.rows(row_schema(table), [path]):
                row += batch.num_rows
                yield batch
            report_progress(number, len(self.files.paths), "files")

    @contextmanager
    def naming_file(self) -> Iterator[None]:
        """Run a block that writes ``batches``. If it raises an error about a row, correct the row
        number in the error.

        The writer counts the rows of all files together. The corrected error names the file, and
        the number of the row in this file.
        """
        try:
            yield
        except lake.InvalidRequestError as reason:
            if self._starts and (found := _FIRST_ROW.search(str(reason))) is not None:
                file = bisect_right(self._starts, int(found[1])) - 1
                row = int(found[1]) - self._starts[file] + 1
                said = str(reason)[: found.start()]
                reason.args = (f"{self.files.paths[file]}: {said}row {row} (rows count from 1)",)
            raise


class MessageRows:
    """The rows that the change messages in files insert, update or delete."""

    def __init__(
        self,
        wanted: IngestRequest,
        keys: list[str],
        within: list[str],
        paths: Sequence[str] | None = None,
        executor: Executor | None = None,
    ) -> None:
        from spark_jobs.cdc.message_files import ROW_KIND, MessageFiles

        assert wanted.format is not None
        assert wanted.source is not None
        self.kinds: str | None = ROW_KIND
        self.files = MessageFiles(
            wanted.format,
            find_paths(wanted.source, wanted.catalog_options) if paths is None else paths,
            keys,
            within,
            wanted.messages_of,
            options=wanted.catalog_options,
            dialect=wanted.dialect,
        )
        self.files.look(executor)

    def new_columns(self) -> Any:
        return self.files.new_columns()

    def changes_for(self, table: lake.Table) -> list[lake.SchemaChange]:
        return self.files.changes_for(table)

    def batches(self, table: lake.Table) -> Iterator[pa.RecordBatch]:
        return self.files.rows(table)


def rows_of(
    wanted: IngestRequest,
    table: lake.Table | None,
    paths: Sequence[str] | None = None,
    executor: Executor | None = None,
) -> RowSource:
    """Return the source of a request. If ``paths`` is given, the source has only these files.

    To find the columns of change messages, their files are read once: in the tasks of ``executor``,
    or in this process if ``executor`` is None. Raise ``NotFoundError`` if no file matches, and
    ``InvalidRequestError`` for files of several formats, or messages without a key.
    """
    if wanted.jdbc_url is not None:
        from spark_jobs.ingestion.sql_rows import SqlRows

        return SqlRows(wanted)
    if wanted.holds_messages:
        keys = keys_of_messages(table, wanted)
        within = [] if table is None else table.unique_within
        return MessageRows(wanted, keys, within, paths, executor)
    assert wanted.source is not None
    options = wanted.catalog_options
    files = find_source(
        wanted.source, wanted.file_format, paths, options, wanted.dialect, wanted.mapping
    )
    return FileRows(files, wanted.on_schema_change)


def target_table(
    catalog: lake.Catalog, table: lake.Table | None, wanted: IngestRequest, rows: Columns
) -> lake.Table:
    """Return the table for the rows. Create it if ``table`` is None, and make the schema changes
    that the rows need and the request allows.

    If another run creates the table meanwhile, use that table. Raise ``InvalidRequestError`` or
    ``UnsupportedError`` if the table cannot take the rows.
    """
    if table is None:
        columns = rows.new_columns()
        if (messages := message_format_of(wanted)) is not None:
            _log.warning("%s: each message becomes a row. %s", wanted.table, applying(messages))
        shown = ", ".join(column_texts(columns))
        _log.info("%s: creating the table with the columns %s", wanted.table, shown)
        catalog.create_database(wanted.table.rpartition(".")[0], exist_ok=True)
        table = catalog.create_table(
            wanted.table,
            columns,
            primary_key=wanted.primary_key or (),
            partition_by=wanted.partition_by or (),
            options=wanted.table_options,
            exist_ok=True,
        )
    if wanted.holds_messages or wanted.on_schema_change != "fail":
        from spark_jobs.cdc.evolve import evolved

        def changes_of(found: lake.Table) -> list[lake.SchemaChange]:
            changes = rows.changes_for(found)
            for each in changes:
                _log.info("%s: changing the schema: %s", wanted.table, each)
            return changes

        return evolved(catalog, wanted.table, changes_of)
    return table
