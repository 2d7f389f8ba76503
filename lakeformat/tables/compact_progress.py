# SPDX-License-Identifier: Apache-2.0
"""Progress reports of a running compaction, DELETE or UPDATE, for tables of any format."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["CompactProgress", "OnUnit"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactProgress:
    """The units and bytes that the running work has planned and completed so far.

    A unit is a part of the work, such as a group of files to rewrite.
    """

    table: str
    units: int
    """The number of planned units; ``bytes`` is their size."""
    done: int
    bytes: int
    bytes_done: int


OnUnit = Callable[[CompactProgress], None]
"""Called with the progress of a compaction, DELETE or UPDATE while it runs."""
