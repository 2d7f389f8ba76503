# SPDX-License-Identifier: Apache-2.0
"""Sets of file names as 64-bit hashes, so that the names of a long history fit into memory.

If two names have the same hash, an orphan may be kept, but no referenced file is deleted.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

__all__ = ["LiveNames", "NameSet", "numbers_of"]

Numbers = npt.NDArray[np.int64]

_NONE = np.empty(0, np.int64)
_LEAST_PENDING = 1 << 16


def numbers_of(names: Iterable[bytes]) -> Numbers:
    """Return a 64-bit hash of each name; it is valid only in this process."""
    return np.fromiter(map(hash, names), np.int64)


class NameSet:
    """A set of referenced file names, stored as the hashes that ``numbers_of`` returns."""

    def __init__(self) -> None:
        self._sorted = _NONE
        self._pending: list[Numbers] = []
        self._waiting = 0

    def __len__(self) -> int:
        return len(self._merged())

    def add(self, numbers: Numbers) -> None:
        """Add names, given as hashes; names that are in the set already are allowed."""
        if len(numbers):
            self._pending.append(numbers)
            self._waiting += len(numbers)
        if self._waiting > max(_LEAST_PENDING, len(self._sorted)):
            self._merged()

    def contains(self, numbers: Numbers) -> npt.NDArray[np.bool_]:
        """Return a mask of the names, given as hashes, that are in the set."""
        known = self._merged()
        if not len(known):
            return np.zeros(len(numbers), np.bool_)
        places = np.searchsorted(known, numbers)
        found: npt.NDArray[np.bool_] = known[np.minimum(places, len(known) - 1)] == numbers
        return found

    def _merged(self) -> Numbers:
        if self._pending:
            self._sorted = np.unique(np.concatenate([self._sorted, *self._pending]))
            self._pending, self._waiting = [], 0
        return self._sorted


class LiveNames:
    """Finds the names of live files, by cancelling each ADD against a DELETE of the same name."""

    def __init__(self) -> None:
        self._numbers: list[Numbers] = []
        self._is_delete: list[npt.NDArray[np.bool_]] = []

    def add(self, numbers: Numbers, is_delete: npt.NDArray[np.bool_]) -> None:
        """Add the entries of the next manifest in commit order: hashes of names, and a mask of
        DELETE entries.
        """
        self._numbers.append(numbers)
        self._is_delete.append(is_delete)

    def left(self) -> Numbers:
        """Return the hashes of the names that are live after all entries.

        A name is left out if it was deleted at least as often as it was added, and its last entry
        is a DELETE. Every other name is live, even if its entries contradict each other.
        """
        if not self._numbers:
            return _NONE
        numbers, is_delete = np.concatenate(self._numbers), np.concatenate(self._is_delete)
        order = np.argsort(numbers, kind="stable")
        ordered = numbers[order]
        is_first = np.ones(len(ordered), np.bool_)
        is_first[1:] = ordered[1:] != ordered[:-1]
        firsts = np.flatnonzero(is_first)
        if not len(firsts):
            return _NONE
        gone = is_delete[order]
        count = np.add.reduceat(np.where(gone, -1, 1), firsts)
        lasts = np.append(firsts[1:], len(ordered)) - 1
        left: Numbers = ordered[firsts][(count > 0) | ~gone[lasts]]
        return left
