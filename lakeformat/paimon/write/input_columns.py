# SPDX-License-Identifier: Apache-2.0
"""Converts input rows to the columns of the table without changing any value.

A value that cannot be converted raises an error that names the column. Missing values become the
default of the column.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.files.check_values import is_ascii
from lakeformat.paimon.aggregate_rules import counted_columns
from lakeformat.paimon.schema import TableSchema
from lakeformat.paimon.write.limits import check_limits
from lakeformat.paimon.write.lossless_cast import check_rounding, means_the_same, short_decimals
from lakeformat.types.arrow_types import in_full, to_arrow_schema, to_arrow_type
from lakeformat.types.casts import cast_array
from lakeformat.types.closest import closest
from lakeformat.types.types import STRING, DataField, with_nullability

__all__ = ["TEXTS_AS_NUMBERS", "InputColumns", "input_columns_of"]

TEXTS_AS_NUMBERS = pa.dictionary(pa.int32(), pa.string())
_INTEGER_DIGITS = 20
_MOST_DICTIONARY_BYTES = 64 << 10
_QUOTE = "'"
_FEW = 512
"""Up to this number of values, Arrow's full check is faster than a check of their bytes."""


class InputColumns:
    """Converts batches to a table's columns: order, types, and values of absent columns.

    An absent column gets its default, or nulls. As in Java, a default also replaces a given null.
    In a NOT NULL column a given null is refused even with a default.
    """

    def __init__(self, fields: tuple[DataField, ...], encoded: Collection[str] = ()) -> None:
        """Keep the columns; columns in ``encoded`` may be passed on as numbers.

        Texts are passed on so if they arrive as dictionaries, decimals always.
        """
        self._fields = fields
        self._encoded = encoded
        self._schema = to_arrow_schema(fields)
        self._names = set(self._schema.names)
        self._defaults = {
            field.name: _default_value(field, field.default_value)
            for field in fields
            if field.default_value is not None
        }

    def __call__(self, batch: pa.RecordBatch, first_row: int = 0) -> pa.RecordBatch:
        """Convert a batch to exactly the table's columns; ``first_row`` is its first row number."""
        return self._looked_at(batch, first_row)

    def again(self, batch: pa.RecordBatch, first_row: int = 0) -> pa.RecordBatch:
        """Convert a batch that another ``InputColumns`` of the table has already checked."""
        if _in_full(batch.schema).equals(self._schema):
            return batch
        return self._looked_at(batch, first_row)

    def _looked_at(self, batch: pa.RecordBatch, first_row: int) -> pa.RecordBatch:
        self._check_names(batch.schema.names)
        columns = [
            self._column(batch, field, target, first_row)
            for field, target in zip(self._fields, self._schema, strict=True)
        ]
        schema = self._schema
        for number, column in enumerate(columns):
            if (
                in_full(column.type) != column.type
            ):  # dictionaries and short decimals remain as they are
                schema = schema.set(number, schema.field(number).with_type(column.type))
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def _check_names(self, names: list[str]) -> None:
        unknown = [name for name in names if name not in self._names]
        if unknown:
            raise InvalidRequestError(
                f"the table has no column {', '.join(map(repr, unknown))}; "
                f"its columns are {', '.join(self._schema.names)}"
                f"{closest(unknown[0], self._schema.names)}"
            )
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise InvalidRequestError(
                f"columns appear twice in the rows: {', '.join(repeated)}; rename or drop one of "
                "each"
            )

    def _column(
        self, batch: pa.RecordBatch, field: DataField, target: pa.Field, first_row: int
    ) -> pa.Array:
        default = self._defaults.get(field.name)
        if field.name in batch.schema.names:
            given = batch.column(field.name)
            if field.name in self._encoded and (numbers := _as_numbers(given, target)) is not None:
                return numbers
        elif default is not None:
            given = pa.repeat(default, batch.num_rows)
        elif field.type.nullable or not batch.num_rows:
            given = pa.nulls(batch.num_rows, target.type)
        else:
            raise InvalidRequestError(
                f"column {field.name!r} is NOT NULL, but the rows from row {first_row} on do not "
                "have this column; add it"
            )
        try:
            values = _checked(given, field, target)
        except InvalidRequestError as reason:
            row = _first_refused(given, field, target)
            if row is None:
                raise
            place = "in row" if pa.types.is_nested(target.type) else "row"
            raise InvalidRequestError(f"{reason}; the first is {place} {first_row + row}") from None
        return values if default is None else pc.fill_null(values, default)


def _default_value(field: DataField, text: str) -> pa.Scalar:
    """Return the default of a column, which the schema stores as text, as a value of its type."""
    if text.startswith(_QUOTE) and text.endswith(_QUOTE) and len(text) > 1:
        text = text[1:-1]
    # A column that is NOT NULL takes the same casts.
    wanted = with_nullability(field.type, nullable=True)
    try:
        return cast_array(pa.array([text]), STRING, wanted).cast(to_arrow_type(wanted))[0]
    except (InvalidRequestError, UnsupportedError) as reason:
        raise UnsupportedError(
            f"column {field.name!r} has the default value {field.default_value!r}, which this "
            f"version cannot write: {reason}. Nothing was written; change the default with "
            "another engine"
        ) from None


