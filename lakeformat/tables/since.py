# SPDX-License-Identifier: Apache-2.0
"""The snapshots that were committed to a table after a position."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

__all__ = ["Since"]

_Snapshot = TypeVar("_Snapshot")


@dataclass(frozen=True, slots=True)
class Since(Generic[_Snapshot]):
    """The snapshots after a position, oldest first, and signs that a reader at the position has
    lost some.
    """

    snapshots: tuple[_Snapshot, ...]
    missed: bool
    """True if snapshots right after the position have expired before they were read."""
    rewound: bool
    """True if the position is not part of the history any more: the table was rolled back, or
    dropped and created again."""
