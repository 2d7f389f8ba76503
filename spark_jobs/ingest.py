# SPDX-License-Identifier: Apache-2.0
"""Adds rows of files, messages, a SQL table or another lake table, once per commit identity.

    python -m spark_jobs.ingest --request '{"warehouse": "warehouse", "table": "shop.orders",
                                            "source": "orders/*.csv", "create": true}'

The request may also be the path of a JSON file.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from lakeformat.tables.table import refuse_operation
from lakeformat.types.count_text import counted
from lakeformat.types.sentence import sentence
from spark_jobs.job_requests.ingest import IngestRequest
from spark_jobs.job_requests.request import JsonObject, refusal
from spark_jobs.runtime.command import run_command
from spark_jobs.runtime.job import Job, JobResult, Outcome, newest_snapshot, open_warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakeformat import Catalog, CommitId, CommitMessage, StagedResult, Table
    from spark_jobs.ingestion.row_sources import Columns
    from spark_jobs.runtime.spark_session import Sessions

__all__ = ["JOB", "main", "run"]

_log = logging.getLogger(__name__)

JOB = Job(
    "ingest",
    IngestRequest,
    {
        "warehouse": "warehouse",
        "table": "shop.orders",
        "source": "incoming/*.csv",
        "create": True,
    },
    operation="write",
)


def run(request: IngestRequest | JsonObject, spark: SparkSession | None = None) -> JobResult:
    """Run the job and return its result; raise ``InvalidRequestError`` for a wrong request.

    If an earlier attempt has published the same commit identity, its report is returned and no row
    is read. With engine ``spark`` the job uses the session ``spark``; ``spark=None`` starts one.
    """
    return JOB.answer(request, lambda wanted: _ingest(wanted, spark))


def main(arguments: list[str] | None = None) -> int:
    """Run the job with the arguments of a command line; return the exit code.

    ``arguments=None`` means the arguments of this process.
    """
    return run_command(JOB, run, arguments)


def _ingest(wanted: IngestRequest, spark: SparkSession | None) -> Outcome:
    from spark_jobs.ingestion.schema_change import hinting_at_change
    from spark_jobs.runtime.spark_session import sessions

    catalog = open_warehouse(wanted)
    with (
        sessions(spark, f"ingest {wanted.table}") as started,
        hinting_at_change(wanted),
        _refusing_for_good(wanted),
    ):
        if wanted.source_table is not None:
            from spark_jobs.ingestion.table_changes import follow_changes

            return follow_changes(
                catalog,
                lambda: _existing_table(catalog, wanted),
                wanted,
                started if wanted.engine == "spark" else None,
            )
        if wanted.dry_run:
            from spark_jobs.ingestion.dry_run import planned

            table = _existing_table(catalog, wanted)
            return planned(table, wanted, lambda paths: _columns_of(wanted, started, table, paths))
        if wanted.takes_new_files:
            return _ingest_new_files(catalog, wanted, started)
        if wanted.checkpoint is None:
            return _ingest_rows(catalog, wanted, started, wanted.commit_id())
        from spark_jobs.ingestion.file_stream import ingest_stream

        return ingest_stream(
            wanted,
            lambda paths, commit: _ingest_batch(catalog, wanted, started, commit, paths),
            lambda: _identity(catalog, wanted.table),
        )


@contextmanager
def _refusing_for_good(wanted: IngestRequest) -> Iterator[None]:
    """Mark a ``CommitConflictError`` as final if the request has ``read_snapshot``. The task
    is then not retried: a retry would try to commit the same rows and fail again. With
    ``conflict='transaction-order'`` the error is not marked.
    """
    from lakeformat import CommitConflictError

    try:
        yield
    except CommitConflictError as reason:
        if wanted.read_snapshot is not None and wanted.conflict != "transaction-order":
            reason.is_final = True
        raise


def _ingest_batch(
    catalog: Catalog,
    wanted: IngestRequest,
    started: Sessions,
    commit: CommitId,
    paths: Sequence[str],
) -> Outcome:
    """Commit the rows of the files ``paths``, one batch of a stream, exactly once. If the batch is
    already published, return the outcome of that commit. Create the table if it does not exist.

    The directory of the table has a record of the last batch, so that a retry recognises the batch
    after its snapshot has expired.
    """
    from spark_jobs.ingestion.row_sources import target_table
    from spark_jobs.runtime.new_table import dropping_if_empty

    existing = table = _existing_table(catalog, wanted)
    if table is None:
        table = target_table(catalog, None, wanted, _columns_of(wanted, started, None, paths))
    with dropping_if_empty(catalog, wanted.table, existing), table.stream_batch(commit) as noted:
        if noted is not None:
            return _ingest_rows(catalog, wanted, started, noted, paths)
        if done := table.find_commit(commit):
            return Outcome.of_commit(table, done, None)
        reason = f"{commit} was published before, and its snapshot has expired; nothing was done"
        return Outcome(
            reason=reason,
            report={"table": table.location, "snapshot_id": None, "reason": reason},
            newest_before=newest_snapshot(table),
            replayed=True,
        )


def _identity(catalog: Catalog, name: str) -> str | None:
    """Return the identity of a table; None if the table does not exist."""
    from lakeformat import NotFoundError

    try:
        return catalog.table(name).identity
    except NotFoundError:
        return None


def _ingest_new_files(catalog: Catalog, wanted: IngestRequest, started: Sessions) -> Outcome:
    """Ingest the files that no earlier run of the task has ingested. If writing the same rows again
    does not change the rows of the table, ingest all files.
    """
    from spark_jobs.ingestion.row_sources import target_table
    from spark_jobs.ingestion.run_files import RunFiles
    from spark_jobs.ingestion.source_files import find_states
    from spark_jobs.runtime.new_table import dropping_if_empty

    commit = wanted.commit_id()
    assert wanted.source is not None
    assert wanted.ingested_by is not None
    assert commit is not None
    existing = table = _existing_table(catalog, wanted)
    if table is None:
        table = target_table(catalog, None, wanted, _columns_of(wanted, started, None, None))
    with dropping_if_empty(catalog, wanted.table, existing):
        if table.replaces_repeated_rows:
            return _ingest_rows(catalog, wanted, started, commit)
        files = RunFiles(table, wanted.ingested_by, commit, wanted.ingested_in)
        if done := _done_before(table, commit, wanted):
            files.mark_published()
            return done
        found = find_states(wanted.source, wanted.catalog_options)
        new = files.new_files(found)
        files.mark_others()
        known = f"{len(found) - len(new)} of {counted(len(found), 'file')} of {wanted.source!r}"
        if not new:
            return Outcome(
                reason=f"no new file: earlier runs have ingested {known}",
                report={"table": table.location, "snapshot_id": None, "files": 0},
                skipped=True,
                newest_before=newest_snapshot(table),
            )
        if len(new) < len(found):
            _log.info("%s: skipping %s, which earlier runs have ingested", wanted.table, known)
        return files.ingest(new, lambda: _ingest_rows(catalog, wanted, started, commit, [*new]))


def _columns_of(
    wanted: IngestRequest, started: Sessions, table: Table | None, paths: Sequence[str] | None
) -> Columns:
    if wanted.engine == "spark":
        from spark_jobs.ingestion.spark_rows import spark_rows

        return spark_rows(started, wanted, table, paths)
    from spark_jobs.ingestion.row_sources import rows_of

    return rows_of(wanted, table, paths)


def _ingest_rows(
    catalog: Catalog,
    wanted: IngestRequest,
    started: Sessions,
    commit: CommitId | None,
    paths: Sequence[str] | None = None,
) -> Outcome:
    """Commit the rows of the source, or only those of the files ``paths``, in one commit. With
    ``stage``, write the files and stage them without a commit. If an earlier attempt has done this,
    return its outcome.
    """
    from spark_jobs.ingestion.row_key import key_of_rows, new_writer
    from spark_jobs.ingestion.row_sources import FileRows, rows_of, target_table
    from spark_jobs.runtime.new_table import dropping_if_empty

    table = _existing_table(catalog, wanted)
    if table is not None:
        _require_operations(table, wanted)
        if commit is not None and (done := _done_before(table, commit, wanted)):
            return done
    with dropping_if_empty(catalog, wanted.table, table):
        if wanted.engine == "spark":
            return _ingest_on_spark(catalog, table, wanted, started, commit, paths)
        rows = rows_of(wanted, table, paths)
        table = target_table(catalog, table, wanted, rows)
        wanted.require_position(table)
        before = newest_snapshot(table)
        by = key_of_rows(table, wanted)
        if by is not None and not wanted.stage:
            upserted = table.upsert(rows.batches(table), by, kinds=rows.kinds, commit=commit)
            return Outcome.of_commit(table, upserted, before)
        naming = rows.naming_file() if isinstance(rows, FileRows) else nullcontext()
        if not wanted.stage:
            with naming:
                report = table.write(
                    rows.batches(table),
                    rows.kinds,
                    overwrite=wanted.overwrite,
                    commit=commit,
                    **wanted.order,
                )
            return Outcome.of_commit(table, report, before)
        with naming, new_writer(table, by) as writer:
            writer.write(rows.batches(table), rows.kinds)
            messages = writer.prepare()
    return _stage(table, messages, commit)


def _ingest_on_spark(
    catalog: Catalog,
    table: Table | None,
    wanted: IngestRequest,
    started: Sessions,
    commit: CommitId | None,
    paths: Sequence[str] | None,
) -> Outcome:
    """Write the rows in Spark's tasks, and publish or stage the written files. Raise
    ``UnsupportedError`` if the format of the table lacks an operation of the request.
    """
    from spark_jobs.frames.executor import SparkExecutor
    from spark_jobs.frames.publish import publish
    from spark_jobs.frames.spark_write import begun, in_order
    from spark_jobs.ingestion.row_key import key_of_rows
    from spark_jobs.ingestion.row_sources import target_table
    from spark_jobs.ingestion.spark_rows import spark_rows
    from spark_jobs.runtime.spark_progress import reporting_tasks

    rows = spark_rows(started, wanted, table, paths)
    table = target_table(catalog, table, wanted, rows)
    if wanted.upsert_by is not None and "upsert" not in table.operations:
        raise refuse_operation(table, "upsert")
    wanted.require_position(table)
    before = newest_snapshot(table)
    with begun(table, wanted.overwrite, wanted.conflict) as batch:
        order = in_order(table, wanted.read_snapshot, wanted.conflict, wanted.upsert_by, batch)
        with reporting_tasks(started()):
            messages = rows.written(table, wanted.overwrite, order)
        if wanted.stage:
            return _stage(table, messages, commit)
        by = key_of_rows(table, wanted)
        report = publish(
            table,
            messages,
            overwrite=wanted.overwrite,
            commit=commit,
            upsert_by=by,
            executor=None if by is None else SparkExecutor(started()),
            batch=batch,
            **wanted.order,
        )
        return Outcome.of_commit(table, report, before)


def _require_operations(table: Table, wanted: IngestRequest) -> None:
    """Raise ``UnsupportedError`` if the format of the table lacks an operation of the job. Raise
    ``InvalidRequestError`` if a key of the request has no effect on this table.
    """
    from spark_jobs.ingestion.row_key import key_of_rows

    if wanted.stage:
        table.require("staged")
    wanted.require_position(table)
    if wanted.engine == "spark":
        table.require("commit")
        table.require_arguments("commit", read_snapshot=wanted.read_snapshot)
    if wanted.order and key_of_rows(table, wanted) is not None:
        name = next(iter(wanted.order))
        raise refusal(
            f"key {name!r} has no effect on change messages for {table.location}: the job applies "
            f"the messages in order, each to the row with the same key. Leave out {name!r}"
        )


def _done_before(table: Table, commit: CommitId, wanted: IngestRequest) -> Outcome | None:
    """Return the outcome of an earlier attempt if it used the same commit identity and published
    the rows or, with ``stage``, staged them; None without such an attempt.
    """
    if wanted.overwrite is not None:
        commit = replace(commit, replaces=None)  # an overwrite removes the old rows by itself
    if done := table.find_commit(commit):
        return Outcome.of_commit(table, done, None)
    if wanted.stage and (staged := table.staged.find(commit)):
        return _staged(table, staged, replayed=True)
    return None


def _existing_table(catalog: Catalog, wanted: IngestRequest) -> Table | None:
    from lakeformat import NotFoundError
    from spark_jobs.ingestion.row_key import require_key_of_new_table
    from spark_jobs.runtime.new_table import refuse_contradiction

    try:
        table = catalog.table(wanted.table)
    except NotFoundError as reason:
        if wanted.create:
            require_key_of_new_table(catalog, wanted)
            return None
        if "$" in wanted.table:  # a branch, which the job does not create
            raise
        raise NotFoundError(
            f"{sentence(reason)} With create=True the job creates the table from the columns of "
            "the source"
        ) from None
    refuse_contradiction(table, wanted)
    return table


def _stage(table: Table, messages: list[CommitMessage], commit: CommitId | None) -> Outcome:
    staged = table.staged.add(messages, commit=commit)
    is_mine = staged.messages == tuple(messages)
    if not is_mine:  # another attempt of this run has committed first
        table.abort(messages)
    return _staged(table, staged, replayed=not is_mine)


def _staged(table: Table, staged: StagedResult[CommitMessage], *, replayed: bool) -> Outcome:
    return Outcome(
        reason=f"to be committed: {counted(staged.rows, 'row')} in {counted(staged.files, 'file')}",
        report={"rows": staged.rows, "files": staged.files, "bytes": staged.bytes},
        skipped=not staged.messages,
        newest_before=newest_snapshot(table),
        replayed=replayed,
        more={"staged": table.staged.address(staged.name)},
    )


if __name__ == "__main__":
    sys.exit(main())
