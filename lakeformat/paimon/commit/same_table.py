"""Whether the table a handle was opened on is still the one that lies there.

Tables are renamed, dropped and made anew while others hold a handle. Whoever went on publishing
at the old place would make a directory without schemas, where nobody finds the rows; or rows of
old columns in a table that has others.
"""

from __future__ import annotations

from dataclasses import dataclass

from lakeformat.errors import NotFoundError
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.schema_file import latest_schema_id, read_schema
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.schema import TableSchema

__all__ = ["SameTable", "is_same_table", "require_same_table", "require_there"]


@dataclass(slots=True)
class SameTable:
    """Looks before every publication, and reads the schema once per commit."""

    handle: TableHandle
    _head: int | None = None
    """The number of the last head; a lower one after it is of another table."""

    def schema_id(self, head: Snapshot | None) -> int:
        """The schema in force now, which may be newer than the handle's."""
        newest, number = require_there(self.handle), head.id if head else 0
        if self._head is None or number < self._head:
            _require_opened(self.handle, newest)
        self._head = number
        return newest


def require_there(handle: TableHandle) -> int:
    """The number of the newest schema, or an error if the table is gone."""
    newest = latest_schema_id(handle.storage, handle.layout)
    if newest is None:
        raise NotFoundError(
            f"{handle.uri} is not there any more: it was renamed or dropped after it was opened "
            "here. Nothing was changed; open it under its present name"
        )
    return newest


def require_same_table(handle: TableHandle) -> int:
    """The number of the newest schema, or an error if the table is gone or replaced."""
    newest = require_there(handle)
    _require_opened(handle, newest)
    return newest


def is_same_table(handle: TableHandle) -> bool:
    """Whether the schema the handle was opened with is still there."""
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
        f"{handle.uri} is not the table that was opened here: it was dropped or renamed, and "
        f"another one was made in its place (schema {ours.id} is not the same). Nothing was "
        "changed; open the table again"
    )


def _content(schema: TableSchema) -> tuple[object, ...]:
    """What is never changed under one number; options a caller may have set for itself."""
    keys = (schema.partition_keys, schema.primary_keys)
    return (schema.fields, schema.highest_field_id, *keys, schema.time_millis)
