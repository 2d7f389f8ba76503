# SPDX-License-Identifier: Apache-2.0
"""The column ``readable_metrics``: statistics of files by column, with bounds as values."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.errors import UnsupportedError
from lakeformat.iceberg.arrow_types import to_arrow_type
from lakeformat.iceberg.read.single_values import single_values
from lakeformat.iceberg.schema import Schema
from lakeformat.iceberg.types import Field, PrimitiveType, inner_fields

__all__ = ["readable_metrics"]

_COUNTS = (
    ("column_size", "column_sizes"),
    ("value_count", "value_counts"),
    ("null_value_count", "null_value_counts"),
    ("nan_value_count", "nan_value_counts"),
)
_BOUNDS = (("lower_bound", "lower_bounds"), ("upper_bound", "upper_bounds"))


def readable_metrics(entries: pa.Table, schema: Schema) -> pa.Array:
    """Return one struct for each entry: the statistics of each primitive field, by dotted name."""
    by_name = {schema.name_of(field.id) or "": field for field in _leaves(schema)}
    named = sorted(by_name.items())
    columns = [_of_column(entries, field) for _, field in named]
    if not columns:
        return pa.array([{}] * entries.num_rows, pa.struct([]))
    return pa.StructArray.from_arrays(columns, [name for name, _ in named])


def _of_column(entries: pa.Table, field: Field) -> pa.Array:
    kind = _kind_of_bounds(field)
    values = [_at(entries, source, field.id) for _, source in _COUNTS]
    values += [single_values(_at(entries, source, field.id), kind) for _, source in _BOUNDS]
    types = [pa.int64()] * len(_COUNTS) + [to_arrow_type(kind)] * len(_BOUNDS)
    fields = [
        pa.field(name, kind) for (name, _), kind in zip(_COUNTS + _BOUNDS, types, strict=True)
    ]
    return pa.StructArray.from_arrays(values, fields=fields)


def _kind_of_bounds(field: Field) -> PrimitiveType:
    """Return the type of the bounds of a field.

    The type is ``unknown`` if this release does not read values of the field's type.
    """
    assert isinstance(field.type, PrimitiveType)
    try:
        to_arrow_type(field.type)
    except UnsupportedError:
        return PrimitiveType("unknown")
    return field.type


def _at(entries: pa.Table, name: str, field_id: int) -> pa.Array:
    maps = entries.column(name).combine_chunks()
    return pc.map_lookup(maps, pa.scalar(field_id, pa.int32()), "first")


def _leaves(schema: Schema) -> Iterator[Field]:
    open_fields = list(schema.fields)
    while open_fields:
        field = open_fields.pop()
        if isinstance(field.type, PrimitiveType):
            yield field
        else:
            open_fields += inner_fields(field.type)
