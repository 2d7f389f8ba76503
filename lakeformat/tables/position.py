# SPDX-License-Identifier: Apache-2.0
"""Positions in the history of a table. A position states how far a reader has read the history."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import total_ordering
from typing import Any, TypeAlias
from urllib.parse import quote, unquote

from lakeformat.errors import InvalidRequestError

__all__ = ["MAIN_BRANCH", "OF_NO_SNAPSHOT", "AnyPosition", "Position"]

MAIN_BRANCH = "main"
OF_NO_SNAPSHOT = "0"
"""An identity that no snapshot has. It is a number, because Iceberg reads identities as numbers."""

_TEXT = re.compile(r"(?:([^/@]+)/)?([0-9]+(?:\.[0-9]+)*)(?:@([^/@]+))?", re.ASCII)
_KEPT_AS_THEY_ARE = ":-"


@total_ordering
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Position:
    """A point in the history of one branch of a table: a reader at this point has read all commits
    before it.

    Positions of one branch have an order. Comparing positions of two branches or tables with ``<``
    or ``>`` raises ``InvalidRequestError``. A snapshot number compares like the position right
    after that snapshot.

    Only the format of the table interprets the numbers of a position. Other code compares
    positions, stores their text (``str``), parses that text again (``parse``), and asks the table
    for everything else.
    """

    numbers: tuple[int, ...]
    """The numbers by which positions are compared; only the table's format interprets them."""
    branch: str | None = None
    """The name of the branch. None fits any branch; earlier versions stored such positions."""
    identity: str | None = None
    """The identity of the snapshot at this position; comparisons ignore it.

    After a rollback another snapshot can have the same numbers. The identity shows the difference.
    """
    table: str | None = None
    """The location of the table, if known. The text of a position leaves it out, so that a stored
    position remains valid after a rename of the table.
    """

    @classmethod
    def parse(cls, kept: object) -> Position:
        """Return the position that a text, a snapshot number, or a dict of an earlier version of
        this library describes.

        A snapshot number is an int or a str. The dict has the key ``position`` or ``snapshot_id``,
        or a key such as ``next_snapshot``, which names the first snapshot after the position. A
        ``Position`` is returned unchanged; any other value raises ``InvalidRequestError``.
        """
        if isinstance(kept, Position):
            return kept
        if isinstance(kept, Mapping):
            return _from_members(kept)
        text = str(kept) if type(kept) is int else kept
        found = _TEXT.fullmatch(text) if isinstance(text, str) else None
        if found is None:
            raise _unreadable(kept)
        branch, numbers, identity = found.groups()
        return cls(
            tuple(map(int, numbers.split("."))),
            None if branch is None else unquote(branch),
            None if identity is None else unquote(identity),
        )

    def __str__(self) -> str:
        branch = "" if self.branch is None else f"{_quoted(self.branch)}/"
        identity = "" if self.identity is None else f"@{_quoted(self.identity)}"
        return f"{branch}{'.'.join(map(str, self.numbers))}{identity}"

    def __repr__(self) -> str:
        return f"Position({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        if type(other) is int:
            other = Position((other,))
        if not isinstance(other, Position):
            return NotImplemented
        return self._is_comparable(other) and self.numbers == other.numbers

    def __lt__(self, other: Position | int) -> bool:
        if type(other) is int:
            other = Position((other,))
        if not isinstance(other, Position):
            return NotImplemented
        if not self._is_comparable(other):
            raise InvalidRequestError(
                f"position {self._with_its_place()} and position {other._with_its_place()} are of "
                "different histories and have no order: compare positions of one branch of one "
                "table"
            )
        return self.numbers < other.numbers

    def __hash__(self) -> int:
        return hash(self.numbers[0] if len(self.numbers) == 1 else self.numbers)

    @property
    def before(self) -> Position:
        """This position with its last number lowered by one; at 0 the number is kept.

        In a Paimon or Iceberg table the result is the position right before the newest commit that
        this position includes. In a Mixed table the result is wrong if that commit was made in the
        change store. ``Table.position_before`` is right for every format.
        """
        *first, last = self.numbers
        return replace(self, numbers=(*first, max(last - 1, 0)), identity=None)

    @property
    def number(self) -> int:
        """The number of the newest snapshot that this position includes.

        ``InvalidRequestError`` is raised if the position has several numbers, as in a Mixed table.
        """
        if len(self.numbers) > 1:
            raise InvalidRequestError(
                f"position {self} has several numbers, so it is not a snapshot number: store "
                "str(position)"
            )
        return self.numbers[0]

    def is_exactly(self, other: Position) -> bool:
        """Return True if both positions are equal and have the same ``identity``.

        After a rollback, equal positions may belong to two snapshots.
        """
        return self == other and self.identity == other.identity

    def _is_comparable(self, other: Position) -> bool:
        return (
            len(self.numbers) == len(other.numbers)
            and (self.branch == other.branch or None in (self.branch, other.branch))
            and (self.table == other.table or None in (self.table, other.table))
        )

    def _with_its_place(self) -> str:
        table = "" if self.table is None else f" of {self.table}"
        branch = "no branch" if self.branch is None else f"branch {self.branch!r}"
        return f"{'.'.join(map(str, self.numbers))} ({branch}{table})"


AnyPosition: TypeAlias = Position | int
"""A position, or the number of a snapshot."""


def _quoted(text: str) -> str:
    return quote(text, safe=_KEPT_AS_THEY_ARE)


def _from_members(kept: Mapping[Any, Any]) -> Position:
    """Return the position in a dict that an earlier version of this library stored.

    Raise ``InvalidRequestError`` if the dict has no position.
    """
    if kept.get("position") is not None:
        return Position.parse(kept["position"])
    for key in ("next_snapshot", "nextSnapshot", "next_snapshot_id"):
        following = kept.get(key)
        if type(following) is int and following > 0:
            return _identified(Position((following - 1,)), kept.get("after"))
    number = kept.get("snapshot_id")
    if type(number) is not int or number < 0:
        raise _unreadable(kept)
    return _identified(Position((number,)), kept.get("identity"))


def _identified(position: Position, identity: object) -> Position:
    return replace(position, identity=identity) if isinstance(identity, str) else position


def _unreadable(kept: object) -> InvalidRequestError:
    return InvalidRequestError(
        f"{kept!r} is not a position: give a snapshot number, or the text of a position as "
        "str(table.position()) returns it"
    )
