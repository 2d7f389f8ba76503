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
"""Returns the ascending keys of each run, for the number of rows in all runs."""


def scattered(runs: int, *, again: float) -> KeyRuns:
    """Return runs with random keys, as updates make them. ``again`` is the part of the keys of each
    run but the first that earlier runs have, too.
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
    """Return runs with ranges of keys, as keys that grow with time have. ``again`` is the part of
    each range but the first that is also in the range before.
    """

    def keys(rows: int) -> Iterator[Numbers]:
        size = rows // runs
        step = size - int(size * again)
        for number in range(runs):
            yield np.arange(number * step, number * step + size)

    return keys
