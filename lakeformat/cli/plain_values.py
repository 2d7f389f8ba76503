# SPDX-License-Identifier: Apache-2.0
"""Converts rows of a system table to plain values, for JSON and for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["plain_columns", "plain_rows"]

# The years 1 to 9999: beyond them ISO 8601 has no text that programs agree on.
_FIRST_MILLIS = -62_135_596_800_000
_LAST_MILLIS = 253_402_300_799_999
_ROWS_AT_ONCE = 1024


def plain_columns(table: pa.Table) -> dict[str, list[Any]]:
    """Return the values of each column, for a terminal.

    A time is ISO text in UTC; a time outside the years 1 to 9999 is a text such as
    ``253402300800000 ms``.
    """
    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_timestamp(column.type):
            millis = pc.binary_join_element_wise(_millis(column).cast(pa.string()), "ms", " ")
            column = pc.coalesce(_iso_text(column), millis)
        columns[name] = column.to_pylist()
    return columns


def plain_rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    """Yield each row as a dict, for JSON; a time is ISO text in UTC.

    A time outside the years 1 to 9999 is null, and ``<column>_millis`` has its milliseconds.
    """
    columns, odd = [], {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_timestamp(column.type):
            text = _iso_text(column)
            if text.null_count > column.null_count:
                odd[name] = _millis(column)
            column = text
        columns.append(column)
    start = 0
    for batch in pa.table(columns, table.column_names).to_batches(_ROWS_AT_ONCE):
        for number, row in enumerate(batch.to_pylist(), start):
            for name, millis in odd.items():
                if row[name] is None and millis[number].is_valid:
                    row[f"{name}_millis"] = millis[number].as_py()
            yield row
        start += batch.num_rows


def _millis(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(pa.int64())


def _iso_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return times as ISO text; null for null, and for a year that is not 1 to 9999."""
    millis = _millis(column)
    has_text = pc.and_(pc.greater_equal(millis, _FIRST_MILLIS), pc.less_equal(millis, _LAST_MILLIS))
    known = pc.if_else(has_text, column, pa.scalar(None, column.type))
    return pc.replace_substring(known.cast(pa.string()), " ", "T")
