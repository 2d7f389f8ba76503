# SPDX-License-Identifier: Apache-2.0
"""Checks that a new type keeps the order of a column's values, if merges compare these values."""

from __future__ import annotations

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.aggregate_rules import extreme_columns
from lakeformat.paimon.options import TableOptions
from lakeformat.paimon.schema import TableSchema
from lakeformat.paimon.schema_changes.changes import Path
from lakeformat.paimon.schema_changes.column_path import shown
from lakeformat.paimon.schema_changes.sequence_groups import sequence_groups
from lakeformat.types.casts import keeps_distinct, keeps_order
from lakeformat.types.type_text import type_to_sql
from lakeformat.types.types import DataType

__all__ = ["check_order"]


def check_order(schema: TableSchema, path: Path, old: DataType, new: DataType) -> None:
    """Raise InvalidRequestError if existing rows would merge to other values with the new type.

    Values of sequence columns must keep their order, and must not become equal. Values of a ``max``
    or ``min`` column must keep their order.
    """
    if len(path) > 1 or keeps_distinct(old, new):
        return
    [column] = path
    key = _sequence_option(schema, column)
    if key is None and not keeps_order(old, new):
        key = extreme_columns(schema).get(column)
    if key is not None:
        raise InvalidRequestError(
            f"column {shown(path)} cannot change from {type_to_sql(old)} to {type_to_sql(new)}: "
            f"option {key!r} compares its values, and the new type may change their order or make "
            "some of them equal. Nothing was changed: choose a type that holds all values in the "
            "same order, such as a wider one, or create a new table and copy the rows"
        )


def _sequence_option(schema: TableSchema, column: str) -> str | None:
    """Return the key of the option that makes ``column`` a sequence; None without one."""
    options = schema.table_options
    if column in (name.strip() for name in options.sequence_field):
        return TableOptions.sequence_field.key
    if options.merge_engine != "partial-update":
        return None
    groups = sequence_groups(schema)
    return next((group.option for group in groups if column in group.sequence), None)
