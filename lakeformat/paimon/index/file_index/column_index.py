# SPDX-License-Identifier: Apache-2.0
"""Opens an index of a column by its index type, and declares the comparisons that it supports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, runtime_checkable

from pyroaring import BitMap

from lakeformat.paimon.index.file_index.bitmap import BITMAP, read_bitmap_index
from lakeformat.paimon.index.file_index.bloom_filter import (
    BLOOM_FILTER,
    BloomFilter,
    read_bloom_filter,
)
from lakeformat.paimon.index.file_index.bsi import BSI, read_bsi
from lakeformat.paimon.index.file_index.range_bitmap import RANGE_BITMAP, read_range_bitmap
from lakeformat.types.types import DataType

__all__ = [
    "EMPTY",
    "ColumnIndex",
    "EmptyIndex",
    "IndexType",
    "OrderedRowIndex",
    "RowIndex",
    "open_column_index",
]


class IndexType(StrEnum):
    """The index types that this version supports, by their names in a file index."""

    BLOOM_FILTER = BLOOM_FILTER
    BITMAP = BITMAP
    BSI = BSI
    RANGE_BITMAP = RANGE_BITMAP


class RowIndex(Protocol):
    """Finds the rows with a given value, by their positions in the data file.

    A null equals no value. For timestamps finer than microseconds, the result can include rows that
    do not match: check the predicate again. A value that the type of the column cannot hold exactly
    raises InvalidRequestError.
    """

    def equal_to(self, value: object) -> BitMap: ...

    def one_of(self, values: Sequence[object]) -> BitMap: ...

    def is_null(self) -> BitMap: ...

    def is_not_null(self) -> BitMap: ...


@runtime_checkable
class OrderedRowIndex(RowIndex, Protocol):
    """An index that also answers <, <=, > and >=."""

    def less_than(self, value: object) -> BitMap: ...

    def at_most(self, value: object) -> BitMap: ...

    def greater_than(self, value: object) -> BitMap: ...

    def at_least(self, value: object) -> BitMap: ...


@dataclass(frozen=True, slots=True)
class EmptyIndex:
    """An index without a body, which proves that the column has only nulls."""


EMPTY = EmptyIndex()

ColumnIndex = BloomFilter | RowIndex | EmptyIndex


def open_column_index(
    index_type: str, data_type: DataType, body: bytes | None, source: str
) -> ColumnIndex | None:
    """Open one index of a file index; return None for an unknown index type.

    ``body`` is the bytes of the index; None stands for a column of only nulls. ``data_type`` is the
    type of the column in the data file; ``source`` names the index in errors. Raise
    CorruptTableError for a damaged index or an unknown version. Raise UnsupportedError if the index
    does not support the data type.
    """
    if body is None:
        return EMPTY
    match index_type:
        case IndexType.BLOOM_FILTER:
            return read_bloom_filter(body, data_type, source)
        case IndexType.BITMAP:
            return read_bitmap_index(body, data_type, source)
        case IndexType.BSI:
            return read_bsi(body, data_type, source)
        case IndexType.RANGE_BITMAP:
            return read_range_bitmap(body, data_type, source)
    return None
