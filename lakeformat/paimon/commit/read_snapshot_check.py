# SPDX-License-Identifier: Apache-2.0
"""Checks that the rows from which a commit was computed have not changed since."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakeformat.errors import CommitConflictError, InvalidRequestError
from lakeformat.paimon.commit.conflict_text import Committer, described, named
from lakeformat.paimon.commit.deltas import delta_of, newest_first
from lakeformat.paimon.commit.rolled_back import is_replaced
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.index_manifest import IndexManifestEntry, read_index_manifest
from lakeformat.paimon.metadata.snapshot import CommitKind, Snapshot
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot_if_present
from lakeformat.tables.commit_id import CommitId

__all__ = ["ReadSnapshotCheck", "Touches"]

Touches = Callable[[pa.Array], NDArray[np.bool_]]
"""Returns a mask of partitions (framed binary rows): True for a partition that the commit changes.
"""


@dataclass(slots=True)
class ReadSnapshotCheck:
    """Checks that no other commit changed the partitions of this commit since ``snapshot`` was
    read.

    An overwrite deletes all rows of its partitions, so rows added after the read would be lost.
    An earlier attempt of the same commit is no conflict. If the table option
    ``commit.strict-mode.last-safe-snapshot`` names ``snapshot``, all commits of the same user are
    allowed.
    """

    who: Committer
    commit: CommitId
    snapshot: int
    identity: str | None = None
    """The identity of ``snapshot``; None if the caller does not know it.

    It shows if another snapshot got the number of ``snapshot`` after a rollback.
    """
    was_read: bool = True
    """True if the caller read the snapshot. False if ``commit.strict-mode.last-safe-snapshot``
    names it.
    """
    _checked: int = field(init=False)

    def __post_init__(self) -> None:
        if self.snapshot < 0:
            raise InvalidRequestError(
                f"read_snapshot is {self.snapshot}, but must be 0 (the empty table) or more"
            )
        self._checked = self.snapshot

    def check(self, head: Snapshot | None, touches: Touches) -> None:
        """Raise CommitConflictError if another commit up to ``head`` changed the same partitions.

        ``touches`` returns a mask of the partitions that this commit changes. Some commits ignore
        appended rows: see ``_conflicts_with_appends``. Also raise the error if a conflict cannot be
        excluded, because a later snapshot has expired or ``snapshot`` was rolled back. Later
        attempts check only the snapshots that are new.
        """
        newest = head.id if head else 0
        if newest < self.snapshot and self.was_read:
            now = f"its newest is {newest}" if newest else "now it has no snapshot"
            raise CommitConflictError(
                f"{self._handle.uri} was read at snapshot {self.snapshot}, but {now}: the table "
                "was rolled back, or the snapshot belongs to another table. Nothing was "
                "published; read again and repeat the work"
            )
        if head is not None:
            self._require_same(head)
            for found in newest_first(self._handle, head, self._checked):
                if found is None:
                    raise self._expired()
                if not self._is_own(found):
                    self._check_one(found, touches)
        self._checked = max(self._checked, newest)

    def _require_same(self, head: Snapshot) -> None:
        """Raise CommitConflictError if the number of ``snapshot`` now belongs to another snapshot.

        An expired snapshot is accepted.
        """
        if is_replaced(self._handle, head, self.snapshot, self.identity):
            raise CommitConflictError(
                f"{self._who}, but a rollback has replaced that snapshot. Nothing was published; "
                "read again and repeat the work"
            )

    def _is_own(self, found: Snapshot) -> bool:
        if found.commit_user != self.commit.user:
            return False
        return not self.was_read or found.commit_identifier == self.commit.identifier

    def _check_one(self, found: Snapshot, touches: Touches) -> None:
        if found.commit_kind is CommitKind.ANALYZE:
            return
        is_append = found.commit_kind is CommitKind.APPEND
        if is_append and not self._conflicts_with_appends:
            return
        files = delta_of(self._handle, found)
        if is_append and self.who.kind is CommitKind.OVERWRITE:
            # An overwrite does not delete postponed rows.
            files = files.filter(files.bucket.numbers >= 0)
        touched = files.filter(touches(files.partition.to_arrow()))
        if len(touched) or self._index_touches(found, touches):
            what = described(self._handle, touched) if len(touched) else "their index files"
            raise CommitConflictError(
                f"{self._who}, but {named(found)} has changed the same partitions since: {what}. "
                f"Nothing was published; {self._advice}"
            )

    @property
    def _conflicts_with_appends(self) -> bool:
        """True if rows that another commit appended are a conflict.

        They conflict with an overwrite, and with an append whose caller read the snapshot; never
        with a compaction.
        """
        if self.who.kind is CommitKind.COMPACT:
            return False
        return self.who.kind is CommitKind.OVERWRITE or self.was_read

    @property
    def _handle(self) -> TableHandle:
        return self.who.handle

    @property
    def _who(self) -> str:
        who = f"this {self.who.kind} of user {self.commit.user!r}"
        if self.was_read:
            return f"{who} was computed from snapshot {self.snapshot} of {self._handle.uri}"
        option = "'commit.strict-mode.last-safe-snapshot'"
        last_safe = f"snapshot {self.snapshot} as the last safe one"
        return f"{who} relies on {last_safe} ({option} of {self._handle.uri})"

    @property
    def _advice(self) -> str:
        if self.was_read:
            return "read again and repeat the work"
        return "check these changes, then set the option to the number of a newer snapshot"

    def _expired(self) -> CommitConflictError:
        advice = (
            f"{self._advice}. Keep snapshots longer than the job takes ('snapshot.time-retained')"
        )
        if not self.was_read:
            advice = "set the option to the number of a snapshot that has not expired"
        return CommitConflictError(
            f"{self._who}, and an expired later snapshot may have changed the same rows. "
            f"Nothing was published; {advice}"
        )

    def _index_touches(self, found: Snapshot, touches: Touches) -> bool:
        """Return True if ``found`` changed index files of the partitions that the commit
        changes.
        """
        storage, layout = self._handle.storage, self._handle.layout
        before = read_snapshot_if_present(storage, layout, found.id - 1)
        earlier = before.index_manifest if before else None
        if found.index_manifest == earlier:
            return False
        changed = set(self._index_files(found.index_manifest))
        changed ^= set(self._index_files(earlier))
        rows = pa.array([entry.partition for entry in changed], pa.large_binary())
        return bool(touches(rows).any())

    def _index_files(self, name: str | None) -> list[IndexManifestEntry]:
        storage, layout = self._handle.storage, self._handle.layout
        return [] if name is None else read_index_manifest(storage, layout, name)
