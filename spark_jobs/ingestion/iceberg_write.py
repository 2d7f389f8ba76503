# SPDX-License-Identifier: Apache-2.0
"""Writes rows of files and of SQL tables to an Iceberg table, in one commit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

import lakeformat as lake
from spark_jobs.runtime.job import Outcome

if TYPE_CHECKING:
    from spark_jobs.job_requests.ingest import IngestRequest

__all__ = ["is_iceberg", "refuse_for_iceberg", "write_to_iceberg"]

_NEW = "create the table first, with catalog.create_table"
_SPARK = "write 'python' for engine: one process reads and writes the rows"
_REFUSED: Final[Mapping[str, str]] = {
    "checkpoint": "ingest the files of one run by their names",
    "source_table": "read table.changes(…) in a function, and write the rows with table.write",
    "messages_of": "apply change messages with Flink or Spark",
    "primary_key": _NEW,
    "partition_by": _NEW,
    "table_options": _NEW,
    "dry_run": "leave it out",
    "stage": "publish the rows, and check them with the job 'check'",
}


@dataclass(frozen=True, slots=True)
class _Target:
    """The columns of the table, in the types that readers of files convert to."""

    schema: lake.TableSchema
    location: str


def is_iceberg(wanted: IngestRequest) -> bool:
    """Return True if the request names a table of a catalog of Iceberg tables."""
    return (wanted.catalog_options or {}).get("format") == "iceberg"


def refuse_for_iceberg(wanted: IngestRequest) -> None:
    """Raise ``UnsupportedError`` for a key that this version does not take for an Iceberg table."""
    advice = next((f"{key!r}: {_REFUSED[key]}" for key in _REFUSED if getattr(wanted, key)), None)
    if wanted.holds_messages:
        advice = f"'format': {_REFUSED['messages_of']}"
    elif wanted.on_schema_change != "fail":
        advice = "'on_schema_change': add the columns with ALTER TABLE in Spark"
    elif wanted.engine == "spark":
        advice = f"'engine': {_SPARK}"
    if advice is not None:
        raise _refusal(wanted, advice)


def _refusal(wanted: IngestRequest, advice: str) -> lake.UnsupportedError:
    return lake.UnsupportedError(
        f"{wanted.table} is an Iceberg table, for which the job does not take {advice}"
    )


def write_to_iceberg(wanted: IngestRequest, open_table: Callable[[], lake.IcebergTable]) -> Outcome:
    """Append all rows of the source, or replace those of the table or of its partitions; the same
    commit pair publishes once.
    """
    from lakeformat.iceberg.read.condition_fields import condition_fields
    from spark_jobs.ingestion.row_sources import rows_of

    refuse_for_iceberg(wanted)
    try:
        table = open_table()
    except lake.NotFoundError as missing:
        if wanted.create:
            raise _refusal(wanted, f"'create': {_NEW}") from missing
        raise
    fields = condition_fields(table.schema)
    schema = lake.TableSchema(id=0, fields=fields, highest_field_id=len(fields))
    target = cast(Any, _Target(schema, table.location))
    rows = rows_of(wanted, target)
    report = table.write(
        rows.batches(target), overwrite=wanted.overwrite, commit=wanted.commit_id()
    )
    newest = table.latest_snapshot()
    before = None if newest is None else newest.id
    if report.snapshot_id is not None:
        before = table.snapshot_id_at(table.position(report.snapshot_id).before) or None
    return Outcome(
        reason=report.reason,
        report=report.to_dict(),
        skipped=report.snapshot_id is None,
        snapshot_ids=() if report.snapshot_id is None else (report.snapshot_id,),
        newest_before=before,
        numbered=False,
        replayed=report.replayed,
    )
