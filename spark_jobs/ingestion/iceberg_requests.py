# SPDX-License-Identifier: Apache-2.0
"""Checks a request of the job ``ingest`` for an Iceberg table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from lakeformat.errors import InvalidRequestError, UnsupportedError
from spark_jobs.runtime.new_table import identifying_columns

if TYPE_CHECKING:
    from spark_jobs.job_requests.ingest import IngestRequest

__all__ = ["is_iceberg", "key_of_rows", "keys_of_messages", "new_writer", "refuse_for_iceberg"]

_REFUSED: Final[Mapping[str, str]] = {
    "source_table": "read table.changes(…) in a function, and write the rows with table.write",
}


def is_iceberg(wanted: IngestRequest) -> bool:
    """Return True if the request names a table of a catalog of Iceberg tables."""
    return (wanted.catalog_options or {}).get("format") == "iceberg"


def refuse_for_iceberg(wanted: IngestRequest) -> None:
    """Raise ``UnsupportedError`` if the request is for an Iceberg table and has a key, or a value,
    that the job does not take for one.
    """
    if not is_iceberg(wanted):
        return
    advice = next((f"{key!r}: {_REFUSED[key]}" for key in _REFUSED if getattr(wanted, key)), None)
    if advice is not None:
        raise UnsupportedError(
            f"{wanted.table} is an Iceberg table, for which the job does not take {advice}"
        )


def key_of_rows(table: Any, wanted: IngestRequest) -> list[str] | None:
    """Return the key by which the rows of a request change an Iceberg table; None if they are added
    to it, and for a Paimon table.
    """
    if wanted.upsert_by is None and not (wanted.holds_messages and is_iceberg(wanted)):
        return None
    return keys_of_messages(table, wanted)


def new_writer(table: Any, upsert_by: Sequence[str] | None) -> Any:
    """Return a writer of rows that are staged; ``upsert_by`` is their key in an Iceberg table."""
    return table.new_writer() if upsert_by is None else table.new_writer(upsert_by=upsert_by)


def keys_of_messages(table: Any, wanted: IngestRequest) -> list[str]:
    """Return the columns of the key by which messages change rows: ``upsert_by`` of the request,
    else the key of a Mixed table, else the identifier fields of the table.

    ``table`` is None if the job creates it; then ``primary_key`` is the key.
    """
    if wanted.upsert_by is not None:
        return [*wanted.upsert_by]
    keys = [*(wanted.primary_key or ())] if table is None else identifying_columns(table)
    if not keys:
        raise InvalidRequestError(
            f"{wanted.table} has no identifier fields, so the key of its rows is not known: name "
            "its columns, as in upsert_by=['id'], or with create=True in primary_key"
        )
    return keys
