# SPDX-License-Identifier: Apache-2.0
"""The order to sort rows by, and the sort key of a batch of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.compact.sorting.curves import ByteRows, ordered_bytes, words_of, z_order
from lakeformat.paimon.compact.sorting.hilbert import hilbert
from lakeformat.paimon.schema import TableSchema
from lakeformat.types.closest import closest
from lakeformat.types.type_rules import require_list
from lakeformat.types.type_text import type_to_json
from lakeformat.types.types import AtomicType, DataField, TypeName

__all__ = ["RowOrder", "row_order"]

ORDER_STRATEGIES = ("order", "zorder", "hilbert")

_PREFIX_BYTES = 16
"""The number of bytes of a text that are compared when rows are split into ranges."""
_NOT_ORDERED = (TypeName.VARIANT, TypeName.BLOB, TypeName.GEOMETRY, TypeName.GEOGRAPHY)


@dataclass(frozen=True, slots=True)
class RowOrder:
    """Columns to sort by, one after the other or along a curve."""

    columns: tuple[str, ...]
    strategy: str
    """``order``, ``zorder`` or ``hilbert``."""
    text_bytes: int
    """The number of bytes of a text that are used on a curve."""

    def keys(self, rows: pa.RecordBatch | pa.Table) -> ByteRows:
        """Return bytes that compare like rows do; texts may be cut off."""
        columns = [_combined(rows.column(name)) for name in self.columns]
        if self.strategy == "order":
            return np.hstack([ordered_bytes(column, _PREFIX_BYTES) for column in columns])
        ordered = [ordered_bytes(column, self.text_bytes) for column in columns]
        return z_order(ordered) if self.strategy == "zorder" else hilbert(ordered)

    def sorted(self, rows: pa.Table) -> pa.Table:
        """Return the rows in this order, nulls first; equal rows keep their order."""
        if self.strategy == "order":
            return rows.take(_by_values([rows.column(name) for name in self.columns]))
        return rows.take(pa.array(_positions(self.keys(rows))))


def row_order(schema: TableSchema, order_by: Sequence[str], strategy: str) -> RowOrder:
    """Check the columns and the strategy of an order."""
    if strategy not in ORDER_STRATEGIES:
        raise InvalidRequestError(
            f"order_strategy must be one of {', '.join(ORDER_STRATEGIES)}, got {strategy!r}"
        )
    if not isinstance(order_by, str):
        require_list("order_by", order_by, "['id', 'day']")
    columns = (order_by,) if isinstance(order_by, str) else tuple(order_by)
    if not columns:
        raise InvalidRequestError(
            "order_by names no column: give the columns that queries filter by"
        )
    fields = {field.name: field for field in schema.fields}
    for name in columns:
        if name not in fields:
            raise InvalidRequestError(
                f"order_by names {name!r}, which is not a column; the columns are "
                f"{', '.join(fields)}"
                f"{closest(name, fields)}"
            )
        if columns.count(name) > 1:
            raise InvalidRequestError(f"order_by names {name!r} twice; name it once")
        _require_comparable(fields[name])
    return RowOrder(columns, strategy, schema.table_options.zorder_var_length_contribution)


def _require_comparable(field: DataField) -> None:
    if not isinstance(field.type, AtomicType) or field.type.name in _NOT_ORDERED:
        spelled = type_to_json(field.type)
        shown = spelled if isinstance(spelled, str) else spelled["type"]
        raise InvalidRequestError(
            f"order_by names {field.name!r}, and values of type {shown} have no order: name "
            "columns of numbers, texts or times"
        )


def _combined(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _by_values(columns: Sequence[pa.ChunkedArray]) -> pa.Array:
    """Return the rows sorted by one column after the other, null first in each."""
    compared: dict[str, pa.ChunkedArray] = {}
    for number, column in enumerate(columns):
        compared[f"{number} is there"] = pc.is_valid(column).cast(pa.int8())
        compared[f"{number}"] = column
    keys = [(name, "ascending") for name in compared]
    return pc.sort_indices(pa.table(compared), sort_keys=keys)


def _positions(keys: ByteRows) -> npt.NDArray[np.int64]:
    """Return the positions of the rows, sorted by their keys."""
    words = words_of(keys)
    if words.shape[1] == 1:
        return np.argsort(words[:, 0], kind="stable")
    return np.lexsort(words.T[::-1])
