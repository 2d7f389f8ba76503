"""Rows as the table wants them, or an error that names the column; no value is ever changed.

Only where there is none, the default of its column takes its place.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.arrow_types import to_arrow_schema
from lakeformat.errors import InvalidRequestError
from lakeformat.types import DataField
from lakeformat.write.defaults import default_value
from lakeformat.write.limits import check_limits
from lakeformat.write.meaning import means_the_same
from lakeformat.write.rounding import check_rounding

__all__ = ["Conformer"]

_INTEGER_DIGITS = 20


class Conformer:
    """Brings batches into a table's columns: order, types, defaults or nulls where absent.

    As in Java a default also takes the place of a null that is given, but in a column that is
    NOT NULL such a null is refused, default or not.
    """

    def __init__(self, fields: tuple[DataField, ...]) -> None:
        self._fields = fields
        self._schema = to_arrow_schema(fields)
        self._names = set(self._schema.names)
        self._defaults = {field.name: default_value(field) for field in fields}

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch with exactly the table's columns."""
        self._check_names(batch.schema.names)
        columns = [
            self._column(batch, field, target)
            for field, target in zip(self._fields, self._schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _check_names(self, names: list[str]) -> None:
        unknown = [name for name in names if name not in self._names]
        if unknown:
            raise InvalidRequestError(
                f"the table has no column {', '.join(map(repr, unknown))}; "
                f"its columns are {', '.join(self._schema.names)}"
            )
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise InvalidRequestError(f"columns are given twice: {', '.join(repeated)}")

    def _column(self, batch: pa.RecordBatch, field: DataField, target: pa.Field) -> pa.Array:
        default = self._defaults[field.name]
        if field.name in batch.schema.names:
            values = _cast(batch.column(field.name), field.name, target.type)
        elif default is None:
            values = pa.nulls(batch.num_rows, target.type)
        else:
            values = pa.repeat(default, batch.num_rows)
        check_limits(values, field.type, field.name)
        return values if default is None else pc.fill_null(values, default)


def _cast(values: pa.Array, name: str, target: pa.DataType) -> pa.Array:
    if values.type == target:
        return values
    if not means_the_same(values.type, target):
        raise InvalidRequestError(
            f"column {name!r} holds {values.type}, the table wants {target}; "
            "convert it before writing"
        )
    try:
        if pa.types.is_decimal(target) and pa.types.is_integer(values.type):
            # Arrow asks for room for the largest integer; what counts is the values there are.
            values = values.cast(pa.decimal128(_INTEGER_DIGITS, 0))
        stored = values.cast(target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as reason:
        raise InvalidRequestError(
            f"column {name!r} does not fit into {target} without loss: {reason}"
        ) from None
    check_rounding(values, stored, name)  # Arrow calls a float that changes a safe cast
    return stored
