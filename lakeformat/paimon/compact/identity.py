# SPDX-License-Identifier: Apache-2.0
"""The identity of a compaction, and all snapshots that its attempts have published.

A compaction publishes as many snapshots as it needs. Their commit user is made of the user and
identifier of the given ``CommitId``, and their identifiers count from 0. So they never have the
identity of another commit of the given user.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from lakeformat.errors import LakeError
from lakeformat.paimon.commit.deltas import delta_of, newest_first
from lakeformat.paimon.commit.identity import EarlierCommits
from lakeformat.paimon.compact.unit import CompactUnit
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.snapshot import CommitKind, Snapshot
from lakeformat.paimon.metadata.snapshot_directory import latest_snapshot
from lakeformat.tables.commit_id import CLOCK_SKEW_MILLIS, CommitId, require_commit_id

__all__ = ["CompactIdentity", "find_earlier_tries"]

_File = tuple[bytes | None, int, str | None]


@dataclass(slots=True)
class CompactIdentity:
    """Gives each snapshot of one compaction an identifier, above those of earlier attempts."""

    handle: TableHandle
    commit: CommitId
    earlier: tuple[int, ...] = ()
    """The ids of the snapshots that other attempts have published, oldest first."""
    _made: frozenset[_File] = frozenset()
    _looked: Snapshot | None = None
    """The newest snapshot at the last search; None for an empty table."""
    _next: int = 0
    _own: set[int | None] = field(default_factory=set)

    def next_commit(self) -> EarlierCommits:
        """Return an object whose attribute ``commit`` is the identity of the next commit.

        Its method ``find`` finds a snapshot that another attempt published with this identity. It
        reads only the snapshots published since the last call of ``look``. Call ``published`` after
        the commit.
        """
        found = EarlierCommits(
            self.handle, CommitId(self.user, self._next), (CommitKind.COMPACT,), is_new=True
        )
        found.find(self._looked)
        return found

    def published(self, snapshot_id: int | None) -> None:
        """Record the snapshot that a commit of this attempt published.

        ``snapshot_id`` is None if the commit had no changes and published no snapshot. The
        next commit gets the next identifier. No request is sent to the storage, so this cannot
        fail after the publication.
        """
        self._own.add(snapshot_id)
        self._next += 1

    def look(self) -> None:
        """Find the snapshots that other attempts of this compaction published since the last
        search.
        """
        head = latest_snapshot(self.handle.storage, self.handle.layout)
        down_to = self._looked.id if self._looked else 0
        new = newest_first(self.handle, head, down_to) if head else ()
        mine = [each for each in new if each is not None and each.commit_user == self.user]
        for found in reversed(mine):
            self._next = max(self._next, found.commit_identifier + 1)
            if found.id not in self._own:
                self.earlier += (found.id,)
                self._made |= frozenset(_added(self.handle, found))
        self._looked = head

    def made(self, unit: CompactUnit) -> bool:
        """Return True if an earlier attempt has published the work of a unit.

        For a primary-key table or a unit that is sorted, it is enough that an earlier attempt
        wrote one file of ``unit.files``: the other files may have been added since. For other
        units, earlier attempts must have written all files of ``unit.files``.
        """
        there = [
            (entry.partition, entry.bucket, entry.file.file_name) in self._made
            for entry in unit.files
        ]
        is_whole = bool(self.handle.schema.primary_keys) or unit.order is not None
        return any(there) if is_whole else all(there)

    @property
    def user(self) -> str:
        """The commit user of the compaction's snapshots."""
        return f"{self.commit.user}.compaction-{self.commit.identifier}"


def find_earlier_tries(handle: TableHandle, commit: CommitId) -> CompactIdentity:
    """Return the identity of a compaction, with the snapshots of its earlier attempts.

    The work of an expired snapshot may be done again, which changes no row.
    """
    require_commit_id(commit)
    head = latest_snapshot(handle.storage, handle.layout)
    found = CompactIdentity(handle, commit, _looked=head)
    since = commit.first_try_millis
    mine: list[Snapshot] = []
    for snapshot in newest_first(handle, head, 0) if head else ():
        if snapshot is None or (
            since is not None and snapshot.time_millis < since - CLOCK_SKEW_MILLIS
        ):
            break
        if snapshot.commit_user == found.user:
            mine.append(snapshot)
            if snapshot.commit_identifier == 0:
                break
    mine.reverse()
    found.earlier = tuple(snapshot.id for snapshot in mine)
    found._made = frozenset(file for snapshot in mine for file in _added(handle, snapshot))
    found._next = mine[-1].commit_identifier + 1 if mine else 0
    return found


def _added(handle: TableHandle, snapshot: Snapshot) -> list[_File]:
    """Return partition, bucket and name of the files that a snapshot added.

    The list is empty if its metadata files have expired.
    """
    try:
        delta = delta_of(handle, snapshot)
    except LakeError:
        return []
    new = delta.filter(~delta.is_delete)
    return [(each.partition, each.bucket, each.file.file_name) for each in new.entries()]
