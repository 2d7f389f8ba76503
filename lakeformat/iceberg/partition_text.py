# SPDX-License-Identifier: Apache-2.0
"""Formats partition values as Java does: the hour 442027 is ``2020-06-04-19``."""

from __future__ import annotations

import base64
from uuid import UUID

import pyarrow as pa

from lakeformat.iceberg.java_text import float_text, time_text, timestamp_text
from lakeformat.iceberg.transforms import TransformKind, parse_transform
from lakeformat.iceberg.types import PrimitiveType

__all__ = ["partition_text"]

_NULL = "null"
_EPOCH_YEAR = 1970


def partition_text(transform: str, kind: PrimitiveType, value: pa.Array) -> str:
    """Return the value in an array of length one as text; ``null`` for a null."""
    parsed = parse_transform(transform).kind
    if value.null_count or parsed is TransformKind.VOID:
        return _NULL
    match parsed:
        case TransformKind.YEAR:
            return f"{_EPOCH_YEAR + value[0].as_py():04d}"
        case TransformKind.MONTH:
            years, month = divmod(value[0].as_py(), 12)
            return f"{_EPOCH_YEAR + years:04d}-{month + 1:02d}"
        case TransformKind.HOUR:
            hours = pa.array([value[0].as_py() * 3600], pa.timestamp("s"))
            return str(hours.cast(pa.string())[0])[:13].replace(" ", "-")
    return _value_text(kind, value)


def _value_text(kind: PrimitiveType, value: pa.Array) -> str:
    if kind.name in ("binary", "fixed"):
        return base64.b64encode(value[0].as_py()).decode("ascii")
    if kind.name == "uuid":
        return str(UUID(bytes=value[0].as_py()))
    if kind.name == "boolean":
        return str(value[0].as_py()).lower()
    if kind.name.startswith("timestamp"):
        zone = "+00:00" if kind.name.startswith("timestamptz") else ""
        return timestamp_text(value) + zone
    if kind.name == "time":
        return time_text(value)
    if kind.name in ("float", "double"):
        return float_text(value[0])
    return str(value.cast(pa.string())[0])
