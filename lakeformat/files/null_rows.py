"""Rows inside rows that are null, whose members may be NOT NULL all the same.

Arrow keeps values below a null and nobody sees them, but its casts and its Parquet writer want
them not to be null either where a member may not be.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["with_values_below_nulls"]


def with_values_below_nulls(rows: pa.Table) -> pa.Table:
    """The same rows, with some value in each NOT NULL member of a ROW that is null."""
    for number, field in enumerate(rows.schema):
        if _has_required_members(field.type):
            parts = [_filled(part) for part in rows.column(number).chunks]
            rows = rows.set_column(number, field, pa.chunked_array(parts, field.type))
    return rows


def _has_required_members(kind: pa.DataType) -> bool:
    if not pa.types.is_struct(kind):
        return False
    return any(not field.nullable or _has_required_members(field.type) for field in kind)


def _filled(values: pa.StructArray) -> pa.StructArray:
    kind, is_null = values.type, values.is_null()
    if values.null_count:
        # Arrow's builder puts the least value of its type below a null.
        with_one = pa.concat_arrays([values, pa.array([None], kind)])
        places = pa.array(np.arange(len(values)))
        values = with_one.take(pc.if_else(is_null, len(values), places))
    members = [
        _filled(member) if _has_required_members(field.type) else member
        for field, member in ((field, values.field(n)) for n, field in enumerate(kind))
    ]
    return pa.StructArray.from_arrays(members, fields=list(kind), mask=is_null)
