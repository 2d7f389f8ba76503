# SPDX-License-Identifier: Apache-2.0
"""The dry run of an ingestion: the files that it would read, and the columns that it would create
or change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from lakeformat.types.count_text import counted
from spark_jobs.ingestion.new_column_texts import column_texts
from spark_jobs.ingestion.source_files import find_paths, find_states
from spark_jobs.job_requests.ingest import MessageFormat
from spark_jobs.runtime.job import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import lakeformat as lake
    from spark_jobs.ingestion.row_sources import Columns
    from spark_jobs.job_requests.ingest import IngestRequest

__all__ = ["planned"]

_EFFECTS = {
    None: "would be added to {table}",
    "partitions": "would replace those partitions of {table} that get rows",
    "table": "would replace all rows of {table}",
}
_STAGE = "would be staged for {table}"
_CHANGES = "would be applied to {table}"
_UPSERT = "would replace rows with the same keys in {table}"


def planned(
    table: lake.Table | None,
    wanted: IngestRequest,
    columns_of: Callable[[Sequence[str] | None], Columns],
) -> Outcome:
    """Return the outcome of a dry run: the files to read, and the columns to create or change.

    Nothing is changed, and values are not checked. ``table`` is None if it does not exist.
    ``columns_of`` returns the columns of the given files or, if it gets None, of the SQL table.
    Raise ``InvalidRequestError`` if the table cannot take the columns.
    """
    files = _files(table, wanted)
    what = wanted.jdbc_table if wanted.source is None else counted(len(files), "file")
    columns: list[str] = []
    changes: list[str] = []
    if files or wanted.source is None:
        rows = columns_of(files or None)
        if table is None:
            columns = column_texts(rows.new_columns())
        else:
            changes = [str(each) for each in rows.changes_for(table)]
    how = f", which would be created with the columns {', '.join(columns)}" if columns else ""
    how = f"; the job would {', '.join(changes)}" if changes else how
    effect = _effect(table, wanted).format(table=wanted.table)
    return Outcome(
        reason=f"dry run: {what} {effect}{how}",
        report={
            "dry_run": True,
            "files": files,
            "new_columns": columns,
            "schema_changes": changes,
        },
    )


def _effect(table: lake.Table | None, wanted: IngestRequest) -> str:
    if wanted.stage:
        return _STAGE
    if wanted.format in get_args(MessageFormat):
        return _CHANGES
    if table is None:
        return _EFFECTS[None]
    return _EFFECTS[wanted.overwrite] if wanted.upsert_by is None else _UPSERT


def _files(table: lake.Table | None, wanted: IngestRequest) -> list[str]:
    if wanted.source is None:
        return []
    commit = wanted.commit_id()
    is_whole = table is None or table.replaces_repeated_rows
    if table is None or is_whole or not wanted.takes_new_files or commit is None:
        return find_paths(wanted.source, wanted.catalog_options)
    from spark_jobs.ingestion.run_files import RunFiles

    found = find_states(wanted.source, wanted.catalog_options)
    files = RunFiles(table, str(wanted.ingested_by), commit, wanted.ingested_in)
    return [*files.new_files(found)]
