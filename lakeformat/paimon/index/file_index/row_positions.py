# SPDX-License-Identifier: Apache-2.0
"""Reads row numbers from an index, and checks that its data file has these rows."""

from __future__ import annotations

from pyroaring import BitMap

from lakeformat.files.byte_cursor import ByteCursor
from lakeformat.files.roaring import read_bitmap
from lakeformat.types.count_text import counted

__all__ = ["read_row_count", "read_rows", "rows_but"]


def read_row_count(cursor: ByteCursor) -> int:
    """Read the row count of the data file at the cursor, and return it."""
    return cursor.count("rows")


def read_rows(cursor: ByteCursor, row_count: int) -> BitMap:
    """Read the bitmap at the cursor.

    Raise CorruptTableError if it is damaged, or has a row that the data file does not have.
    """
    rows = read_bitmap(cursor)
    if rows and rows.max() >= row_count:
        raise cursor.error(
            f"a bitmap names row {rows.max()}, counted from 0, but the data file has only "
            f"{counted(row_count, 'row')}"
        )
    return rows


def rows_but(rows: BitMap, row_count: int) -> BitMap:
    """Return the rows from 0 up to ``row_count``, exclusive, that are not in ``rows``."""
    return BitMap(range(row_count)) - rows
