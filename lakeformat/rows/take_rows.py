# SPDX-License-Identifier: Apache-2.0
"""Takes rows at given positions from a table, as fast as Arrow can."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.rows.groups import Positions
from lakeformat.rows.memory import merge_memory

__all__ = ["take_rows"]

_MOST_SHORT = np.iinfo(np.int32).max


def take_rows(rows: pa.Table, positions: Positions) -> pa.Table:
    """Return ``rows.take(positions)`` without a bounds check: every position must exist."""
    is_short = rows.num_rows <= _MOST_SHORT
    wanted, pool = pa.array(positions.astype(np.int32) if is_short else positions), merge_memory()
    columns = [
        pc.take(
            column.chunk(0) if column.num_chunks == 1 else column,
            wanted,
            boundscheck=False,
            memory_pool=pool,
        )
        for column in rows.columns
    ]
    return pa.Table.from_arrays(columns, schema=rows.schema)
