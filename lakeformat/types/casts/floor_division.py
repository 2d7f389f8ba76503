# SPDX-License-Identifier: Apache-2.0
"""Divides numbers and rounds down, for points in time before 1970."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["floor_divide"]


def floor_divide(counts: pa.Array, step: int) -> pa.Array:
    """Return each int64 divided by ``step``, rounded down; Arrow's own division rounds towards
    zero.
    """
    if step == 1:
        return counts
    quotients = pc.divide(counts, step)
    is_above = pc.greater(pc.multiply(quotients, step), counts)
    return pc.subtract(quotients, is_above.cast(pa.int64()))
