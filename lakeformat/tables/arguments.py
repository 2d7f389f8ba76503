# SPDX-License-Identifier: Apache-2.0
"""Types of arguments that many methods of a table share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypeAlias

from lakeformat.errors import InvalidRequestError
from lakeformat.tables.position import Position
from lakeformat.types.type_rules import is_list

__all__ = [
    "CONFLICTS",
    "TRANSACTION_ORDER",
    "Conflict",
    "Overwritten",
    "PartitionSpec",
    "Partitions",
    "WindowEnd",
    "partitions_to_drop",
]

PartitionSpec: TypeAlias = Mapping[str, Any]
"""Values of some or all partition columns, such as ``{"dt": "2024-01-01"}``.

A str is cast to the type of the column as in SQL.
"""

Partitions: TypeAlias = PartitionSpec | Sequence[PartitionSpec]
"""One ``PartitionSpec``, or a list that selects every row that matches at least one of its
entries.
"""

Overwritten: TypeAlias = PartitionSpec | Literal["dynamic", "partitions", "table"]
"""The rows that an overwrite replaces.

- Values of partition columns, such as ``{"dt": "2024-01-01"}``: the rows of the partitions with
  these values.
- ``"table"`` or ``{}``: all rows.
- ``"partitions"``: the rows of each partition that gets new rows. A table without partition
  columns raises ``InvalidRequestError``.
- ``"dynamic"``: as ``"partitions"``. In a table without partition columns, all rows are replaced;
  but without new rows, a Paimon table keeps its rows.
"""

Conflict: TypeAlias = Literal["optimistic", "transaction-order"]
"""The treatment of rows that other commits changed after the snapshot from which a batch was
computed.

- ``"optimistic"``: the commit of the batch is refused, and you compute the batch again.
- ``"transaction-order"``: for a key whose row another commit has changed, that change wins over the
  row of the batch, even though the batch commits later.
"""

TRANSACTION_ORDER = "transaction-order"
CONFLICTS = ("optimistic", TRANSACTION_ORDER)

WindowEnd: TypeAlias = Position | int | str | datetime
"""An end of a range of changes: a position, a snapshot number, a tag name, or a time (UTC unless it
has a zone).
"""


def partitions_to_drop(partitions: object) -> list[PartitionSpec]:
    """Return the partitions to drop as a list.

    ``InvalidRequestError`` is raised if ``partitions`` is not a list, if it is empty, or if an
    entry is empty and so selects all rows.
    """
    specs = [*partitions] if is_list(partitions) else []  # type: ignore[misc]
    if not specs or not all(specs):
        raise InvalidRequestError(
            "partitions must list the partitions to drop, as in [{'dt': '2024-01-01'}]; to "
            f"delete all rows, use truncate(). Got {partitions!r}"
        )
    return specs
