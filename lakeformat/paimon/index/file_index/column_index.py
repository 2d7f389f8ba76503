# SPDX-License-Identifier: Apache-2.0
"""The interface of an index of one column, of any type."""

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
    """The types of index that this version supports, by their names in the container."""

    BLOOM_FILTER = BLOOM_FILTER
    BITMAP = BITMAP
    BSI = BSI
    RANGE_BITMAP = RANGE_BITMAP


class RowIndex(Protocol):
    """Finds positions of rows in the data file; nothing is equal to a null.

    For timestamps finer than microseconds, the rows only may match, so the reader checks the
    predicate again.
    """

    def equal_to(self, value: object) -> BitMap: ...

    def one_of(self, values: Sequence[object]) -> BitMap: ...

    def is_null(self) -> BitMap: ...

    def is_not_null(self) -> BitMap: ...


@runtime_checkable
class OrderedRowIndex(RowIndex, Protocol):
    """An index that can also compare with <, <=, > and >=."""

    def less_than(self, value: object) -> BitMap: ...

    def at_most(self, value: object) -> BitMap: ...

    def greater_than(self, value: object) -> BitMap: ...

    def at_least(self, value: object) -> BitMap: ...


@dataclass(frozen=True, slots=True)
class EmptyIndex:
    """An empty index, which proves that no row has a value: a comparison finds no rows."""


EMPTY = EmptyIndex()

ColumnIndex = BloomFilter | RowIndex | EmptyIndex


def open_column_index(
    index_type: str, data_type: DataType, body: bytes | None, source: str
) -> ColumnIndex | None:
    """Open one index of a container, given its bytes ``body``; None if its type is unknown.

    ``data_type`` is the type the column has in its data file, ``source`` names the index in errors.
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
