# SPDX-License-Identifier: Apache-2.0
"""The progress of a compaction of any format."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["CompactProgress", "OnUnit"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactProgress:
    """The progress of a compaction."""

    table: str
    units: int
    """The number of units planned so far."""
    done: int
    bytes: int
    bytes_done: int


OnUnit = Callable[[CompactProgress], None]
"""Is called after each unit with the progress of a compaction."""
