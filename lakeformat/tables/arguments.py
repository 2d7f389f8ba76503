# SPDX-License-Identifier: Apache-2.0
"""Arguments that many methods of a table share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.tables.position import Position
from lakeformat.types.type_rules import is_list

if TYPE_CHECKING:
    from lakeformat.tables.table import Table

__all__ = [
    "Overwritten",
    "PartitionSpec",
    "Partitions",
    "WindowEnd",
    "only_for",
    "partitions_to_drop",
]

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


def partitions_to_drop(partitions: object) -> list[PartitionSpec]:
    """Return a list of partitions to drop; raise if it is empty, or if one would be all rows."""
    specs = [*partitions] if is_list(partitions) else []  # type: ignore[misc]
    if not specs or not all(specs):
        raise InvalidRequestError(
            "partitions must list the partitions to drop, as in [{'dt': '2024-01-01'}]; to "
            f"delete all rows, use truncate(). Got {partitions!r}"
        )
    return specs


def only_for(table_format: str, table: Table, **options: Any) -> dict[str, Any]:
    """Return the options that are not None; raise if the table has another format."""
    given = {name: value for name, value in options.items() if value is not None}
    if given and table.format != table_format:
        raise UnsupportedError(
            f"{', '.join(given)} is for tables of the format {table_format!r}, and "
            f"{table.location} has the format {table.format!r}: leave it out"
        )
    return given
