# SPDX-License-Identifier: Apache-2.0
"""Checks of column changes, each a rule of the format with its reason."""

from __future__ import annotations

import pyarrow as pa

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.paimon.bucketing import keeps_buckets
from lakeformat.paimon.schema import TableSchema
from lakeformat.paimon.schema_changes.changes import ColumnPlace, ColumnPosition, Path
from lakeformat.paimon.schema_changes.column_path import ELEMENT, VALUE, shown
from lakeformat.types.arrow_types import to_arrow_type
from lakeformat.types.casts import can_cast, cast_array
from lakeformat.types.type_text import type_to_sql
from lakeformat.types.types import (
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    RowType,
    TypeName,
)

__all__ = [
    "check_bucket_key_type",
    "check_cast",
    "check_drop",
    "check_key_nullability",
    "check_nullability",
    "check_rename",
    "check_renamed_type",
    "check_type_change",
    "default_position",
]


def default_position(schema: TableSchema, path: Path) -> ColumnPosition:
    """Return the position of a new column if the caller gives no position.

    The new column is the last one. With ``add-column-before-partition``, it is directly before the
    first partition column.
    """
    if len(path) == 1 and schema.table_options.add_column_before_partition:
        for field in schema.fields:
            if field.name in schema.partition_keys:
                return ColumnPosition(ColumnPlace.BEFORE, field.name)
    return ColumnPosition(ColumnPlace.LAST)


def check_drop(schema: TableSchema, path: Path) -> None:
    """Raise InvalidRequestError for a column of the primary key or of the partition keys."""
    _refuse_partition_key(schema, path, "be dropped")
    _refuse_primary_key(schema, path, "be dropped")


def check_rename(schema: TableSchema, path: Path) -> None:
    """Raise InvalidRequestError for a partition column: directories contain its name."""
    _refuse_partition_key(schema, path, "be renamed")


def check_renamed_type(field: DataField, path: Path) -> None:
    """Raise InvalidRequestError for a BLOB column: its files are found by the column's name."""
    if isinstance(field.type, AtomicType) and field.type.name is TypeName.BLOB:
        raise InvalidRequestError(
            f"column {shown(path)} is a BLOB, which cannot be renamed, because its files are "
            "found by its name; add a column with the new name instead"
        )


def check_type_change(schema: TableSchema, path: Path) -> None:
    """Raise an error if the type of the column must not change.

    Raise InvalidRequestError for a primary-key or partition column, and UnsupportedError for a
    column with a default value.
    """
    _refuse_partition_key(schema, path, "change its type")
    _refuse_primary_key(schema, path, "change its type")
    for field in schema.fields:
        if path == (field.name,) and field.default_value is not None:
            raise UnsupportedError(
                f"column {shown(path)} has the default value {field.default_value!r}, and this "
                "version cannot check it against the new type: change the type with another engine"
            )


def check_bucket_key_type(schema: TableSchema, path: Path, old: DataType, new: DataType) -> None:
    """Raise InvalidRequestError if a bucket-key column gets a type that changes the buckets of
    rows.

    Existing rows remain in their buckets, so a search in the new buckets would not find them.
    """
    options = schema.table_options
    if len(path) > 1 or path[0] not in (options.bucket_key or ()):
        return
    if not keeps_buckets(options.bucket_function, old, new):
        raise InvalidRequestError(
            f"{shown(path)} is a bucket-key column, which cannot change its type from "
            f"{_text(old)} to {_text(new)}: the new type would assign other buckets to the same "
            "values, but existing rows remain in their buckets; create a new table and copy the "
            "rows"
        )


def check_key_nullability(schema: TableSchema, path: Path, *, nullable: bool) -> None:
    """Raise InvalidRequestError if a primary-key column would allow nulls."""
    if nullable:
        _refuse_primary_key(schema, path, "be null")


def check_nullability(schema: TableSchema, path: Path, old: DataType, *, nullable: bool) -> None:
    """Raise InvalidRequestError if existing rows may have nulls that would be forbidden.

    ``alter-column-null-to-not-null.disabled`` = ``false`` skips this check.
    """
    option = type(schema.table_options).alter_column_null_to_not_null_disabled
    if old.nullable and not nullable and option.parse(schema.table_options.text(option)):
        raise InvalidRequestError(
            f"column {shown(path)} cannot become NOT NULL, because existing rows may have "
            f"nulls; if you know that there are none, set {option.key!r} to 'false' first"
        )


def check_cast(schema: TableSchema, path: Path, old: DataType, new: DataType) -> None:
    """Raise InvalidRequestError if values of old files cannot be cast to the new type.

    With ``disable-explicit-type-casting``, raise it also if the cast may lose values.
    """
    option = type(schema.table_options).disable_explicit_type_casting
    only_implicit = option.parse(schema.table_options.text(option))
    if _has_cast(old, new, explicit=not only_implicit):
        return
    change = f"column {shown(path)} cannot change from {_text(old)} to {_text(new)}"
    if only_implicit and _has_cast(old, new, explicit=True):
        raise InvalidRequestError(
            f"{change} without loss, and {option.key!r} is 'true'; set it to 'false' to allow loss"
        )
    part = _first_part(old)
    inside = f", or change one part of the column, such as {shown((*path, part))}" if part else ""
    raise InvalidRequestError(
        f"{change}: there is no such cast. Add a column of the new type{inside}"
    )


def _first_part(of: DataType) -> str | None:
    """Return a name with which a column path can continue inside a column of the type ``of``.

    The name is the first field of a ROW, ``element`` for an ARRAY, or ``value`` for a MAP. Return
    None if a path cannot continue inside the column.
    """
    match of:
        case RowType(fields=(first, *_)):
            return first.name
        case ArrayType():
            return ELEMENT
        case MapType():
            return VALUE
    return None


def _has_cast(old: DataType, new: DataType, *, explicit: bool) -> bool:
    """Return True if a reader can cast values from ``old`` to ``new``.

    ``explicit=True`` allows casts that may lose a part of a value.
    """
    is_blob = any(isinstance(t, AtomicType) and t.name is TypeName.BLOB for t in (old, new))
    if is_blob or not isinstance(new, AtomicType) or not can_cast(old, new, explicit=explicit):
        return False
    try:
        cast_array(pa.nulls(0, to_arrow_type(old)), old, new)
    except InvalidRequestError:
        return False
    return True


def _refuse_partition_key(schema: TableSchema, path: Path, what: str) -> None:
    if len(path) == 1 and path[0] in schema.partition_keys:
        raise InvalidRequestError(
            f"{shown(path)} is a partition column, which cannot {what}; create a new table and "
            "copy the rows"
        )


def _refuse_primary_key(schema: TableSchema, path: Path, what: str) -> None:
    if len(path) == 1 and path[0] in schema.primary_keys:
        raise InvalidRequestError(
            f"{shown(path)} is a primary-key column, which cannot {what}; create a new table and "
            "copy the rows"
        )


def _text(data_type: DataType) -> str:
    return type_to_sql(data_type)
