# SPDX-License-Identifier: Apache-2.0
"""Converts records of one file to Arrow columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from lakeformat.errors import CorruptTableError
from lakeformat.tables.json_file import RESTORE

__all__ = ["column_of"]


def column_of(
    records: Sequence[Mapping[str, Any]], field: pa.Field, uri: str, default: Any = None
) -> pa.Array:
    """Return one field of all records as a column; a record without the field gets ``default``.

    Raise ``CorruptTableError``, which names the file and the field, if a value has another type or
    a required value is missing.
    """
    values = [record.get(field.name, default) for record in records]
    try:
        is_map = pa.types.is_map(field.type)
        column = _maps(values, field.type) if is_map else pa.array(values, field.type)
    except (pa.ArrowException, KeyError, TypeError, ValueError, OverflowError) as reason:
        raise CorruptTableError(
            f"{uri} has a value in the field {field.name!r} that does not fit: {reason}; {RESTORE}"
        ) from None
    if not field.nullable and column.null_count:
        raise CorruptTableError(
            f"{uri} has an entry without the required field {field.name!r}; {RESTORE}"
        )
    return column


def _maps(values: Sequence[Sequence[Mapping[str, Any]] | None], kind: pa.MapType) -> pa.Array:
    """Return an array of maps; Avro stores a map as a list of records with a key and a value."""
    entries = [entry for each in values if each for entry in each]
    keys = pa.array(list(map(itemgetter("key"), entries)), kind.key_type)
    if keys.null_count:
        raise ValueError("a key of a map is null")
    items = pa.array(list(map(itemgetter("value"), entries)), kind.item_type)
    ends = np.cumsum([0, *(len(each) if each else 0 for each in values)])
    # The offset of a null map is null.
    absent = np.array([*(each is None for each in values), False])
    offsets = pa.array(ends, pa.int32(), mask=absent)
    return pa.MapArray.from_arrays(offsets, keys, items, kind)
