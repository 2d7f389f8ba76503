# SPDX-License-Identifier: Apache-2.0
"""The rows of the partitions that a partition spec matches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["PartitionRows"]


@dataclass(frozen=True, slots=True)
class PartitionRows:
    """The rows of the partitions that a partition spec matches, counted from metadata."""

    snapshot_id: int | None
    """The id of the newest snapshot, whose rows were counted; None if there is no snapshot."""
    rows: Mapping[str, int]
    """The number of rows by partition, such as ``dt=2024-01-01``.

    Deleted and replaced rows count as long as a live file contains them.
    """
