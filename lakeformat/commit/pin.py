"""Keeps a commit to the rows it was computed from: whoever changed them meanwhile is named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakeformat.commit.deltas import delta_of, newest_first
from lakeformat.errors import CommitConflictError, InvalidRequestError
from lakeformat.handle import TableHandle
from lakeformat.metadata.index_manifest import IndexManifestEntry, read_index_manifest
from lakeformat.metadata.snapshot import CommitKind, Snapshot
from lakeformat.metadata.snapshot_directory import read_snapshot_if_present

__all__ = ["Pin", "Touches"]

Touches = Callable[[pa.Array], NDArray[np.bool_]]
"""Which partitions, given as framed rows, a commit speaks of."""


@dataclass(slots=True)
class Pin:
    """A commit of ``kind`` that stands on ``snapshot``, the number of the one that was read.

    An overwrite deletes what it finds; rows that came in after the read would vanish without
    being in its result. Another commit in between is let through only if it left the same
    partitions alone. Paimon calls this strict mode.
    """

    handle: TableHandle
    kind: CommitKind
    user: str
    snapshot: int
    was_read: bool = True
    """Whether the caller read that snapshot; else an option of the table calls it safe."""
    _checked: int = field(init=False)

    def __post_init__(self) -> None:
        if self.snapshot < 0:
            raise InvalidRequestError(
                f"the snapshot that was read has the number {self.snapshot}; 0 is the empty table"
            )
        self._checked = self.snapshot

    def check(self, head: Snapshot | None, touches: Touches) -> None:
        """Raise if somebody else changed the partitions; what was checked is not read again."""
        newest = head.id if head else 0
        if newest < self.snapshot and self.was_read:
            raise InvalidRequestError(
                f"{self.handle.uri} was read at snapshot {self.snapshot}, but its newest is "
                f"{newest}: it was rolled back, or the snapshot is of another table"
            )
        if head is not None:
            for found in newest_first(self.handle, head, self._checked):
                if found is None:
                    raise self._expired()
                if found.commit_user != self.user:
                    self._check_one(found, touches)
        self._checked = max(self._checked, newest)

    def _check_one(self, found: Snapshot, touches: Touches) -> None:
        if found.commit_kind is CommitKind.ANALYZE:
            return
        is_append = found.commit_kind is CommitKind.APPEND
        if is_append and not self._minds_new_rows:
            return
        files = delta_of(self.handle, found)
        if is_append and self.kind is CommitKind.OVERWRITE:
            # Rows that wait for a bucket are not deleted by an overwrite.
            files = files.filter(files.bucket.numbers >= 0)
        if touches(files.partition.to_arrow()).any() or self._index_touches(found, touches):
            raise CommitConflictError(
                f"this {self.kind} of user {self.user!r} {self._because} "
                f"{self.handle.uri}, and snapshot {found.id} ({found.commit_kind} of user "
                f"{found.commit_user!r}) has changed the same partitions since. Nothing was "
                "published; read again and repeat the work"
            )

    @property
    def _minds_new_rows(self) -> bool:
        """A compaction moves rows and minds none; an append only if its caller has looked."""
        if self.kind is CommitKind.COMPACT:
            return False
        return self.kind is CommitKind.OVERWRITE or self.was_read

    @property
    def _because(self) -> str:
        if self.was_read:
            return f"was computed from snapshot {self.snapshot} of"
        return f"is held to snapshot {self.snapshot} by 'commit.strict-mode.last-safe-snapshot' of"

    def _expired(self) -> CommitConflictError:
        return CommitConflictError(
            f"this {self.kind} of user {self.user!r} {self._because} {self.handle.uri}, and a "
            "snapshot after it has expired: nobody can tell whether it changed the same rows. "
            "Nothing was published; read again, and keep snapshots for longer than the job takes"
        )

    def _index_touches(self, found: Snapshot, touches: Touches) -> bool:
        """Whether index files of the partitions came or went."""
        storage, layout = self.handle.storage, self.handle.layout
        before = read_snapshot_if_present(storage, layout, found.id - 1)
        earlier = before.index_manifest if before else None
        if found.index_manifest == earlier:
            return False
        changed = set(self._index_files(found.index_manifest))
        changed ^= set(self._index_files(earlier))
        rows = pa.array([entry.partition for entry in changed], pa.large_binary())
        return bool(touches(rows).any())

    def _index_files(self, name: str | None) -> list[IndexManifestEntry]:
        storage, layout = self.handle.storage, self.handle.layout
        return [] if name is None else read_index_manifest(storage, layout, name)
