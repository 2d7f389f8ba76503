# SPDX-License-Identifier: Apache-2.0
"""Refuses nulls of NOT NULL columns in rows that are written again."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lakeformat.errors import InvalidRequestError
from lakeformat.files.nested_arrays import present_entries
from lakeformat.types.types import (
    ArrayType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
)

__all__ = ["refuse_stored_nulls"]


def refuse_stored_nulls(rows: pa.Table, fields: Sequence[DataField]) -> None:
    """Raise ``InvalidRequestError`` if a NOT NULL column has a null, nested values included.

    New rows are checked when they are written, so a row with a null is older than the NOT NULL
    constraint.
    """
    for field, column in zip(fields, rows.columns, strict=True):
        for values in column.chunks:
            path = _with_null(values, field.type, field.name)
            if path is not None:
                raise InvalidRequestError(
                    f"column {path!r} is NOT NULL, but a stored row has a null there, so the file "
                    "of this row cannot be rewritten. No change of this file was published. "
                    "Make the column nullable again with update_column_nullability, give such rows "
                    "a value, then make the column NOT NULL"
                )


def _with_null(values: pa.Array, kind: DataType, path: str) -> str | None:
    """Return the first column with a null that its type forbids; None if there is none."""
    if not kind.nullable and values.null_count:
        return path
    parts: list[tuple[pa.Array, DataType, str]] = []
    match kind:
        case ArrayType(element=element):
            parts = [(values.flatten(), element, "element")]
        case MapType(key=key, value=value):
            keys, items = present_entries(values)
            parts = [(keys, key, "key"), (items, value, "value")]
        case MultisetType(element=element):
            parts = [(present_entries(values)[0], element, "key")]
        case RowType(fields=fields):
            present = values.drop_null()
            parts = [(present.field(n), each.type, each.name) for n, each in enumerate(fields)]
    found = (_with_null(part, inner, f"{path}.{name}") for part, inner, name in parts)
    return next((each for each in found if each is not None), None)
