# SPDX-License-Identifier: Apache-2.0
"""The order of rows by the values of columns, one column after the other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.rows.groups import Positions

__all__ = ["positions_by_values"]


def positions_by_values(keys: Sequence[pa.Array], directions: Sequence[str]) -> Positions:
    """Return the positions of rows in order; equal rows keep their order.

    ``directions`` has ``ascending`` or ``descending`` for each key. Nulls are last in both: give
    their place as a key before.
    """
    names = [str(number) for number in range(len(keys))]
    sort_keys = [*zip(names, directions, strict=True)]
    found = pc.sort_indices(pa.table(dict(zip(names, keys, strict=True))), sort_keys=sort_keys)
    positions: Positions = found.to_numpy().astype(np.int64)
    return positions
