"""The keys of the sorted runs of a table, and their overlap."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["SEED", "KeyRuns", "Numbers", "ranges", "scattered"]

SEED = 20_240_301

Numbers: TypeAlias = npt.NDArray[np.int64]
KeyRuns: TypeAlias = Callable[[int], Iterator[Numbers]]
"""The keys of each run, rising, given the rows of all of them."""


def scattered(runs: int, *, again: float) -> KeyRuns:
    """Each run has keys all over, as updates of random keys do; such a part is there before."""

    def keys(rows: int) -> Iterator[Numbers]:
        random = np.random.default_rng(SEED)
        size = rows // runs
        updated = int(size * again)
        numbers = random.permutation(size + (runs - 1) * (size - updated))
        known = size
        yield np.sort(numbers[:size])
        for _ in range(runs - 1):
            old = random.choice(numbers[:known], updated, replace=False)
            new = numbers[known : known + size - updated]
            yield np.sort(np.concatenate([old, new]))
            known += len(new)

    return keys


def ranges(runs: int, *, again: float) -> KeyRuns:
    """Each run has a range of keys, as those that grow with time do; its first part is there
    before, at the end of another run.
    """

    def keys(rows: int) -> Iterator[Numbers]:
        size = rows // runs
        step = size - int(size * again)
        for number in range(runs):
            yield np.arange(number * step, number * step + size)

    return keys
