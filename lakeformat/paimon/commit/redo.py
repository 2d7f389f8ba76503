# SPDX-License-Identifier: Apache-2.0
"""Replaces the rows of an earlier commit by the rows of a repeated run of the same user.

Each attempt searches for the earlier commit again. So it notices a rollback in between, and an
attempt of the earlier run that published late.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.commit.base_files import BaseFiles
from lakeformat.paimon.commit.conflict_text import named, place
from lakeformat.paimon.commit.deltas import delta_of, newest_first
from lakeformat.paimon.commit.followed_files import FollowedFiles, file_names, files_named
from lakeformat.paimon.commit.snapshot_delta import SnapshotDelta, as_deletes
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.index_manifest import DELETION_VECTORS, read_index_manifest
from lakeformat.paimon.metadata.manifest import ManifestColumns
from lakeformat.paimon.metadata.snapshot import CommitKind, Snapshot
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot_if_present
from lakeformat.tables.commit_id import KEEP_BOTH, CommitId, delete_first

__all__ = ["Redo", "files_taken_out"]


@dataclass(frozen=True, slots=True)
class Redo:
    """Returns the changes of a commit that replaces the rows of an earlier commit.

    ``CommitId.replaces`` names the earlier commit. Raises InvalidRequestError if its rows cannot be
    replaced exactly.
    """

    handle: TableHandle
    commit: CommitId
    new: SnapshotDelta = field(default_factory=SnapshotDelta)

    def __call__(self, head: Snapshot | None) -> SnapshotDelta:
        """Return the changes of the commit on top of the snapshot ``head``.

        ``head=None`` stands for an empty table.
        """
        earlier, later = self._find(head)
        if head is None or earlier is None:
            return self.new  # a rollback has already removed the rows
        if self.handle.schema.primary_keys:
            self._require_new_row_wins(earlier, later)
            return self.new
        gone = as_deletes(self._live_files(earlier, later, head))
        return replace(self.new, table=ManifestColumns.concat([gone, self.new.table]))

    def _find(self, head: Snapshot | None) -> tuple[Snapshot | None, list[Snapshot]]:
        """Return the newest earlier commit of the user, and the snapshots after it, newest first.

        The commit is None if a rollback removed it. Raise InvalidRequestError if a snapshot that
        may be the commit has expired. The search continues below the number ``commit.replaces``:
        after a rollback, a late attempt of the earlier run may have a lower snapshot number.
        """
        later: list[Snapshot] = []
        assert self.commit.replaces is not None
        number = head.id if head else 0
        for snapshot in newest_first(self.handle, head, 0) if head else ():
            if snapshot is None and number >= self.commit.replaces:
                raise self._refused("a snapshot that may have the rows to replace has expired")
            if snapshot is None:
                break
            number = snapshot.id - 1
            if self._is_earlier(snapshot):
                return snapshot, later
            later.append(snapshot)
        return None, later

    def _is_earlier(self, snapshot: Snapshot) -> bool:
        return (
            snapshot.commit_user == self.commit.user
            and snapshot.commit_kind in (CommitKind.APPEND, CommitKind.OVERWRITE)
            and snapshot.commit_identifier < self.commit.identifier
        )

    def _live_files(
        self, earlier: Snapshot, later: Sequence[Snapshot], head: Snapshot
    ) -> ManifestColumns:
        """Return the entries of the live files with the rows of the earlier commit.

        Raise InvalidRequestError if the table tracks row ids, or if a later commit changed these
        rows or mixed them with other rows.
        """
        if self.handle.options.row_tracking_enabled:
            raise self._refused(
                "the table tracks row ids ('row-tracking.enabled'), and the same rows would get "
                "new ids"
            )
        names = file_names(_added(self.handle, earlier))
        live = self._live(names, head)
        if names - file_names(live):
            followed = FollowedFiles(self.handle, names)
            if mixing := followed.through(later):
                raise self._refused(f"{named(mixing)} has rewritten files of snapshot {earlier.id}")
            names = followed.names
            live = self._live(names, head)
        self._require_whole(names, head)
        return live

    def _live(self, names: Set[str], head: Snapshot) -> ManifestColumns:
        wanted = partial(files_named, names=names)
        return BaseFiles(self.handle, wanted, lambda manifest: True).at(head)

    def _require_whole(self, names: Set[str], head: Snapshot) -> None:
        """Raise InvalidRequestError if deletion vectors delete rows of the files ``names``."""
        if head.index_manifest is None:
            return
        storage, layout = self.handle.storage, self.handle.layout
        for entry in read_index_manifest(storage, layout, head.index_manifest):
            for vector in entry.ranges or () if entry.index_type == DELETION_VECTORS else ():
                if vector.data_file_name in names:
                    raise self._refused(
                        f"rows of file {vector.data_file_name} were deleted or updated after that "
                        "snapshot"
                    )

    def _require_new_row_wins(self, earlier: Snapshot, later: Sequence[Snapshot]) -> None:
        """Raise InvalidRequestError unless a merge by key replaces the earlier rows by the new
        rows.

        Without ``sequence.field``, also raise it if later commits wrote to the same buckets: the
        new rows would replace the rows of these commits.
        """
        options, names = self.handle.options, self.handle.schema.column_names
        is_by_column = options.merge_engine == "partial-update"
        if options.merge_engine in ("aggregation", "first-row") or (
            is_by_column and any(map(options.aggregate_function_of, names))
        ):
            raise self._refused(
                f"with 'merge-engine' = {options.merge_engine!r} the new row of a key would be "
                "merged with the earlier row, and not replace it"
            )
        if options.sequence_field:
            return
        own = _added(self.handle, earlier).entries()
        places = {(entry.partition, entry.bucket) for entry in own}
        for snapshot in later:
            if snapshot.commit_kind is CommitKind.COMPACT:
                continue
            for entry in _added(self.handle, snapshot).entries():
                if (entry.partition, entry.bucket) in places:
                    where = f"bucket {entry.bucket} of {place(self.handle, entry.partition)}"
                    raise self._refused(
                        f"{named(snapshot)} has written to {where}, and without the table option "
                        "'sequence.field' this commit would overwrite these newer rows"
                    )

    def _refused(self, why: str) -> InvalidRequestError:
        is_keyed = bool(self.handle.schema.primary_keys)
        both = f"To publish the rows nevertheless, {KEEP_BOTH}"
        advice = both if is_keyed else delete_first(self.handle.argument)
        return InvalidRequestError(
            f"{self.commit} cannot take the place of snapshot {self.commit.replaces} of "
            f"{self.handle.uri}: {why}. Nothing was published. {advice}"
        )


def files_taken_out(handle: TableHandle, replaces: int, head: Snapshot) -> Set[str]:
    """Return the names of the files that a commit deletes to replace the snapshot ``replaces``.

    The set is empty if the table has a primary key, or if that snapshot has expired.
    """
    snapshot = read_snapshot_if_present(handle.storage, handle.layout, replaces)
    if snapshot is None or handle.schema.primary_keys:
        return frozenset()
    followed = FollowedFiles(handle, file_names(_added(handle, snapshot)))
    followed.through([each for each in newest_first(handle, head, replaces) if each is not None])
    return followed.names


def _added(handle: TableHandle, snapshot: Snapshot) -> ManifestColumns:
    delta = delta_of(handle, snapshot)
    return delta.filter(~delta.is_delete)
