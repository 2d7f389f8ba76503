"""Changes to a table's schema: their definition, their checks, and their result.

``apply_changes`` is pure; ``paimon/metadata/schema_file.py`` publishes its result.
"""

from __future__ import annotations

from lakeformat.paimon.schema_changes.apply import apply_changes
from lakeformat.paimon.schema_changes.changes import (
    ColumnPath,
    SchemaChange,
    add_column,
    drop_column,
    remove_option,
    rename_column,
    set_option,
    update_column_comment,
    update_column_nullability,
    update_column_position,
    update_column_type,
    update_comment,
)

__all__ = [
    "ColumnPath",
    "SchemaChange",
    "add_column",
    "apply_changes",
    "drop_column",
    "remove_option",
    "rename_column",
    "set_option",
    "update_column_comment",
    "update_column_nullability",
    "update_column_position",
    "update_column_type",
    "update_comment",
]
