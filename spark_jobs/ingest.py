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
from spark_jobs.request import IngestRequest, read_request

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakeformat import Catalog, CommitId, CommitReport, Table
    from spark_jobs.source_files import SourceFiles

__all__ = ["main", "run"]


def run(request: Mapping[str, Any], spark: SparkSession | None = None) -> dict[str, Any]:
    """Do what an ``IngestRequest`` says; the report is that of the commit.

    Repeated with the same commit pair, it returns the earlier report without reading any file.
    """
    wanted = read_request(IngestRequest, request)
    import lakeformat as lake
    from spark_jobs.source_files import find_source

    commit = wanted.commit_id()
    catalog = lake.open_catalog(wanted.warehouse, options=wanted.catalog_options)
    table = _existing_table(catalog, wanted)
    if table is not None and commit is not None and (done := table.find_commit(commit)):
        return done.to_dict()
    source = find_source(wanted.source, wanted.format)
    if table is None:
        table = _create_table(catalog, wanted.table, source)
    if wanted.engine == "python":
        return _ingest_here(table, source, commit).to_dict()
    return _ingest_on_spark(table, source, commit, spark).to_dict()


def main(arguments: list[str] | None = None) -> int:
    """The command line; returns the exit code."""
    return run_command("ingest", run, arguments)


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
    from spark_jobs.spark_session import job_session
    from spark_jobs.spark_source import source_frame
    from spark_jobs.spark_write import write_in_tasks

    with job_session(spark, f"ingest {table.location}") as session:
        frame, read_rows = source_frame(session, source)
        messages = write_in_tasks(frame, table, read_rows)
    report = table.commit(messages, commit=commit)
    if report.unpublished_files:  # a twin of this run was faster: its files are the table's
        table.abort(messages)
    return report


if __name__ == "__main__":
    sys.exit(main())
