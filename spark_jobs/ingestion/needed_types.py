# SPDX-License-Identifier: Apache-2.0
"""Finds the types that the values of text files need, because text files declare no types."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.types.types import AtomicType, DataField, DataType, TypeName, atomic
from spark_jobs.ingestion.type_widening import INTEGERS, MOST_DIGITS, narrowest_integer

__all__ = ["needed_types", "readable_columns"]

T = TypeName
_TEXTS = (T.CHAR, T.VARCHAR)


def readable_columns(columns: pa.Schema, fields: Sequence[DataField]) -> pa.Schema:
    """Return the columns with integers as BIGINT and decimals with 38 digits, so that numbers too
    large for the table's ``fields`` can be read.
    """
    for field in fields:
        if (wide := _wide_of(field.type)) is not None:
            number = columns.get_field_index(field.name)
            columns = columns.set(number, columns.field(number).with_type(wide))
    return columns


def needed_types(
    batches: Iterable[pa.RecordBatch], fields: Sequence[DataField]
) -> dict[str, DataType]:
    """Return a type for each column of integers, decimals or texts that has a value: the type in
    ``fields``, widened until it holds all values of ``batches``.
    """
    narrow = {field.name: field.type for field in fields if _is_limited(field.type)}
    needed: dict[str, DataType] = {}
    for batch in batches:
        for name in narrow.keys() & {*batch.schema.names}:
            values = batch.column(name)
            if len(values) > values.null_count:
                narrow[name] = needed[name] = _holding(values, narrow[name])
    return needed


def _wide_of(type: DataType) -> pa.DataType | None:
    if not isinstance(type, AtomicType):
        return None
    if type.name in INTEGERS:
        return pa.int64()
    return pa.decimal128(MOST_DIGITS, type.scale) if type.name is T.DECIMAL else None


def _is_limited(type: DataType) -> bool:
    return isinstance(type, AtomicType) and type.name in (*INTEGERS, *_TEXTS, T.DECIMAL)


def _holding(values: pa.Array, type: DataType) -> AtomicType:
    """Return ``type``, or the narrowest wider type that holds the values."""
    assert isinstance(type, AtomicType)
    if type.name in _TEXTS:
        longest = pc.max(pc.utf8_length(values)).as_py()
        if longest <= type.length:
            return type
        return replace(type, name=T.VARCHAR, parameters=(longest,))
    least, most = pc.min_max(values).as_py().values()
    if type.name in INTEGERS:
        return max(type, narrowest_integer(least, most), key=lambda each: INTEGERS.index(each.name))
    digits = len(str(int(max(abs(least), abs(most)))))
    return atomic(T.DECIMAL, max(type.precision, digits + type.scale), type.scale)
