# SPDX-License-Identifier: Apache-2.0
"""Partition values as Avro has them, made into Arrow arrays of their types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from lakeformat.files.decimal_bytes import decimals_from_bytes
from lakeformat.iceberg.arrow_types import to_arrow_type
from lakeformat.iceberg.types import PrimitiveType, Type

__all__ = ["values_to_arrow"]

_STORED: dict[str, pa.DataType] = {
    "date": pa.int32(),
    "time": pa.int64(),
    "timestamp": pa.int64(),
    "timestamptz": pa.int64(),
    "timestamp_ns": pa.int64(),
    "timestamptz_ns": pa.int64(),
}


def values_to_arrow(kind: Type, values: Sequence[Any]) -> pa.Array:
    """Return an array of a primitive type from numbers, texts and bytes."""
    arrow_type = to_arrow_type(kind)
    if isinstance(kind, PrimitiveType) and kind.name == "decimal":
        return decimals_from_bytes(pa.array(values, pa.binary()), arrow_type)
    stored = _STORED.get(kind.name) if isinstance(kind, PrimitiveType) else None
    return pa.array(values, stored or arrow_type).cast(arrow_type)
