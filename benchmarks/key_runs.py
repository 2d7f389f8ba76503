"""The keys of the sorted runs of a table, and how the runs overlap."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["SEED", "KeyRuns", "Numbers", "ranges", "scattered"]

SEED = 20_240_301

Numbers: TypeAlias = npt.NDArray[np.int64]
KeyRuns: TypeAlias = Callable[[int], Iterator[Numbers]]
"""Takes the number of rows of all runs together, and yields the ascending keys of each run."""


def scattered(runs: int, *, again: float) -> KeyRuns:
    """Return runs with random keys, as updates make them.

    In each run but the first, ``again`` is the share of the keys that an earlier run has, too.
    """

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
    """Return runs that each have one range of keys, as in a table whose keys grow with time.

    In each range but the first, ``again`` is the share of the keys that the range before has, too.
    """

    def keys(rows: int) -> Iterator[Numbers]:
        size = rows // runs
        step = size - int(size * again)
        for number in range(runs):
            yield np.arange(number * step, number * step + size)

    return keys
