# SPDX-License-Identifier: Apache-2.0
"""Records of one file as Arrow columns, with errors that name the file and the field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from lakeformat.errors import CorruptTableError

__all__ = ["column_of"]


def column_of(
    records: Sequence[Mapping[str, Any]], field: pa.Field, uri: str, default: Any = None
) -> pa.Array:
    """Return one field of all records; one without it has the default."""
    values: list[Any] = [record.get(field.name, default) for record in records]
    try:
        if pa.types.is_map(field.type):
            values = [_pairs(each) for each in values]
        column = pa.array(values, field.type)
    except (pa.ArrowException, KeyError, TypeError, ValueError, OverflowError) as reason:
        raise CorruptTableError(
            f"{uri} has a value in the field {field.name!r} that does not fit: {reason}"
        ) from None
    if not field.nullable and column.null_count:
        raise CorruptTableError(f"{uri} has an entry without the required field {field.name!r}")
    return column


def _pairs(entries: Sequence[Mapping[str, Any]] | None) -> list[tuple[Any, Any]] | None:
    """Return the entries of a map, which Avro has as records of a key and a value."""
    return None if entries is None else [(each["key"], each["value"]) for each in entries]
