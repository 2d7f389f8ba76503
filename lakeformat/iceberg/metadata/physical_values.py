# SPDX-License-Identifier: Apache-2.0
"""Converts partition values from their Avro form to Arrow arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from lakeformat.files.decimal_bytes import decimals_from_bytes
from lakeformat.iceberg.arrow_types import to_arrow_type
from lakeformat.iceberg.types import PrimitiveType, Type

__all__ = ["from_stored", "stored_type", "values_to_arrow"]

_STORED: dict[str, pa.DataType] = {
    "date": pa.int32(),
    "time": pa.int64(),
    "timestamp": pa.int64(),
    "timestamptz": pa.int64(),
    "timestamp_ns": pa.int64(),
    "timestamptz_ns": pa.int64(),
    "decimal": pa.binary(),
}


def values_to_arrow(kind: Type, values: Sequence[Any]) -> pa.Array:
    """Return an Arrow array of ``kind``; ``values`` are in Avro's form: numbers, strings, bytes."""
    return from_stored(kind, pa.array(values, stored_type(kind)))


def stored_type(kind: Type) -> pa.DataType:
    """Return the Arrow type that holds values of ``kind`` in Avro's form."""
    stored = _STORED.get(kind.name) if isinstance(kind, PrimitiveType) else None
    return stored or to_arrow_type(kind)


def from_stored(kind: Type, stored: pa.Array) -> pa.Array:
    """Return an Arrow array of ``kind``; ``stored`` has the values in Avro's form."""
    arrow_type = to_arrow_type(kind)
    if pa.types.is_decimal(arrow_type):
        return decimals_from_bytes(stored, arrow_type)
    return stored.cast(arrow_type)
