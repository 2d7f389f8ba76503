# SPDX-License-Identifier: Apache-2.0
"""The key by which the rows of the job ``ingest`` replace or delete rows of the table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lakeformat.errors import InvalidRequestError

if TYPE_CHECKING:
    from lakeformat import Catalog, Table
    from spark_jobs.job_requests.ingest import IngestRequest

__all__ = [
    "key_of_rows",
    "keys_of_messages",
    "new_writer",
    "require_key_of_new_table",
]


def key_of_rows(table: Table, wanted: IngestRequest) -> list[str] | None:
    """Return the key that the writer gets as ``upsert_by``.

    If the request has ``upsert_by``, return this key. Otherwise the result depends on the rows. For
    change messages, return the key of the table, or None if the writer of the table takes no
    ``upsert_by``, as in Paimon. For other rows, return None.

    Raise ``InvalidRequestError`` for messages without a key in an Iceberg table.
    """
    if wanted.upsert_by is None and not (wanted.holds_messages and _has_upsert(table)):
        return None
    return keys_of_messages(table, wanted)


def new_writer(table: Any, upsert_by: Sequence[str] | None) -> Any:
    """Return a writer whose files will be staged; ``upsert_by`` is the key if the rows are upserts,
    else None.
    """
    return table.new_writer() if upsert_by is None else table.new_writer(upsert_by=upsert_by)


def keys_of_messages(table: Table | None, wanted: IngestRequest) -> list[str]:
    """Return the key columns by which messages change rows: ``upsert_by`` if the format has upserts
    and the request has it, else the key of the table.

    If ``table`` is None, the job creates the table, and ``upsert_by`` or ``primary_key`` is the
    key. The list is empty for a new or a Paimon table without a key. Raise ``InvalidRequestError``
    if an Iceberg table has no key.
    """
    if table is None:
        return [*(wanted.upsert_by or wanted.primary_key or ())]
    if not _has_upsert(table):
        return table.key_columns
    keys = table.key_columns if wanted.upsert_by is None else [*wanted.upsert_by]
    if not keys:
        raise _without_key(wanted)
    return keys


def require_key_of_new_table(catalog: Catalog, wanted: IngestRequest) -> None:
    """Raise ``InvalidRequestError`` if messages would be upserted into a new table and the request
    has no key.
    """
    is_upserted = wanted.holds_messages and "upsert" not in catalog.table_class.instead
    if is_upserted and not (wanted.upsert_by or wanted.primary_key):
        raise _without_key(wanted)


def _has_upsert(table: Table) -> bool:
    return "upsert" in table.operations


def _without_key(wanted: IngestRequest) -> InvalidRequestError:
    return InvalidRequestError(
        f"the key of the rows is not known, because {wanted.table} is new or has no identifier "
        "fields: name the columns of the key, as in upsert_by=['id'] or, with create=True, "
        "primary_key=['id']"
    )
