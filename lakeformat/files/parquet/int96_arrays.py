# SPDX-License-Identifier: Apache-2.0
"""Converts timestamps of more than 6 fractional digits to INT96, as Java stores them in Parquet
files.

Arrow writes INT96 for all timestamps of a file or for none, while Java uses 64 bits for timestamps
of fewer digits. So Arrow writes each INT96 as 12 plain bytes, and ``int96_footer`` changes their
type.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.files.nested_arrays import (
    list_around,
    map_around,
    map_entries,
    struct_around,
)

__all__ = ["INT96_BYTES", "int96_schema", "leaf_columns", "to_int96"]

INT96_BYTES = pa.binary(12)
_LAYOUT = np.dtype([("nanos_of_day", "<i8"), ("julian_day", "<i4")])
_JULIAN_DAY_OF_1970 = 2_440_588
_NANOS_PER_DAY = 86_400 * 1_000_000_000


def int96_schema(schema: pa.Schema) -> pa.Schema:
    """Return ``schema`` with 12 bytes in place of each timestamp in nanoseconds, at any depth."""
    return pa.schema([_stored_field(field) for field in schema])


def to_int96(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Convert rows to ``schema``, which ``int96_schema`` returned."""
    columns = [
        column
        if column.type == kind
        else pa.chunked_array([_stored(chunk, kind) for chunk in column.chunks], kind)
        for column, kind in zip(rows.columns, schema.types, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def leaf_columns(schema: pa.Schema) -> Iterator[tuple[str, pa.DataType]]:
    """Yield the path and the type of each leaf column, in the order of the Parquet file."""
    for field in schema:
        yield from _leaves(field.name, field.type)


def _leaves(path: str, kind: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    if pa.types.is_struct(kind):
        for part in kind:
            yield from _leaves(f"{path}.{part.name}", part.type)
    elif pa.types.is_map(kind):
        yield from _leaves(f"{path}.key_value.key", kind.key_type)
        yield from _leaves(f"{path}.key_value.value", kind.item_type)
    elif pa.types.is_list(kind):
        yield from _leaves(f"{path}.list.element", kind.value_type)
    else:
        yield path, kind


def _stored_field(field: pa.Field) -> pa.Field:
    return field.with_type(_stored_type(field.type))


def _stored_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return INT96_BYTES if kind.unit == "ns" else kind
    if pa.types.is_struct(kind):
        return pa.struct([_stored_field(part) for part in kind])
    if pa.types.is_map(kind):
        return pa.map_(_stored_field(kind.key_field), _stored_field(kind.item_field))
    if pa.types.is_list(kind):
        return pa.list_(_stored_field(kind.value_field))
    return kind


def _stored(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    if array.type == wanted:
        return array
    if pa.types.is_struct(wanted):
        # Not flattened: flatten() would make a NOT NULL part null where the ROW is null.
        children = [array.field(number) for number in range(wanted.num_fields)]
        kinds = [part.type for part in wanted]
        return struct_around(array, list(map(_stored, children, kinds)), wanted)
    if pa.types.is_map(wanted):
        keys, items = map_entries(array)
        stored = _stored(keys, wanted.key_type), _stored(items, wanted.item_type)
        return map_around(array, *stored, wanted)
    if pa.types.is_list(wanted):
        return list_around(array, _stored(array.values, wanted.value_type), wanted)
    return _int96(array)


def _int96(array: pa.Array) -> pa.Array:
    counts = pc.fill_null(array.view(pa.int64()), 0).to_numpy()
    stored = np.empty(len(array), _LAYOUT)
    days, stored["nanos_of_day"] = np.divmod(counts, _NANOS_PER_DAY)
    stored["julian_day"] = days + _JULIAN_DAY_OF_1970
    validity = None
    if array.null_count:
        is_valid = array.is_valid().to_numpy(zero_copy_only=False)
        validity = pa.py_buffer(np.packbits(is_valid, bitorder="little"))
    return pa.Array.from_buffers(INT96_BYTES, len(array), [validity, pa.py_buffer(stored)])
