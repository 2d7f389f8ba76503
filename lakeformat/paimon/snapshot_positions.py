# SPDX-License-Identifier: Apache-2.0
"""Positions of a Paimon table: each is a snapshot number of one branch."""

from __future__ import annotations

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.handle import TableHandle
from lakeformat.tables.position import Position

__all__ = ["position_at", "require_number", "snapshot_number"]


def position_at(handle: TableHandle, number: int, identity: str | None = None) -> Position:
    """Return the position after snapshot ``number``; 0 is the position before the first snapshot.

    ``identity`` is the identity of this snapshot. With it, a reader of the position notices that a
    rollback has given the number to another snapshot. With ``identity=None``, any snapshot of this
    number is accepted.
    """
    return Position((number,), handle.layout.branch, identity, handle.uri)


def snapshot_number(handle: TableHandle, what: str, value: object) -> int:
    """Return the snapshot number of a Position, or ``value`` itself if it is an int.

    Raise InvalidRequestError for any other type, and for a position of another branch or table. The
    error for a wrong type begins with ``what``, such as "snapshot must be a number".
    """
    if not isinstance(value, Position):
        require_number(what, value)
        assert isinstance(value, int)
        return value
    beginning = position_at(handle, 0)
    # this call refuses the number of another history
    return value.number if value >= beginning else 0


def require_number(what: str, value: object) -> None:
    """Raise InvalidRequestError, whose text begins with ``what``, unless ``value`` is an int."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidRequestError(f"{what}, got {value!r}")
