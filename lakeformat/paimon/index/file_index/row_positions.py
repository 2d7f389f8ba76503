"""The rows an index may speak of: those of its data file."""

from __future__ import annotations

from pyroaring import BitMap

from lakeformat.paimon.index.byte_cursor import ByteCursor
from lakeformat.paimon.index.roaring import read_bitmap

__all__ = ["read_row_count", "read_rows", "rows_but"]


def read_row_count(cursor: ByteCursor) -> int:
    """The number of rows of the data file, from its index."""
    return cursor.count("rows")


def read_rows(cursor: ByteCursor, row_count: int) -> BitMap:
    """The bitmap at the cursor, of rows the file has."""
    rows = read_bitmap(cursor)
    if rows and rows.max() >= row_count:
        raise cursor.error(f"its bitmap has row {rows.max()} of {row_count}")
    return rows


def rows_but(rows: BitMap, row_count: int) -> BitMap:
    """The other rows of the file."""
    return BitMap(range(row_count)) - rows
