# SPDX-License-Identifier: Apache-2.0
"""Groups the rows of one bucket by key, without moving the rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["KeyGroups", "Mask", "Positions"]

Positions: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class KeyGroups:
    """The positions of rows by key: keys in key order, the rows of one key in merge order."""

    order: Positions
    """The positions of rows, key by key; the rows of one key begin with the oldest."""
    starts: Positions
    """For each key, the position in ``order`` of its first row."""
    with_lone: bool = False
    """True if the engine must also merge a key with a single row. Compactions with lookups
    need this.
    """

    def __len__(self) -> int:
        return len(self.starts)

    @cached_property
    def ends(self) -> Positions:
        """For each key, the exclusive end of its rows in ``order``; the last row is the newest."""
        return np.append(self.starts, len(self.order))[1:]

    @cached_property
    def sizes(self) -> Positions:
        """The number of rows of each key."""
        return self.ends - self.starts

    @cached_property
    def meets(self) -> Mask:
        """A mask of the keys whose rows an engine must merge.

        Every other key has a single row, which is kept unchanged.
        """
        return np.ones(len(self), np.bool_) if self.with_lone else self.sizes > 1

    @cached_property
    def key_of(self) -> Positions:
        """The number of the key at each position of ``order``."""
        return np.repeat(np.arange(len(self.starts)), self.sizes)

    @property
    def newest(self) -> Positions:
        """For each key, the position of its newest row."""
        return self.order[self.ends - 1]

    @property
    def oldest(self) -> Positions:
        """For each key, the position of its oldest row."""
        return self.order[self.starts]
