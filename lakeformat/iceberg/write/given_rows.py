# SPDX-License-Identifier: Apache-2.0
"""Converts given rows to the columns of a table, without changing any value."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lakeformat.errors import InvalidRequestError
from lakeformat.files.nested_arrays import (
    as_list,
    is_any_list,
    list_around,
    map_around,
    map_entries,
    present_entries,
    struct_around,
    struct_children,
)
from lakeformat.iceberg.arrow_types import to_arrow_field
from lakeformat.iceberg.read.column_values import value_from_json
from lakeformat.iceberg.schema import Schema
from lakeformat.iceberg.types import Field, ListType, MapType, StructType, Type, inner_fields
from lakeformat.rows.batches import check_given, check_names
from lakeformat.rows.groups import Positions
from lakeformat.rows.lossless_cast import cast_given, first_refused

__all__ = ["GivenRows"]


class GivenRows:
    """Converts batches to the columns of a table, in their order and with their types.

    A column that a batch lacks, or a field that a struct lacks, gets its write default, or nulls.
    ``is_decoded`` means that the rows were read from data files, whose reader has already checked
    texts and decimals.
    """

    def __init__(self, schema: Schema, *, is_decoded: bool = False) -> None:
        self._is_decoded = is_decoded
        self._fields = schema.fields
        self._schema = pa.schema([to_arrow_field(field) for field in schema.fields])

    @property
    def schema(self) -> pa.Schema:
        """The schema of the converted rows."""
        return self._schema

    def __call__(self, batch: pa.RecordBatch, numbers: Sequence[int] | Positions) -> pa.RecordBatch:
        """Convert a batch; ``numbers`` has the number of each row, for error messages.

        Raise ``InvalidRequestError`` for an unknown column, a value that does not fit, or a null in
        a required column.
        """
        check_names(batch.schema.names, self._schema.names)
        columns = [
            self._column(batch, field, target.type, numbers)
            for field, target in zip(self._fields, self._schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _column(
        self,
        batch: pa.RecordBatch,
        field: Field,
        target: pa.DataType,
        numbers: Sequence[int] | Positions,
    ) -> pa.Array:
        if field.name not in batch.schema.names:
            return _absent(field, target, numbers)
        given = batch.column(field.name)
        if isinstance(given, pa.ExtensionArray):  # for example UUIDs
            given = given.storage
        try:
            if self._is_decoded:
                return _of_type(given, field, target)
            return _checked(given, field, target)
        except InvalidRequestError as reason:
            row = first_refused(given, lambda some: _is_refused(some, field, target))
            if row is None:
                raise
            raise InvalidRequestError(
                f"{reason}; the first refused value is in row {numbers[row]} (rows count from 0)"
            ) from None


def _absent(field: Field, target: pa.DataType, numbers: Sequence[int] | Positions) -> pa.Array:
    """Return the values of a column that the batch lacks.

    Raise ``InvalidRequestError`` if the column, or a field inside of it, is required and has no
    write default.
    """
    if field.write_default is not None:
        values = _write_defaults(field, len(numbers))
        _check_required(values, field, field.name, "rows")
        return values
    if field.required and len(numbers):
        raise InvalidRequestError(
            f"column {field.name!r} is required, but some rows lack it. Add it to all rows. "
            f"The first row without it is row {numbers[0]} (rows count from 0)"
        )
    return pa.nulls(len(numbers), target)


def _write_defaults(field: Field, rows: int) -> pa.Array:
    return pa.repeat(value_from_json(field.write_default, field.type, for_write=True)[0], rows)


def _is_refused(given: pa.Array, field: Field, target: pa.DataType) -> bool:
    try:
        _checked(given, field, target)
    except InvalidRequestError:
        return True
    return False


def _checked(given: pa.Array, field: Field, target: pa.DataType) -> pa.Array:
    values = _of_type(given, field, target)
    check_given(values, field.name)
    return values


def _of_type(given: pa.Array, field: Field, target: pa.DataType) -> pa.Array:
    completed = _with_members(given, field.type)
    values = cast_given(completed, field.name, target, given=given.type)
    _check_required(values, field, field.name, "rows")
    return values


def _with_members(given: pa.Array, kind: Type) -> pa.Array:
    """Add the fields that the structs in ``given`` lack and that have a write default."""
    if not _has_defaults(kind):
        return given
    match kind:
        case StructType(fields=fields) if pa.types.is_struct(given.type):
            return _with_fields(given, fields)
        case ListType(element=element) if is_any_list(given.type):
            given = as_list(given)
            elements = _with_members(given.values, element)
            part = given.type.value_field.with_type(elements.type)
            return list_around(given, elements, pa.list_(part))
        case MapType(value=value) if pa.types.is_map(given.type):
            keys, items = map_entries(given)
            items = _with_members(items, value)
            part = given.type.item_field.with_type(items.type)
            return map_around(given, keys, items, pa.map_(given.type.key_field, part))
    return given


def _has_defaults(kind: Type) -> bool:
    """Return True if a field inside of a type has a write default."""
    return any(
        each.write_default is not None or _has_defaults(each.type) for each in inner_fields(kind)
    )


def _with_fields(given: pa.Array, fields: Sequence[Field]) -> pa.Array:
    children, parts = struct_children(given), list(given.type)
    known = {field.name: field.type for field in fields}
    for place, part in enumerate(parts):
        if part.name in known:
            children[place] = _with_members(children[place], known[part.name])
            parts[place] = part.with_type(children[place].type)
    names = {part.name for part in parts}
    for field in fields:
        if field.name not in names and field.write_default is not None:
            children.append(_write_defaults(field, len(given)))
            parts.append(pa.field(field.name, children[-1].type))
    return struct_around(given, children, pa.struct(parts))


def _check_required(values: pa.Array, field: Field, name: str, counted: str) -> None:
    """Raise ``InvalidRequestError`` if a field, or one inside of it, is required and has a null."""
    if field.required and values.null_count:
        raise InvalidRequestError(
            f"column {name!r} is required, but is null in {values.null_count} of "
            f"{len(values)} {counted}; fill in a value or drop these {counted}"
        )
    for inner, part in _inner_values(values, field.type):
        _check_required(part, inner, f"{name}.{inner.name}", "values")


def _inner_values(values: pa.Array, kind: Type) -> list[tuple[Field, pa.Array]]:
    """Return the fields inside of a type, each with its values, to check required fields."""
    match kind:
        case StructType(fields=fields):
            present = values.drop_null()
            return [(field, present.field(place)) for place, field in enumerate(fields)]
        case ListType(element_id=number, element=element, element_required=required):
            return [(Field(number, "element", element, required), values.flatten())]
        case MapType():
            keys, items = present_entries(values)
            return [
                (Field(kind.key_id, "key", kind.key, required=True), keys),
                (Field(kind.value_id, "value", kind.value, kind.value_required), items),
            ]
    return []
