# SPDX-License-Identifier: Apache-2.0
"""The types of arguments that many methods of a table share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypeAlias

from lakeformat.tables.position import Position

__all__ = ["Overwritten", "PartitionSpec", "Partitions", "WindowEnd"]

PartitionSpec: TypeAlias = Mapping[str, Any]
"""Values of partition columns, of all or only some, such as ``{"dt": "2024-01-01"}``; texts are
cast as in SQL."""

Partitions: TypeAlias = PartitionSpec | Sequence[PartitionSpec]
"""One or several ``PartitionSpec``: together they select all rows that match any of them."""

Overwritten: TypeAlias = PartitionSpec | Literal["dynamic", "partitions", "table"]
"""The rows to replace: values of partition columns name the partitions; ``"table"`` and ``{}`` are
the whole table, ``"partitions"`` and ``"dynamic"`` the partitions that get rows. Without partition
columns ``"partitions"`` is refused, and ``"dynamic"`` replaces all rows."""

WindowEnd: TypeAlias = Position | int | str | datetime
"""Position, snapshot number, tag name, or time (UTC unless it has a zone)."""
