"""Rows of a bucket put in order, without being moved: which belong together, and in which order."""

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
    """The rows of each key, keys in their order, the rows of one key in merge order."""

    order: Positions
    """Positions of rows: those of the first key, oldest first, then those of the next."""
    starts: Positions
    """Where in ``order`` each key begins."""
    with_lone: bool = False
    """Whether an engine also merges a key's only row, as compactions do that look rows up."""

    def __len__(self) -> int:
        return len(self.starts)

    @cached_property
    def ends(self) -> Positions:
        """Where in ``order`` each key ends; the row before is its newest."""
        return np.append(self.starts, len(self.order))[1:]

    @cached_property
    def sizes(self) -> Positions:
        """How many rows each key has."""
        return self.ends - self.starts

    @cached_property
    def meets(self) -> Mask:
        """Which keys an engine merges; the row of any other stays as it is, kind and all."""
        return np.ones(len(self), np.bool_) if self.with_lone else self.sizes > 1

    @cached_property
    def key_of(self) -> Positions:
        """Which key each position of ``order`` belongs to."""
        return np.repeat(np.arange(len(self.starts)), self.sizes)

    @property
    def newest(self) -> Positions:
        """The position of the last row of each key."""
        return self.order[self.ends - 1]

    @property
    def oldest(self) -> Positions:
        """The position of the first row of each key."""
        return self.order[self.starts]
