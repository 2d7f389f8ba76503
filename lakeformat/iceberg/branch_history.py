# SPDX-License-Identifier: Apache-2.0
"""The history of a branch: its snapshots from the oldest to the newest, and their positions.

A position is the sequence number and the id of a snapshot, and stands for all commits up to that
snapshot. Sequence numbers grow from each snapshot to its child. Snapshots of format version 1 have
no sequence numbers and thus no positions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lakeformat.errors import NotFoundError, UnsupportedError
from lakeformat.iceberg.commit.identity import COMMIT_USER
from lakeformat.iceberg.metadata.snapshot import Snapshot
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.tables.position import MAIN_BRANCH, AnyPosition, Position
from lakeformat.tables.since import Since
from lakeformat.types.closest import closest

__all__ = ["BranchHistory", "BranchSnapshot", "history_of", "no_snapshot"]

_KINDS = {"append": "APPEND", "replace": "COMPACT", "overwrite": "OVERWRITE", "delete": "OVERWRITE"}
_COUNTS = {
    "added-records": 1,
    "deleted-records": -1,
    "added-position-deletes": -1,
    "removed-position-deletes": 1,
}


@dataclass(frozen=True, slots=True)
class BranchSnapshot:
    """A snapshot of a branch, with the attributes that snapshots of all table formats have."""

    snapshot: Snapshot
    branch: str
    table: str

    @property
    def snapshot_id(self) -> int:
        """The id of the snapshot; ids do not show the order of snapshots."""
        return self.snapshot.snapshot_id

    @property
    def id(self) -> int:
        """The id of the snapshot."""
        return self.snapshot.snapshot_id

    @property
    def identity(self) -> str:
        """The id as a str; no other snapshot of the table has it."""
        return str(self.snapshot.snapshot_id)

    @property
    def commit_kind(self) -> str:
        """The kind of the commit in Paimon's words: ``APPEND``, ``COMPACT`` or ``OVERWRITE``.

        A delete is an ``OVERWRITE``, and so is a snapshot without a known operation.
        """
        return _KINDS.get(self.operation or "", "OVERWRITE")

    @property
    def time_millis(self) -> int:
        """The time of the commit, in epoch milliseconds."""
        return self.snapshot.timestamp_ms

    @property
    def schema_id(self) -> int | None:
        """The id of the schema that the commit used; None if the snapshot does not store it."""
        return self.snapshot.schema_id

    @property
    def delta_record_count(self) -> int:
        """The number of added rows minus the number of deleted rows, from the summary of the
        snapshot.

        Rows that are deleted by equality deletes are not counted. 0 if the writer stored no counts.
        """
        return sum(sign * self._noted(key) for key, sign in _COUNTS.items())

    @property
    def changelog_record_count(self) -> None:
        """None: an Iceberg table has no changelog files."""

    @property
    def watermark(self) -> None:
        """None: Iceberg snapshots have no watermarks."""

    @property
    def commit_user(self) -> str | None:
        """The user in the identity of the commit; None if the commit has no identity."""
        return self.snapshot.summary.get(COMMIT_USER)

    def _noted(self, key: str) -> int:
        text = self.snapshot.summary.get(key, "")
        return int(text) if text.isascii() and text.isdecimal() else 0

    @property
    def operation(self) -> str | None:
        """The operation in Iceberg's words: ``append``, ``replace``, ``overwrite`` or ``delete``.
        None if the snapshot does not store it.
        """
        return self.snapshot.operation

    @property
    def timestamp_ms(self) -> int:
        """The time of the commit, in epoch milliseconds."""
        return self.snapshot.timestamp_ms

    @property
    def summary(self) -> Mapping[str, str]:
        """The summary of the snapshot: counts and notes of the writer."""
        return self.snapshot.summary

    @property
    def position(self) -> Position:
        """The position right after this commit.

        Reading it raises ``UnsupportedError`` for a snapshot of format version 1, which has no
        sequence number.
        """
        number = self.snapshot.sequence_number
        if not number:
            raise UnsupportedError(
                f"snapshot {self.snapshot_id} of {self.table} has no position, because tables of "
                "format version 1 do not number their snapshots. Name snapshots by their ids, or "
                "upgrade the table to version 2 in Spark: snapshots after that have positions"
            )
        return Position((number,), self.branch, str(self.snapshot_id), self.table)


@dataclass(frozen=True, slots=True)
class BranchHistory:
    """The snapshots of a branch that have not expired, oldest first."""

    snapshots: Sequence[BranchSnapshot]
    beginning: Position
    """The position before the first commit of the branch."""

    @property
    def branch(self) -> str:
        """The name of the branch."""
        assert self.beginning.branch is not None
        return self.beginning.branch

    @property
    def oldest(self) -> Position:
        """The position before the first of ``snapshots``; the beginning if there are none.

        Reading it raises ``UnsupportedError`` if that snapshot has no sequence number.
        """
        return self.snapshots[0].position.before if self.snapshots else self.beginning

    @property
    def head(self) -> Position:
        """The newest position; the beginning if the branch has no snapshots.

        Reading it raises ``UnsupportedError`` if the newest snapshot has no sequence number.
        """
        return self.snapshots[-1].position if self.snapshots else self.beginning

    def number(self, position: AnyPosition) -> int:
        """Return the sequence number of a position; 0 for the beginning.

        Raise ``InvalidRequestError`` if the position belongs to another branch or table.
        """
        given = Position.parse(position)
        return given.number if given >= self.beginning else 0

    def between(self, after: AnyPosition, upto: AnyPosition | None) -> list[BranchSnapshot]:
        """Return the snapshots after ``after``, up to and including ``upto``, oldest first.

        ``upto=None`` means up to the newest snapshot. Raise ``UnsupportedError`` if ``after`` is
        the beginning, and the branch has snapshots without sequence numbers.
        """
        first = self.number(after)
        return self._upto(upto, [each for each in self.snapshots if _is_after(each, first)])

    def numbered(self, upto: AnyPosition | None) -> list[BranchSnapshot]:
        """Return the snapshots with sequence numbers, up to and including ``upto``, oldest first.

        Snapshots of format version 1 have no sequence numbers and are left out. ``upto=None`` means
        up to the newest snapshot.
        """
        return self._upto(upto, [each for each in self.snapshots if each.snapshot.sequence_number])

    def since(self, after: AnyPosition, upto: AnyPosition | None) -> Since[BranchSnapshot]:
        """Return the snapshots after ``after``, up to and including ``upto``, oldest first.

        The result also shows if snapshots after ``after`` have expired (``missed``), or if a
        rollback removed the snapshot of ``after`` (``rewound``).
        """
        given = Position.parse(after)
        found = tuple(self.between(after, upto))
        return Since(found, self._missed(given), self._rewound(given))

    def _upto(self, upto: AnyPosition | None, found: list[BranchSnapshot]) -> list[BranchSnapshot]:
        if upto is None:
            return found
        last = self.number(upto)
        return [each for each in found if each.position.number <= last]

    def _missed(self, after: Position) -> bool:
        """Return True if snapshots after the position may have expired.

        If the position has the id of the oldest snapshot's parent, no snapshot is missing.
        Sequence numbers alone do not show this, because a rollback leaves gaps in them.
        """
        if not self.snapshots:
            return False
        oldest = self.snapshots[0].snapshot
        if oldest.parent_id is None or after.number >= oldest.sequence_number:
            return False
        if after.identity is None:
            return after.number < oldest.sequence_number - 1
        return after.identity != str(oldest.parent_id)

    def _rewound(self, after: Position) -> bool:
        """Return True if a rollback has removed the snapshot of the position from the history.

        If snapshots have expired, return False for a position before the oldest snapshot: the
        snapshot of that position may have expired, too.
        """
        numbers = [each.snapshot.sequence_number for each in self.snapshots]
        if after.number > max(numbers, default=0):
            return True
        if after.identity is None or not numbers:
            return False
        if after.number < numbers[0] and self.snapshots[0].snapshot.parent_id is not None:
            return False
        return all(str(each.snapshot_id) != after.identity for each in self.snapshots)


def no_snapshot(table: str, snapshot_id: object) -> NotFoundError:
    """Return the error for a snapshot id that the table does not have."""
    return NotFoundError(
        f"{table} has no snapshot {snapshot_id}: it may have expired; snapshots() lists those that "
        "are left"
    )


def history_of(metadata: TableMetadata, branch: str, table: str) -> BranchHistory:
    """Return the history of ``branch``.

    ``main`` always exists; without snapshots its history is empty. Raise ``NotFoundError`` if any
    other branch does not exist, or if ``branch`` is the name of a tag.
    """
    found = metadata.references.get(branch)
    if found is None and branch != MAIN_BRANCH:
        names = [each.name for each in metadata.references.values() if each.type == "branch"]
        known = f"its branches are {', '.join(names)}" if names else "it has no branches yet"
        raise NotFoundError(f"{table} has no branch {branch!r}; {known}{closest(branch, names)}")
    if found is not None and found.type != "branch":
        raise NotFoundError(
            f"{branch!r} is a tag of {table}, not a branch: open the table without a branch, "
            f"and read it with tag={branch!r}"
        )
    newest_first = metadata.ancestry(None if found is None else found.snapshot_id)
    snapshots = [BranchSnapshot(each, branch, table) for each in newest_first]
    return BranchHistory(snapshots[::-1], Position((0,), branch, None, table))


def _is_after(snapshot: BranchSnapshot, number: int) -> bool:
    """Return True if the sequence number of a snapshot is higher than ``number``.

    A snapshot of format version 1 has no sequence number. For it, return False if ``number`` is
    positive, and raise ``UnsupportedError`` if ``number`` is 0.
    """
    if number > 0 and not snapshot.snapshot.sequence_number:
        return False
    return snapshot.position.number > number
