# SPDX-License-Identifier: Apache-2.0
"""Converts the changes of ``alter_table`` to those that an Iceberg table takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.iceberg.change_columns import ColumnChange, NewColumn, WiderColumn
from lakeformat.paimon.schema_changes.changes import AddColumn, UpdateColumnType
from lakeformat.types.arrow_types import to_arrow_type

if TYPE_CHECKING:
    from lakeformat.paimon.schema_changes.changes import SchemaChange

__all__ = ["column_change"]


def column_change(table: str, change: SchemaChange) -> ColumnChange:
    """Return a change of a column; raise for a change that an Iceberg table does not take."""
    if isinstance(change, UpdateColumnType):
        return WiderColumn(change.path, to_arrow_type(change.type))
    if not isinstance(change, AddColumn):
        raise UnsupportedError(
            f"{table} is an Iceberg table, of which alter_table only adds columns and widens types "
            f"(add_column, update_column_type): for {type(change).__name__} use ALTER TABLE in "
            "Spark"
        )
    field, path = change.field, ".".join(change.path)
    if change.position is not None or field.default_value is not None or not field.type.nullable:
        raise InvalidRequestError(
            f"column {path!r} of {table} can only be added as the last one, without a default, and "
            "not as NOT NULL, because the rows of existing files have nulls there: leave these out"
        )
    return NewColumn(change.path, to_arrow_type(field.type), field.description)
