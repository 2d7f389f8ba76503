"""Rows at some positions of a table, as fast as Arrow can."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.merge.groups import Positions
from lakeformat.merge.memory import merge_memory

__all__ = ["take_rows"]


def take_rows(rows: pa.Table, positions: Positions) -> pa.Table:
    """The same as ``rows.take``; of columns in one piece Arrow takes arrays in half the time."""
    wanted, pool = pa.array(positions), merge_memory()
    columns = [
        pc.take(column.chunk(0), wanted, memory_pool=pool)
        if column.num_chunks == 1
        else pc.take(column, wanted, memory_pool=pool)
        for column in rows.columns
    ]
    return pa.Table.from_arrays(columns, schema=rows.schema)
