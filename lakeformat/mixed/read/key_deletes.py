# SPDX-License-Identifier: Apache-2.0
"""Searches the deleted keys of a node for many rows at once.

A change has a log sequence number (LSN): its transaction, then its offset in the transaction. A row
is deleted by its key if the key has a delete with a larger LSN. An update has a delete and an
insert with one LSN, so an equal LSN deletes nothing. In a table with a version field,
versions are compared first, and LSNs only if the versions are equal.
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

    def __init__(
        self,
        keys: Sequence[pa.Array],
        transactions: _Numbers,
        offsets: _Numbers,
        versions: _Numbers | None = None,
    ) -> None:
        """Build the index from the key columns of all deletes.

        ``transactions`` and ``offsets`` are the LSN of each delete. ``versions`` has the version of
        each delete; None in a table without a version field.
        """
        ranks = np.arange(len(offsets))
        if versions is not None or not _is_ascending(transactions, offsets):
            by = (offsets, transactions) if versions is None else (offsets, transactions, versions)
            order = np.lexsort(by)
            transactions, offsets = transactions[order], offsets[order]
            versions = None if versions is None else versions[order]
            ranks[order] = np.arange(len(order))
        self._versions = versions
        self._transactions = transactions
        self._offsets = offsets
        self._keys = EqualityKeys(keys, ranks)

    def deleted(
        self,
        keys: Sequence[pa.Array],
        transactions: int | _Numbers,
        offsets: _Numbers | None,
        versions: _Numbers | None = None,
    ) -> Mask:
        """Return a mask of the rows that are deleted.

        ``transactions`` has the transaction of each row, or one transaction for all rows. Without
        ``offsets`` the rows come after all changes of their transaction, as rows of the base store
        do. ``versions`` are the versions of the rows; None in a table without a version field.
        """
        rows, ranks = self._keys.matches(keys)
        own = transactions if isinstance(transactions, int) else transactions[rows]
        newest = self._transactions[ranks]
        is_deleted = newest > own
        if offsets is not None:
            is_deleted |= (newest == own) & (self._offsets[ranks] > offsets[rows])
        if self._versions is not None:
            assert versions is not None
            newest, own = self._versions[ranks], versions[rows]
            is_deleted = (newest > own) | ((newest == own) & is_deleted)
        mask: Mask = np.zeros(len(keys[0]), np.bool_)
        mask[rows[is_deleted]] = True
        return mask


def _is_ascending(transactions: _Numbers, offsets: _Numbers) -> bool:
    steps = np.diff(transactions)
    return bool(((steps > 0) | ((steps == 0) & (np.diff(offsets) >= 0))).all())
