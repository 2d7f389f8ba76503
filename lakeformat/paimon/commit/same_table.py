# SPDX-License-Identifier: Apache-2.0
"""Checks that the path of a handle still has the table that was opened.

A table may be renamed, dropped or created again while a handle is open. Publishing at the old path
would create a directory without a schema, or store rows with old columns in a new table.
"""

from __future__ import annotations

from lakeformat.errors import NotFoundError
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.schema_file import latest_schema_id, read_schema
from lakeformat.paimon.schema import TableSchema

__all__ = ["is_same_table", "require_same_table", "require_there"]


def require_there(handle: TableHandle) -> int:
    """Return the newest schema id; raise NotFoundError if the table does not exist."""
    newest = latest_schema_id(handle.storage, handle.layout)
    if newest is None:
        raise NotFoundError(
            f"{handle.uri} does not exist any more: it was renamed or dropped after it was opened. "
            "Nothing was changed; open the table under its current name"
        )
    return newest


def require_same_table(handle: TableHandle) -> int:
    """Return the newest schema id, which may be newer than the schema of the handle.

    Raise NotFoundError if the table is missing or was created again.
    """
    newest = require_there(handle)
    _require_opened(handle, newest)
    return newest


def is_same_table(handle: TableHandle) -> bool:
    """Return True if the table exists and is the one that was opened."""
    try:
        require_same_table(handle)
    except NotFoundError:
        return False
    return True


def _require_opened(handle: TableHandle, newest: int) -> None:
    ours = handle.schema
    if ours.id <= newest:
        found = read_schema(handle.storage, handle.layout, ours.id)
        if _content(found) == _content(ours):
            return
    raise NotFoundError(
        f"{handle.uri} is not the table that was opened: the opened table was dropped or renamed, "
        f"and another table was created at its path (schema {ours.id} is missing or differs). "
        "Nothing was changed; open the table again"
    )


def _content(schema: TableSchema) -> tuple[object, ...]:
    """Return the parts of a schema that identify a table; options are left out, as callers may set
    them.
    """
    keys = (schema.partition_keys, schema.primary_keys)
    return (schema.fields, schema.highest_field_id, *keys, schema.time_millis)
