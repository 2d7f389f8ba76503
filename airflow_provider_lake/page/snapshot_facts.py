# SPDX-License-Identifier: Apache-2.0
"""The facts on the page of a snapshot: the files that its commit added and deleted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_provider_lake.page.table_facts import counts_rows
from airflow_provider_lake.page.team_lake import lake_of_connection

if TYPE_CHECKING:
    from lakeformat import SnapshotChange

__all__ = ["SnapshotFacts", "look_at_snapshot"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotFacts:
    """The facts on the page of a snapshot."""

    change: SnapshotChange
    counts_rows: bool
    """True if the record counts of the snapshot are row counts, as ``counts_rows`` of
    ``table_facts`` defines them.
    """
    earlier: int | None
    """The number of the previous snapshot; None if there is none, or if that snapshot has
    expired.
    """
    later: int | None
    """The number of the next snapshot; None for the newest snapshot."""


def look_at_snapshot(connection_id: str, name: str, number: int) -> SnapshotFacts:
    """Return the facts of the snapshot with this number.

    Raises ``NotFoundError`` if the snapshot does not exist, and ``UnsupportedError`` for a table
    that is not a Paimon table.
    """
    from lakeformat import NotFoundError

    table = lake_of_connection(connection_id).table(name)
    table.require("snapshot_change")
    change = table.snapshot_change(number)
    if change is None:
        raise NotFoundError(
            f"table {name} has no snapshot {number}: it has expired, was rolled back, or was never "
            "published"
        )
    position = table.position(number)
    earlier, later = position.before, table.advance(position, 1)
    return SnapshotFacts(
        change=change,
        counts_rows=counts_rows(table),
        earlier=earlier.number if table.snapshot(earlier) is not None else None,
        later=later.number if later != position else None,
    )
