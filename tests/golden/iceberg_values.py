"""Rows of Iceberg tables in the form of ``expected.json``, to compare them."""

from __future__ import annotations

import json
import math
import uuid
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from lakeformat.iceberg.types import Field, ListType, MapType, PrimitiveType, StructType, Type

__all__ = ["json_rows", "sorted_rows"]


def json_rows(rows: pa.Table, fields: tuple[Field, ...]) -> list[dict[str, Any]]:
    """The rows as JSON-safe values."""
    columns = [
        [_value(value, field.type) for value in _python(column)]
        for column, field in zip(rows.columns, fields, strict=True)
    ]
    names = [field.name for field in fields]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def sorted_rows(rows: list[dict[str, Any]]) -> list[str]:
    """The rows as texts in an order that does not depend on theirs."""
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


def _python(column: pa.ChunkedArray) -> list[Any]:
    kind = column.type
    if pa.types.is_timestamp(kind) and kind.unit == "ns":  # Python's own end at microseconds
        return list(column.cast(pa.int64()).to_pylist())
    return list(column.to_pylist())


def _value(value: Any, kind: Type) -> Any:
    if value is None:
        return None
    match kind:
        case StructType(fields=fields):
            return {field.name: _value(value[field.name], field.type) for field in fields}
        case ListType(element=element):
            return [_value(each, element) for each in value]
        case MapType(key=key, value=item):
            return [[_value(k, key), _value(v, item)] for k, v in value]
        case PrimitiveType(name=name):
            return _AS_JSON.get(name, lambda same: same)(value)


def _floating(value: float) -> Any:
    if math.isnan(value):
        return "NaN"
    return value if math.isfinite(value) else f"{'-' if value < 0 else ''}Infinity"


def _nanos(value: int) -> str:
    seconds, nanos = divmod(value, 10**9)
    moment = np.datetime64(0, "s") + np.timedelta64(seconds, "s")
    return f"{moment}.{nanos:09d}"


_AS_JSON: dict[str, Callable[[Any], Any]] = {
    "float": _floating,
    "double": _floating,
    "decimal": lambda value: f"{value:f}",
    "date": lambda value: value.isoformat(),
    "time": lambda value: value.isoformat("microseconds"),
    "timestamp": lambda value: value.isoformat(timespec="microseconds"),
    "timestamptz": lambda value: value.isoformat(timespec="microseconds"),
    "timestamp_ns": _nanos,
    "timestamptz_ns": lambda value: f"{_nanos(value)}+00:00",
    "uuid": lambda value: str(uuid.UUID(bytes=value)),
    "fixed": lambda value: value.hex(),
    "binary": lambda value: value.hex(),
}
