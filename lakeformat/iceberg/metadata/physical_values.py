# SPDX-License-Identifier: Apache-2.0
"""Partition values as Avro has them, made into Arrow arrays of their types."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa

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
_EXACT = Context(prec=38)


def values_to_arrow(kind: Type, values: Sequence[Any]) -> pa.Array:
    """Return an array of a primitive type from numbers, texts and bytes."""
    arrow_type = to_arrow_type(kind)
    if isinstance(kind, PrimitiveType) and kind.name == "decimal":
        return pa.array([_decimal(each, kind.scale) for each in values], arrow_type)
    stored = _STORED.get(kind.name) if isinstance(kind, PrimitiveType) else None
    return pa.array(values, stored or arrow_type).cast(arrow_type)


def _decimal(value: bytes | None, scale: int) -> Decimal | None:
    if value is None:
        return None
    return Decimal(int.from_bytes(value, "big", signed=True)).scaleb(-scale, _EXACT)
