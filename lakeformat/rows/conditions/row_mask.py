# SPDX-License-Identifier: Apache-2.0
"""The rows of a batch that meet a condition, by the rules of SQL for nulls and NaN."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.files.nested_arrays import struct_children
from lakeformat.rows.conditions.like import like_regex
from lakeformat.rows.conditions.predicate import (
    And,
    Compare,
    Constant,
    IsIn,
    IsNull,
    Like,
    Not,
    Or,
    Predicate,
)
from lakeformat.rows.prune import Op

__all__ = ["row_mask"]

_COMPARE: dict[Op, Callable[[pa.Array, pa.Scalar], pa.BooleanArray]] = {
    Op.EQUAL: pc.equal,
    Op.NOT_EQUAL: pc.not_equal,
    Op.LESS: pc.less,
    Op.LESS_EQUAL: pc.less_equal,
    Op.GREATER: pc.greater,
    Op.GREATER_EQUAL: pc.greater_equal,
}


def row_mask(part: Predicate, batch: pa.RecordBatch) -> pa.BooleanArray:
    """Return, for each row: True if the row meets the condition, False if not, null if unknown.

    The values in ``part`` are scalars of the column types, as ``bind_predicate`` makes them.
    """
    match part:
        case Compare(column, op, value):
            return _compare(_values(batch, column), op, value)
        case IsIn(column, values):
            return _is_in(_values(batch, column), values)
        case IsNull(column):
            return pc.is_null(_values(batch, column))
        case Like(column, pattern, escape):
            return pc.match_substring_regex(_values(batch, column), like_regex(pattern, escape))
        case Not(inner):
            return pc.invert(row_mask(inner, batch))
        case And(parts):
            return reduce(pc.and_kleene, [row_mask(each, batch) for each in parts])
        case Or(parts):
            return reduce(pc.or_kleene, (row_mask(each, batch) for each in parts))
        case Constant(value):
            return pa.repeat(pa.scalar(value, pa.bool_()), batch.num_rows)
    raise AssertionError(part)


def _values(batch: pa.RecordBatch, name: str) -> pa.Array:
    """Return the values of the column ``name``.

    If there is no such column, the dotted name means a field inside of structs.
    """
    if name in batch.schema.names:
        return batch.column(name)
    found = _inside(batch.schema, batch.columns, name)
    assert found is not None, name
    return found


def _inside(fields: Iterable[pa.Field], columns: Sequence[pa.Array], name: str) -> pa.Array | None:
    """Return the values of the field with the dotted ``name``; None if there is no such field.

    A value is null if a struct around it is null.
    """
    for field, column in zip(fields, columns, strict=True):
        if field.name == name:
            return column
        if name.startswith(f"{field.name}.") and pa.types.is_struct(field.type):
            rest = name.removeprefix(f"{field.name}.")
            found = _inside(field.type, struct_children(column), rest)
            if found is not None:
                return found
    return None


def _compare(column: pa.Array, op: Op, value: pa.Scalar) -> pa.BooleanArray:
    if not value.is_valid:
        return pa.nulls(len(column), pa.bool_())
    if not pa.types.is_floating(column.type):
        return _COMPARE[op](column, value)
    is_nan = pc.is_nan(column)
    if math.isnan(value.as_py()):
        match op:
            case Op.EQUAL | Op.GREATER_EQUAL:
                return is_nan
            case Op.NOT_EQUAL | Op.LESS:
                return pc.invert(is_nan)
        everywhere = pc.or_(is_nan, pc.invert(is_nan))
        return everywhere if op is Op.LESS_EQUAL else pc.invert(everywhere)
    found = _COMPARE[op](column, value)
    return pc.or_(found, is_nan) if op in (Op.GREATER, Op.GREATER_EQUAL) else found


def _is_in(column: pa.Array, values: Sequence[pa.Scalar]) -> pa.BooleanArray:
    there = [value for value in values if value.is_valid]
    kind = column.type
    if pa.types.is_fixed_size_binary(kind):  # A value of another size equals the value of no row.
        kind = pa.binary()
    wanted, had = pa.array(there, there[0].type if there else kind).cast(kind), column.cast(kind)
    if pa.types.is_floating(column.type):  # Here -0.0 equals 0.0, and NaN equals NaN.
        zero, nan = pa.scalar(0, column.type), pa.scalar(math.nan, column.type)
        wanted, had = (
            pc.if_else(pc.is_nan(values), nan, pc.add(values, zero)) for values in (wanted, column)
        )
    found = pc.is_in(had, wanted)
    found = pc.if_else(pc.is_valid(column), found, pa.scalar(None, pa.bool_()))
    # A value that is not in the list could still equal a null in the list.
    if len(there) < len(values):
        found = pc.if_else(found, True, pa.scalar(None, pa.bool_()))
    return found
