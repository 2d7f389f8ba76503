# SPDX-License-Identifier: Apache-2.0
"""The order of FLOAT and DOUBLE keys, by which files are sorted and rows are merged."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["orderable"]


def orderable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return FLOAT and DOUBLE keys as int64 numbers in the format's order: -0.0 before 0.0, NaN
    last.

    Return a column of any other type unchanged.
    """
    if not pa.types.is_floating(column.type):
        return column
    flat = np.asarray(pc.fill_null(column, 0.0).to_numpy(), dtype=np.float64)
    raw = np.where(np.isnan(flat), np.nan, flat).view(np.int64)
    sortable = np.where(raw < 0, raw ^ np.iinfo(np.int64).max, raw)
    return pa.chunked_array([pa.array(sortable, mask=pc.is_null(column).to_numpy())])
