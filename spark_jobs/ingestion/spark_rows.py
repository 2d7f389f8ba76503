# SPDX-License-Identifier: Apache-2.0
"""Writes the rows of any source into a table with Spark's tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

import lakeformat as lake
from lakeformat.paimon.read.changes.rows import ROW_KIND
from lakeformat.paimon.read.splits import Split
from lakeformat.tables.arguments import Overwritten
from lakeformat.tables.results import Results
from spark_jobs.ingestion.copied_table import (
    forgets_deletes,
    require_no_deletes,
    require_no_kept_deletes,
)
from spark_jobs.ingestion.row_sources import Columns, FileRows, MessageRows, rows_of
from spark_jobs.runtime.tasks import ReportingExecutor

if TYPE_CHECKING:
    from lakeformat.tables.stream import StreamedChanges
    from spark_jobs.cdc.message_files import MessageFiles
    from spark_jobs.frames.spark_write import Order
    from spark_jobs.job_requests.ingest import IngestRequest
    from spark_jobs.runtime.spark_session import Sessions

__all__ = ["SparkRows", "changes_written", "spark_rows"]


class SparkRows(Columns, Protocol):
    """The rows of a source, read and written by Spark's tasks."""

    def written(
        self, table: lake.Table, overwrite: Overwritten | None, order: Order | None
    ) -> list[lake.CommitMessage]:
        """Write the rows in tasks; return the messages to commit."""
        ...


def spark_rows(
    started: Sessions,
    wanted: IngestRequest,
    table: lake.Table | None,
    paths: Sequence[str] | None,
) -> SparkRows:
    """Return the source of a request. If ``paths`` is given, the source has only these files. Files
    without change messages are listed without starting Spark.
    """
    if wanted.jdbc_url is not None:
        from spark_jobs.ingestion.jdbc_frame import JdbcFrame

        return JdbcFrame(started, wanted)
    executor = None
    if wanted.holds_messages:
        from spark_jobs.frames.executor import SparkExecutor

        executor = ReportingExecutor(SparkExecutor(started()), "files looked through")
    rows = rows_of(wanted, table, paths, executor)
    assert isinstance(rows, FileRows | MessageRows)
    return _InTasks(rows, started)


def changes_written(
    started: Sessions, source: lake.Table, table: lake.Table, stream: Iterable[StreamedChanges]
) -> list[lake.CommitMessage]:
    """Write the next changes of a stream of ``source`` in tasks, in the order of the snapshots;
    return the messages to commit.

    If a snapshot is read in full, each task reads splits of it. If only its changes are read, each
    task reads files.
    """
    from spark_jobs.frames.spark_write import write_in_tasks
    from spark_jobs.ingestion.spark_source import parts_frame
    from spark_jobs.runtime.spark_progress import reporting_tasks

    parts: list[tuple[lake.Scan, Split] | Results] = []
    without_deletes = forgets_deletes(source)
    for each in stream:  # the tasks read its rows
        if each.is_full:
            scan = source.state_scan(each.position)
            if without_deletes:
                require_no_kept_deletes(table, scan)
            parts += [(scan, split) for split in scan.splits()]
        else:
            parts += source.changes(each.position.before, each.position).parts()
    if not parts:
        return []
    read = partial(_read_changes, without_deletes)
    frame, read_rows = parts_frame(started(), parts, read)
    with reporting_tasks(started()):
        return write_in_tasks(frame, table, read_rows, kinds=ROW_KIND.name)


class _InTasks:
    """The rows of files, read by Spark's tasks."""

    def __init__(self, rows: FileRows | MessageRows, started: Sessions) -> None:
        self._rows = rows
        self._started = started

    def new_columns(self) -> Any:
        return self._rows.new_columns()

    def changes_for(self, table: lake.Table) -> list[lake.SchemaChange]:
        return self._rows.changes_for(table)

    def written(
        self, table: lake.Table, overwrite: Overwritten | None, order: Order | None
    ) -> list[lake.CommitMessage]:
        """Write the rows of the files in Spark's tasks, and return the commit messages of the
        tasks. Changes of one key keep their order.
        """
        from spark_jobs.frames.routing import keyed_rows
        from spark_jobs.frames.spark_write import write_in_tasks
        from spark_jobs.ingestion.spark_source import files_frame, parts_frame

        rows, session, keyed = self._rows, self._started(), None
        if isinstance(rows, FileRows):
            frame, read_rows = files_frame(session, rows.files)
        else:
            read = partial(_read_messages, rows.files)
            frame, read_rows = parts_frame(session, rows.files.paths, read)
            if "upsert" in table.operations:
                keyed = keyed_rows(table, rows.files.columns.by_name, rows.files.keys)
        return write_in_tasks(
            frame,
            table,
            read_rows,
            kinds=rows.kinds,
            overwrite=overwrite,
            keyed=keyed,
            order=order,
        )


def _read_messages(files: MessageFiles, table: lake.Table, path: str) -> Iterator[pa.RecordBatch]:
    return files.rows_of(table, path)


def _read_changes(
    without_deletes: bool, table: lake.Table, part: tuple[lake.Scan, Split] | Results
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of ``part`` with a column of row kinds. All rows of a split are inserts,
    ``+I``. With ``without_deletes``, raise ``UnsupportedError`` for a row that deletes a row.
    """
    if isinstance(part, Results):
        rows = part.to_batches()
        yield from require_no_deletes(table, rows, ROW_KIND.name) if without_deletes else rows
        return
    scan, split = part
    for batch in scan.read(split):
        kinds = pa.repeat("+I", batch.num_rows)
        names = [ROW_KIND.name, *batch.schema.names]
        yield pa.RecordBatch.from_arrays([kinds, *batch.columns], names=names)
