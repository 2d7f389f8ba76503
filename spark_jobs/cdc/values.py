# SPDX-License-Identifier: Apache-2.0
"""Converts JSON values to the types of a table's columns."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

import lakeformat as lake
from lakeformat.files.foreign.text_checks import cast_text, times_as_text
from lakeformat.types.types import DataField
from spark_jobs.cdc.base64_columns import decimals_of, decoded
from spark_jobs.cdc.columns import MessageColumn
from spark_jobs.cdc.declared import Declared, Decoding

__all__ = ["column_values", "read_as"]

_UNITS = {Decoding.MILLIS: "ms", Decoding.MICROS: "us", Decoding.NANOS: "ns"}


def read_as(column: MessageColumn, wanted: pa.DataType) -> pa.DataType:
    """Return the type with which Arrow parses the JSON values of a column. ``column_values`` then
    converts the values to ``wanted``.
    """
    declared = column.declared or Declared(None)
    if declared.decoding in (Decoding.BASE64, Decoding.BASE64_DECIMAL):
        return pa.string()
    if declared.decoding is not Decoding.PLAIN:
        return pa.int64()
    if pa.types.is_string(column.values) and not pa.types.is_decimal(wanted):
        return pa.string()
    if pa.types.is_boolean(wanted):
        return column.values if not pa.types.is_null(column.values) else pa.bool_()
    if pa.types.is_nested(wanted):
        [text] = times_as_text(pa.schema([("", wanted)]))
        return text.type
    if pa.types.is_temporal(wanted) or pa.types.is_binary(wanted):
        return pa.string()
    return wanted


def column_values(
    values: pa.Array, column: MessageColumn, field: DataField, wanted: pa.Field
) -> pa.Array:
    """Return parsed JSON values in the type ``wanted``; raise ``InvalidRequestError`` for a value
    that does not fit.
    """
    declared = column.declared or Declared(None)
    try:
        return _VALUES[declared.decoding](values, declared, field.name, wanted.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as reason:
        raise lake.InvalidRequestError(
            f"a value of column {field.name!r} does not fit the table's type {wanted.type}: "
            f"{reason}. Change the type of the column, or leave the message out"
        ) from None


def _plain(values: pa.Array, declared: Declared, name: str, wanted: pa.DataType) -> pa.Array:
    if pa.types.is_string(values.type) and pa.types.is_binary(wanted):
        return decoded(values, name).cast(wanted)
    if pa.types.is_integer(values.type) and pa.types.is_boolean(wanted):
        strange = pc.invert(pc.is_in(values, pa.array([0, 1, None], values.type)))
        if pc.any(strange).as_py():
            [wrong, *_] = values.filter(strange).to_pylist()
            raise pa.ArrowInvalid(f"a boolean must be 0 or 1, got {wrong}")
    return cast_text(values, wanted)


def _bytes(values: pa.Array, declared: Declared, name: str, wanted: pa.DataType) -> pa.Array:
    return decoded(values, name).cast(wanted)


def _decimals(values: pa.Array, declared: Declared, name: str, wanted: pa.DataType) -> pa.Array:
    return decimals_of(values, declared.scale, name).cast(wanted)


def _days(values: pa.Array, declared: Declared, name: str, wanted: pa.DataType) -> pa.Array:
    return values.cast(pa.int32()).cast(pa.date32()).cast(wanted)


def _since(values: pa.Array, declared: Declared, name: str, wanted: pa.DataType) -> pa.Array:
    zone = wanted.tz if pa.types.is_timestamp(wanted) else None
    return values.cast(pa.timestamp(_UNITS[declared.decoding], zone)).cast(wanted)


def _times(values: pa.Array, declared: Declared, name: str, wanted: pa.DataType) -> pa.Array:
    return values.cast(pa.int32()).cast(pa.time32("ms")).cast(wanted)


_VALUES: dict[Decoding, Callable[[pa.Array, Declared, str, pa.DataType], pa.Array]] = {
    Decoding.PLAIN: _plain,
    Decoding.BASE64: _bytes,
    Decoding.BASE64_DECIMAL: _decimals,
    Decoding.DAYS: _days,
    Decoding.MILLIS: _since,
    Decoding.MICROS: _since,
    Decoding.NANOS: _since,
    Decoding.TIME_MILLIS: _times,
}
