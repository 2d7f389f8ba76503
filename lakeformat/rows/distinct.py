# SPDX-License-Identifier: Apache-2.0
"""Assigns a number to each distinct combination of values in some columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from lakeformat.rows.groups import Positions
from lakeformat.types.arrow_memory import numbers

__all__ = ["number_distinct"]


def number_distinct(columns: Sequence[pa.Array]) -> tuple[Positions, Positions]:
    """Return the number assigned to each row's combination of values, and the first row of each
    number.

    Equal combinations have equal numbers; null equals null.
    """
    codes: Positions = np.zeros(len(columns[0]), np.int64)
    first_of: Positions = np.zeros(0, np.int64)
    for column in columns:
        encoded = column.dictionary_encode(null_encoding="encode")
        here = max(len(encoded.dictionary), 1)
        mixed = codes * here + numbers(encoded.indices)
        codes, first_of = _renumbered(mixed, max(len(first_of), 1) * here)
    return codes, first_of


def _renumbered(codes: Positions, bound: int) -> tuple[Positions, Positions]:
    """Return ``codes`` renumbered without gaps, and the first row with each new code.

    There is one code for each row, and all are below ``bound``.
    """
    if bound > 4 * len(codes):
        _, first_of, codes = np.unique(codes, return_index=True, return_inverse=True)
        return codes, first_of
    first_of = np.full(bound, -1, np.int64)
    first_of[codes[::-1]] = np.arange(len(codes))[::-1]
    used = first_of >= 0
    return (np.cumsum(used) - 1)[codes], first_of[used]
