# SPDX-License-Identifier: Apache-2.0
"""Positions of a Paimon table: each is a snapshot number of one branch."""

from __future__ import annotations

from lakeformat.errors import InvalidRequestError, NotFoundError
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import (
    latest_snapshot_id,
    read_snapshot_if_present,
)
from lakeformat.tables.position import OF_NO_SNAPSHOT, Position

__all__ = [
    "number_of_kept",
    "position_at",
    "require_number",
    "require_same_snapshot",
    "snapshot_number",
]


def position_at(handle: TableHandle, number: int, identity: str | None = None) -> Position:
    """Return the position after snapshot ``number``; 0 is the position before the first snapshot.

    ``identity`` is the identity of this snapshot. With it, a reader of the position notices that a
    rollback has given the number to another snapshot. With ``identity=None``, any snapshot of this
    number is accepted.
    """
    return Position((number,), handle.layout.branch, identity, handle.uri)


def snapshot_number(handle: TableHandle, what: str, value: object) -> int:
    """Return the snapshot number of a Position, or ``value`` itself if it is an int.

    Raise InvalidRequestError for any other type, and for a position of another branch or table.
    For a wrong type, the message begins with ``what``, such as "'snapshot' must be a snapshot
    number".
    """
    if not isinstance(value, Position):
        require_number(what, value)
        assert isinstance(value, int)
        return value
    beginning = position_at(handle, 0)
    # this call refuses the number of another history
    return value.number if value >= beginning else 0


def number_of_kept(handle: TableHandle, what: str, value: object) -> int:
    """Return the result of ``snapshot_number``, and check a position that has an identity.

    Raise NotFoundError if a rollback has removed or replaced the snapshot of the position. An
    expired snapshot is no error.
    """
    number = snapshot_number(handle, what, value)
    if isinstance(value, Position) and value.identity is not None:
        found = read_snapshot_if_present(handle.storage, handle.layout, number)
        require_same_snapshot(handle, value, found)
    return number


def require_same_snapshot(handle: TableHandle, value: object, found: Snapshot | None) -> None:
    """Raise NotFoundError if a rollback has removed or replaced the snapshot of the position
    ``value``.

    ``found`` is the snapshot that now has the number of the position, or None if there is none.
    Without such a snapshot, the error is raised if the number is larger than that of the newest
    snapshot, or if the position has the identity ``OF_NO_SNAPSHOT``, which no snapshot has.
    Otherwise the snapshot counts as expired, which is no error.

    If ``value`` is an int, or a position without an identity, nothing is checked.
    """
    if not isinstance(value, Position) or value.identity is None:
        return
    if found is not None:
        is_same = found.identity == value.identity
    else:
        newest = latest_snapshot_id(handle.storage, handle.layout) or 0
        is_same = value.identity != OF_NO_SNAPSHOT and value.number <= newest
    if not is_same:
        raise NotFoundError(
            f"position {value} of {handle.uri} belongs to a history that a rollback removed, or to "
            "an earlier table of this name. Choose another snapshot: snapshots() lists those that "
            "are left. To follow the changes of the table, read all rows with scan(), and then the "
            "changes after the snapshot of that scan"
        )


def require_number(what: str, value: object) -> None:
    """Raise InvalidRequestError, whose text begins with ``what``, unless ``value`` is an int."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidRequestError(f"{what}, got {value!r}")
