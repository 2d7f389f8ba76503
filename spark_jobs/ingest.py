"""Appends Parquet, CSV or JSON-lines files to a table, once per commit identity.

    python -m spark_jobs.ingest --request '{"warehouse": "warehouse", "table": "shop.orders",
                                            "source": "orders/*.csv", "create": true}'

The same file goes to ``spark-submit``; the request may also be the path of a JSON file.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from spark_jobs.command import run_command
from spark_jobs.job import Job, Outcome, newest_snapshot, open_warehouse, published_by
from spark_jobs.job_requests.ingest import IngestRequest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakeformat import Catalog, CommitId, CommitMessage, CommitReport, Table
    from lakeformat.metadata.staged_result import StagedResult
    from spark_jobs.source_files import SourceFiles

__all__ = ["JOB", "main", "run"]

JOB = Job(
    "ingest",
    IngestRequest,
    {
        "warehouse": "warehouse",
        "table": "shop.orders",
        "source": "incoming/*.csv",
        "create": True,
    },
)


def run(request: Mapping[str, Any], spark: SparkSession | None = None) -> dict[str, Any]:
    """Do what an ``IngestRequest`` says; the report is that of the commit.

    Repeated with the same commit pair, it returns the earlier report without reading any file.
    """
    return JOB.answer(request, lambda wanted: _ingest(wanted, spark))


def main(arguments: list[str] | None = None) -> int:
    """The command line; returns the exit code."""
    return run_command(JOB, run, arguments)


def _ingest(wanted: IngestRequest, spark: SparkSession | None) -> Outcome:
    from spark_jobs.source_files import find_source

    commit = wanted.commit_id()
    catalog = open_warehouse(wanted)
    table = _existing_table(catalog, wanted)
    if table is not None and commit is not None and (done := _done_before(table, commit, wanted)):
        return done
    source = find_source(wanted.source, wanted.format)
    if table is None:
        table = _create_table(catalog, wanted.table, source)
    before = newest_snapshot(table)
    if wanted.stage:
        return _stage(table, source, wanted, spark)
    if wanted.engine == "python":
        return _committed(_ingest_here(table, source, commit), before)
    return _committed(_ingest_on_spark(table, source, commit, spark), before)


def _done_before(table: Table, commit: CommitId, wanted: IngestRequest) -> Outcome | None:
    """What an earlier try has published or, where that is asked for, staged."""
    if done := table.find_commit(commit):
        return _committed(done, None)
    if wanted.stage and (staged := table.staged.find(commit)):
        return _staged(table, staged, replayed=True)
    return None


def _committed(report: CommitReport, before: int | None) -> Outcome:
    return Outcome(
        reason=report.reason,
        report=report.to_dict(),
        skipped=report.snapshot_id is None,
        snapshot_ids=published_by(report),
        newest_before=before,
        replayed=report.replayed,
    )


def _existing_table(catalog: Catalog, wanted: IngestRequest) -> Table | None:
    from lakeformat import NotFoundError

    try:
        return catalog.table(wanted.table)
    except NotFoundError:
        if wanted.create:
            return None
        raise


def _create_table(catalog: Catalog, name: str, source: SourceFiles) -> Table:
    """Another run may be faster: then its table is taken."""
    from spark_jobs.file_readers import infer_columns

    columns = infer_columns(source)
    catalog.create_database(name.partition(".")[0], exist_ok=True)
    return catalog.create_table(name, columns, exist_ok=True)


def _ingest_here(table: Table, source: SourceFiles, commit: CommitId | None) -> CommitReport:
    from spark_jobs.file_readers import read_files

    rows = read_files(source.paths, source.format, table.schema.arrow_schema())
    return table.write(rows, commit=commit)


def _ingest_on_spark(
    table: Table, source: SourceFiles, commit: CommitId | None, spark: SparkSession | None
) -> CommitReport:
    messages = _write_on_spark(table, source, spark)
    report = table.commit(messages, commit=commit)
    if report.unpublished_files:  # a twin of this run was faster: its files are the table's
        table.abort(messages)
    return report


def _write_on_spark(
    table: Table, source: SourceFiles, spark: SparkSession | None
) -> list[CommitMessage]:
    from spark_jobs.spark_session import job_session
    from spark_jobs.spark_source import source_frame
    from spark_jobs.spark_write import write_in_tasks

    with job_session(spark, f"ingest {table.location}") as session:
        frame, read_rows = source_frame(session, source)
        return write_in_tasks(frame, table, read_rows)


def _write_here(table: Table, source: SourceFiles) -> list[CommitMessage]:
    from spark_jobs.file_readers import read_files

    with table.new_writer() as writer:
        writer.write(read_files(source.paths, source.format, table.schema.arrow_schema()))
        return list(writer.prepare())


def _stage(
    table: Table, source: SourceFiles, wanted: IngestRequest, spark: SparkSession | None
) -> Outcome:
    if wanted.engine == "python":
        messages = _write_here(table, source)
    else:
        messages = _write_on_spark(table, source, spark)
    staged = table.staged.add(messages, commit=wanted.commit_id())
    if staged.messages != tuple(messages):  # a twin of this run was faster
        table.abort(messages)
    return _staged(table, staged)


def _staged(table: Table, staged: StagedResult, *, replayed: bool = False) -> Outcome:
    return Outcome(
        reason=f"{staged.rows} rows in {staged.files} files wait to be committed",
        report={"rows": staged.rows, "files": staged.files, "bytes": staged.bytes},
        skipped=not staged.messages,
        newest_before=newest_snapshot(table),
        replayed=replayed,
        more={"staged": table.staged.address(staged.name)},
    )


if __name__ == "__main__":
    sys.exit(main())
