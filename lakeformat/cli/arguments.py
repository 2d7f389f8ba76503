# SPDX-License-Identifier: Apache-2.0
"""Arguments that several commands share, so that each help text describes them alike."""

from __future__ import annotations

from typing import Annotated, Any

import typer

__all__ = ["ConflictOption", "DryRun", "ReadSnapshotOption", "TableArgument", "order_of"]

TableArgument = Annotated[
    str,
    typer.Argument(metavar="TABLE", help="database.table, a branch of it, or its directory"),
]
ReadSnapshotOption = Annotated[
    str | None,
    typer.Option(
        metavar="POSITION",
        help="The snapshot from which the change was computed, such as 7. If other commits "
        "changed the table since, --conflict decides. Only for Paimon tables.",
    ),
]
ConflictOption = Annotated[
    str | None,
    typer.Option(
        metavar="HOW",
        help="With --read-snapshot: transaction-order commits, and keeps the rows that other "
        "commits changed since; optimistic fails if they changed the same partitions. Default: "
        "the table option write.conflict. For a Mixed table only transaction-order, without "
        "--read-snapshot.",
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")]


def order_of(read_snapshot: str | None, conflict: str | None) -> dict[str, Any]:
    """Return the arguments ``read_snapshot`` and ``conflict`` of a change, if they are not None."""
    given = {"read_snapshot": read_snapshot, "conflict": conflict}
    return {name: value for name, value in given.items() if value is not None}
