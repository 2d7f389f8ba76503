"""The types of arguments that many methods of a table share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypeAlias

from lakeformat.tables.position import Position

__all__ = ["Overwritten", "PartitionSpec", "Partitions", "WindowEnd"]

PartitionSpec: TypeAlias = Mapping[str, Any]
"""Values of some partition columns, such as ``{"dt": "2024-01-01"}``; text is cast as in SQL."""

Partitions: TypeAlias = PartitionSpec | Sequence[PartitionSpec]
"""Values of some partition columns, or a list of such: rows that match any of them."""

Overwritten: TypeAlias = PartitionSpec | Literal["dynamic"]
"""Partitions to replace; ``{}`` is the whole table."""

WindowEnd: TypeAlias = Position | int | str | datetime
"""Position, snapshot number, tag name, or time (UTC unless it has a zone)."""
