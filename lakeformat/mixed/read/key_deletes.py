# SPDX-License-Identifier: Apache-2.0
"""Searches the deleted keys of a node for many rows at once.

A change has a log sequence number (LSN): its transaction, then its offset in the transaction. A row
is deleted by its key if the key has a delete with a larger LSN. An update has a delete and an
insert with one LSN, so an equal LSN deletes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakeformat.iceberg.read.equality_keys import EqualityKeys
from lakeformat.rows.prune import Mask

__all__ = ["KeyDeletes"]

_Numbers = NDArray[np.int64]


class KeyDeletes:
    """Deleted keys, each with the largest LSN of its deletes."""

    def __init__(self, keys: Sequence[pa.Array], transactions: _Numbers, offsets: _Numbers) -> None:
        """Build the index from the key columns of all deletes, and the LSN of each."""
        order = np.lexsort((offsets, transactions))
        ranks = np.empty(len(order), np.int64)
        ranks[order] = np.arange(len(order))
        self._transactions = transactions[order]
        self._offsets = offsets[order]
        self._keys = EqualityKeys(keys, ranks)

    def deleted(self, keys: Sequence[pa.Array], transaction: int, offsets: _Numbers | None) -> Mask:
        """Return a mask of the rows that are deleted.

        All rows have one transaction. Without ``offsets`` they come after all of its changes, as
        rows of the base store do.
        """
        first, end = np.searchsorted(self._transactions, [transaction, transaction + 1])
        not_larger = np.full(len(keys[0]), end, np.int64)
        if offsets is not None:
            not_larger[:] = first + np.searchsorted(self._offsets[first:end], offsets, side="right")
        mask: Mask = self._keys.numbers(keys) >= not_larger
        return mask
