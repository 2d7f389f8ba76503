# SPDX-License-Identifier: Apache-2.0
"""Encodes repeating texts as dictionary indices, which are copied and written much faster."""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.files.parquet.dictionary_columns import SAMPLE_ROWS, repeats_itself
from lakeformat.types.arrow_types import in_full

__all__ = ["in_full_columns", "with_dictionaries"]

_MAX_DISTINCT_FRACTION = 0.1
"""Texts are encoded if at most this share of a sample is distinct: small dictionaries fit into the
CPU cache.
"""
_LONGEST = 256
_FEWEST_ROWS = 4 * SAMPLE_ROWS


def in_full_columns(rows: pa.Table) -> pa.Table:
    """Return the rows with plain texts in place of dictionaries, and with 128-bit decimals."""
    for number, field in enumerate(rows.schema):
        kind = in_full(field.type)
        if kind != field.type:
            rows = rows.set_column(number, field.with_type(kind), rows.column(number).cast(kind))
    return rows


def with_dictionaries(rows: pa.Table, besides: Collection[str]) -> pa.Table:
    """Return the rows with dictionaries in place of texts that repeat.

    A table of few rows is unchanged. So are columns in ``besides``, columns of several chunks, and
    columns with a long text.
    """
    if rows.num_rows < _FEWEST_ROWS:
        return rows
    for number, name in enumerate(rows.column_names):
        column = rows.column(number)
        if name in besides or column.num_chunks != 1 or not _is_worth_it(column.chunk(0)):
            continue
        encoded = column.chunk(0).dictionary_encode()
        rows = rows.set_column(number, name, encoded)
    return rows


def _is_worth_it(column: pa.Array) -> bool:
    if not pa.types.is_string(column.type):
        return False
    if not repeats_itself(column.slice(0, SAMPLE_ROWS), _MAX_DISTINCT_FRACTION):
        return False
    longest = pc.max(pc.binary_length(column)).as_py()
    return longest is not None and longest <= _LONGEST