def _in_full(schema: pa.Schema) -> pa.Schema:
    """Return the schema with plain types in place of dictionaries and short decimals."""
    for number, field in enumerate(schema):
        if field.type == TEXTS_AS_NUMBERS or pa.types.is_decimal64(field.type):
            schema = schema.set(number, field.with_type(in_full(field.type)))
    return schema


def _as_numbers(given: pa.Array, target: pa.Field) -> pa.Array | None:
    """Return the column as numbers, checked; None if that is not possible."""
    if pa.types.is_decimal(target.type):
        return short_decimals(given, target.type)
    return given if _is_small_dictionary(given) else None


def _is_small_dictionary(values: pa.Array) -> bool:
    """Return True if the column is a valid dictionary small enough to copy with every piece."""
    if values.type != TEXTS_AS_NUMBERS or values.dictionary.null_count:
        return False
    if values.dictionary.nbytes > _MOST_DICTIONARY_BYTES:
        return False
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:  # the full check finds the row
        return False
    return True


def _checked(given: pa.Array, field: DataField, target: pa.Field) -> pa.Array:
    values = _cast(given, field.name, target.type)
    _check_values(values, field.name)
    check_limits(values, field.type, field.name)
    return values


def _check_values(values: pa.Array, name: str) -> None:
    """Raise if a value is invalid for its type: Arrow arrays may hold any bytes and any digits.

    Sums of short decimals in a table may exceed their type, but input rows must fit.
    """
    try:
        for part in _doubtful_in(values):
            part.validate()
            if len(part) < _FEW or not (pa.types.is_string(part.type) and is_ascii(part)):
                part.validate(full=True)
    except pa.ArrowInvalid as reason:
        remedy = "convert texts to UTF-8 before writing, or store bytes in a BYTES column"
        if "Decimal" in str(reason):
            remedy = "give the column a type with more digits"
        raise InvalidRequestError(
            f"column {name!r} has an invalid {values.type} value: {reason}; {remedy}"
        ) from None


def _doubtful_in(values: pa.Array) -> Iterator[pa.Array]:
    """Yield all texts and decimals of a column; for nested columns only those in these rows."""
    if pa.types.is_string(values.type) or pa.types.is_decimal(values.type):
        yield values
    elif pa.types.is_map(values.type):
        first, end = values.offsets[0].as_py(), values.offsets[-1].as_py()
        yield from _doubtful_in(values.keys.slice(first, end - first))
        yield from _doubtful_in(values.items.slice(first, end - first))
    elif pa.types.is_nested(values.type):
        parts = values.flatten()
        for part in parts if isinstance(parts, list) else [parts]:
            yield from _doubtful_in(part)


def _first_refused(given: pa.Array, field: DataField, target: pa.Field) -> int | None:
    """Return the first row whose value is refused; None if the column as a whole is refused."""
    if not len(given) or _is_refused(given.slice(0, 0), field, target):
        return None
    first, end = (
        0,
        len(given),
    )  # rows before `first` are valid, one between `first` and `end` is not
    while end - first > 1:
        middle = (first + end) // 2
        if _is_refused(given.slice(first, middle - first), field, target):
            end = middle
        else:
            first = middle
    return first


def _is_refused(given: pa.Array, field: DataField, target: pa.Field) -> bool:
    try:
        _checked(given, field, target)
    except InvalidRequestError:
        return True
    return False


def _cast(values: pa.Array, name: str, target: pa.DataType) -> pa.Array:
    if values.type == target:
        return values
    if not means_the_same(values.type, target):
        raise InvalidRequestError(
            f"column {name!r} has type {values.type}, but the table needs {target}; "
            "convert it before writing"
        )
    try:
        if pa.types.is_decimal(target) and pa.types.is_integer(values.type):
            # Arrow requires digits for the largest possible integer, not for the given ones.
            values = values.cast(pa.decimal128(_INTEGER_DIGITS, 0))
        stored = values.cast(target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as reason:
        raise InvalidRequestError(
            f"column {name!r} does not fit into {target} without loss: {reason}; change the values "
            "or the type of the column"
        ) from None
    check_rounding(values, stored, name)
    return stored


def input_columns_of(schema: TableSchema) -> InputColumns:
    """Return the converter of rows to the columns of a table."""
    counted = counted_columns(schema) if schema.primary_keys else ()
    return _Counting(schema.fields, counted) if counted else InputColumns(schema.fields)


class _Counting(InputColumns):
    """Replaces values by counts before any merge, because merges add up stored counts."""

    def __init__(self, fields: tuple[DataField, ...], counted: Sequence[str]) -> None:
        super().__init__(fields)
        self._counted = counted

    def __call__(self, batch: pa.RecordBatch, first_row: int = 0) -> pa.RecordBatch:
        return self._as_counts(super().__call__(batch, first_row))

    def again(self, batch: pa.RecordBatch, first_row: int = 0) -> pa.RecordBatch:
        return self._as_counts(super().again(batch, first_row))

    def _as_counts(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        for name in self._counted:
            position = rows.schema.get_field_index(name)
            field = rows.schema.field(position)
            ones = pc.is_valid(rows.column(position)).cast(field.type)
            rows = rows.set_column(position, field, ones)
        return rows
