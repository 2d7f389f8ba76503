# SPDX-License-Identifier: Apache-2.0
"""Finds the rows of one file that may meet conditions, by its indexes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyroaring import BitMap

from lakeformat.errors import UnsupportedError
from lakeformat.paimon.index.file_index import (
    BloomFilter,
    ColumnIndex,
    EmptyIndex,
    OrderedRowIndex,
    RowIndex,
    open_column_index,
)
from lakeformat.rows.prune import ColumnTest, Op
from lakeformat.types.types import DataType
from lakeformat.types.values import values_to_arrow

__all__ = ["Bodies", "StoredCondition", "rules_out"]

Bodies = Mapping[str, Mapping[str, bytes | None]]
"""The content of each index of one file, by column and by index type; None for an empty index."""

_NO_ROWS: BitMap = BitMap()
_MOST_LITERALS = 1000
"""The largest number of values that are looked up in an index; more lookups cost more than they
save.
"""


@dataclass(frozen=True, slots=True)
class StoredCondition:
    """A condition, with the name and the type that its column has in one file."""

    stored_name: str
    data_type: DataType
    condition: ColumnTest


def rules_out(bodies: Bodies, conditions: Sequence[StoredCondition], source: str) -> bool:
    """Return True if the indexes show that no row of the file meets all conditions.

    The rows that may meet each condition are intersected. So a file is also excluded if each
    condition is met, but by different rows.
    """
    left: BitMap | None = None
    for asked in conditions:
        for index_type, body in bodies.get(asked.stored_name, {}).items():
            where = f"the {index_type} index of column {asked.stored_name} in {source}"
            rows = _rows(_open(index_type, asked.data_type, body, where), asked)
            if rows is None:
                continue
            left = rows if left is None else left & rows
            if not left:
                return True
    return False


def _open(
    index_type: str, data_type: DataType, body: bytes | None, source: str
) -> ColumnIndex | None:
    try:
        return open_column_index(index_type, data_type, body, source)
    except UnsupportedError:
        return None


def _rows(index: ColumnIndex | None, asked: StoredCondition) -> BitMap | None:
    """Return the positions of the rows that may meet a condition; None if the index cannot
    decide.
    """
    condition = asked.condition
    if index is None:
        return None
    if isinstance(index, EmptyIndex):
        return None if condition.op is Op.IS_NULL else _NO_ROWS
    if condition.op is Op.IS_NULL:
        return None if isinstance(index, BloomFilter) else index.is_null()
    if condition.op in (Op.IS_NOT_NULL, Op.NOT_EQUAL):
        # NOT_EQUAL only excludes nulls, because an index on timestamps is not exact.
        return None if isinstance(index, BloomFilter) else index.is_not_null()
    literals = condition.literal if condition.op is Op.IN else (condition.literal,)
    if len(literals) > _MOST_LITERALS:
        return None
    if any(isinstance(each, float) and math.isnan(each) for each in literals):
        return None
    present = [each for each in literals if each is not None]
    if not present:
        return _NO_ROWS
    scalars = [*values_to_arrow(present, asked.data_type)]
    if isinstance(index, BloomFilter):
        return _of_filter(index, condition.op, scalars)
    return _compared(index, condition.op, scalars)


def _of_filter(index: BloomFilter, op: Op, literals: Sequence[pa.Scalar]) -> BitMap | None:
    if op not in (Op.EQUAL, Op.IN) or any(map(index.may_contain, literals)):
        return None
    return _NO_ROWS


def _compared(index: RowIndex, op: Op, literals: Sequence[pa.Scalar]) -> BitMap | None:
    if op in (Op.EQUAL, Op.IN):
        return index.one_of(literals)
    if not isinstance(index, OrderedRowIndex):
        return None
    [literal] = literals
    match op:
        case Op.LESS:
            return index.less_than(literal)
        case Op.LESS_EQUAL:
            return index.at_most(literal)
        case Op.GREATER:
            return index.greater_than(literal)
        case _:
            return index.at_least(literal)
