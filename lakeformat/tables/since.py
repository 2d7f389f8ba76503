# SPDX-License-Identifier: Apache-2.0
"""The snapshots that a table got after a position."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

__all__ = ["Since"]

_Snapshot = TypeVar("_Snapshot")


@dataclass(frozen=True, slots=True)
class Since(Generic[_Snapshot]):
    """The snapshots after a position, oldest first, and the flags ``missed`` and ``rewound``."""

    snapshots: tuple[_Snapshot, ...]
    missed: bool
    """True if snapshots right after the position expired before the reader read them."""
    rewound: bool
    """True if the position is no longer in the history: the table was rolled back, or dropped and
    created again. The rollback or drop is not noticed if the snapshot with the position's number
    has expired.
    """
