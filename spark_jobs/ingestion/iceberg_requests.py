# SPDX-License-Identifier: Apache-2.0
"""Requests that the job ``ingest`` does not take for an Iceberg table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from lakeformat.errors import UnsupportedError

if TYPE_CHECKING:
    from spark_jobs.job_requests.ingest import IngestRequest

__all__ = ["is_iceberg", "refuse_for_iceberg"]

_REFUSED: Final[Mapping[str, str]] = {
    "source_table": "read table.changes(…) in a function, and write the rows with table.write",
    "messages_of": "apply change messages with Flink or Spark",
    "stage": "publish the rows, and check them with the job 'check'",
}


def is_iceberg(wanted: IngestRequest) -> bool:
    """Return True if the request names a table of a catalog of Iceberg tables."""
    return (wanted.catalog_options or {}).get("format") == "iceberg"


def refuse_for_iceberg(wanted: IngestRequest) -> None:
    """Raise ``UnsupportedError`` for a key that this version does not take for an Iceberg table."""
    if not is_iceberg(wanted):
        return
    advice = next((f"{key!r}: {_REFUSED[key]}" for key in _REFUSED if getattr(wanted, key)), None)
    if wanted.holds_messages:
        advice = f"'format': {_REFUSED['messages_of']}"
    elif wanted.on_schema_change != "fail":
        advice = "'on_schema_change': add the columns with ALTER TABLE in Spark"
    if advice is not None:
        raise UnsupportedError(
            f"{wanted.table} is an Iceberg table, for which the job does not take {advice}"
        )
