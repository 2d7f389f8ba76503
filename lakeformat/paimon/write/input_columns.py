# SPDX-License-Identifier: Apache-2.0
"""Converts input rows to the columns of the table without loss.

A value that cannot be converted raises InvalidRequestError, which names the column. A column that
the input lacks gets its default.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.paimon.aggregate_rules import counted_columns
from lakeformat.paimon.schema import TableSchema
from lakeformat.paimon.write.limits import check_limits
from lakeformat.rows.batches import check_given, check_names
from lakeformat.rows.lossless_cast import cast_given, first_refused, short_decimals
from lakeformat.types.arrow_types import in_full, to_arrow_schema, to_arrow_type
from lakeformat.types.casts import cast_array
from lakeformat.types.types import STRING, DataField, with_nullability

__all__ = ["TEXTS_AS_NUMBERS", "InputColumns", "input_columns_of"]

TEXTS_AS_NUMBERS = pa.dictionary(pa.int32(), pa.string())
_MOST_DICTIONARY_BYTES = 64 << 10
_QUOTE = "'"


class InputColumns:
    """Brings the columns of batches into the order and the types of a table, and adds absent
    columns.

    An absent column gets its default, or nulls. As in Paimon's Java library, a default also
    replaces a given null. In a NOT NULL column a given null is refused even with a default.
    """

    def __init__(self, fields: tuple[DataField, ...], encoded: Collection[str] = ()) -> None:
        """Convert to the columns ``fields``.

        Columns in ``encoded`` may be returned in a smaller type: a text column that arrives as a
        small dictionary remains a dictionary, and decimals become 64-bit decimals if their values
        fit. All other columns get the types of the table.
        """
        self._fields = fields
        self._encoded = encoded
        self._schema = to_arrow_schema(fields)
        self._defaults = {
            field.name: _default_value(field, field.default_value)
            for field in fields
            if field.default_value is not None
        }

    def __call__(self, batch: pa.RecordBatch, first_row: int = 0) -> pa.RecordBatch:
        """Return a batch with exactly the table's columns.

        Raise InvalidRequestError for a value or column that is refused; ``first_row`` is the number
        of the batch's first row, for the message.
        """
        return self._looked_at(batch, first_row)

    def again(self, batch: pa.RecordBatch, first_row: int = 0) -> pa.RecordBatch:
        """Return a batch with exactly the table's columns.

        Use this method for a batch that another ``InputColumns`` of the same table has checked. The
        batch is checked and converted again only if its columns differ from those of the table.
        """
        if _in_full(batch.schema).equals(self._schema):
            return batch
        return self._looked_at(batch, first_row)

    def _looked_at(self, batch: pa.RecordBatch, first_row: int) -> pa.RecordBatch:
        check_names(batch.schema.names, self._schema.names)
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

    def _column(
        self, batch: pa.RecordBatch, field: DataField, target: pa.Field, first_row: int
    ) -> pa.Array:
        default = self._defaults.get(field.name)
        if field.name in batch.schema.names:
            given = batch.column(field.name)
            if isinstance(given, pa.ExtensionArray):  # for example UUIDs
                given = given.storage
            if field.name in self._encoded and (numbers := _as_numbers(given, target)) is not None:
                return numbers
        elif default is not None:
            given = pa.repeat(default, batch.num_rows)
        elif field.type.nullable or not batch.num_rows:
            given = pa.nulls(batch.num_rows, target.type)
        else:
            raise InvalidRequestError(
                f"column {field.name!r} is NOT NULL, but the rows from row {first_row} on do not "
                "have this column; add the column to the rows"
            )
        try:
            values = _checked(given, field, target)
        except InvalidRequestError as reason:
            row = first_refused(given, lambda some: _is_refused(some, field, target))
            if row is None:
                raise
            where = f"the first refused value is in row {first_row + row}"
            raise InvalidRequestError(f"{reason}; {where}") from None
        return values if default is None else pc.fill_null(values, default)


def _default_value(field: DataField, text: str) -> pa.Scalar:
    """Return the default of a column as a value of its type; schemas store the default as ``text``.

    Raise UnsupportedError if the text is not a value of this type.
    """
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
    """Return the schema with plain texts and full decimals in place of dictionaries and 64-bit
    decimals.
    """
    for number, field in enumerate(schema):
        if field.type == TEXTS_AS_NUMBERS or pa.types.is_decimal64(field.type):
            schema = schema.set(number, field.with_type(in_full(field.type)))
    return schema


def _as_numbers(given: pa.Array, target: pa.Field) -> pa.Array | None:
    """Return the column as dictionary indices or 64-bit decimals; None if neither is possible."""
    if pa.types.is_decimal(target.type):
        return short_decimals(given, target.type)
    return given if _is_small_dictionary(given) else None


def _is_small_dictionary(values: pa.Array) -> bool:
    """Return True if the column is a valid dictionary, small enough to be copied with each
    slice.
    """
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
    values = given
    if given.type != target.type:
        values = cast_given(given, field.name, target.type)
    check_given(values, field.name)
    check_limits(values, field.type, field.name)
    return values


def _is_refused(given: pa.Array, field: DataField, target: pa.Field) -> bool:
    try:
        _checked(given, field, target)
    except InvalidRequestError:
        return True
    return False


def input_columns_of(schema: TableSchema) -> InputColumns:
    """Return the converter of input rows to the columns of a table."""
    counted = counted_columns(schema) if schema.primary_keys else ()
    return _Counting(schema.fields, counted) if counted else InputColumns(schema.fields)


class _Counting(InputColumns):
    """In columns that are aggregated by ``count``, replaces a value by 1, and null by 0.

    Merges add these numbers.
    """

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
