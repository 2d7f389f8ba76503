# SPDX-License-Identifier: Apache-2.0
"""Reports an earlier attempt of a commit, after comparing row counts and files of both attempts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NoReturn

import pyarrow.compute as pc

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.commit.commit_report import CommitReport, replayed
from lakeformat.paimon.commit.conflict_text import described
from lakeformat.paimon.commit.deltas import delta_of
from lakeformat.paimon.commit.snapshot_delta import SnapshotDelta
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.manifest import ManifestColumns
from lakeformat.paimon.metadata.snapshot import READ_SNAPSHOT, CommitKind, Snapshot
from lakeformat.tables.report import Report
from lakeformat.types.count_text import counted

__all__ = ["EarlierCommitReport"]


@dataclass(frozen=True, slots=True)
class EarlierCommitReport(Report):
    """Returns the report on an earlier attempt, given its snapshot.

    Raises InvalidRequestError if the attempts have different numbers of rows, or if only some of
    the given files belong to the earlier attempt. Files that are all new are allowed: a repeated
    job writes its rows to new files.

    The numbers of rows are not compared for a compaction. They are also not compared if all given
    files are new and the earlier attempt used ``conflict="transaction-order"``, because that
    attempt may have left out keys. With ``commit.discard-duplicate-files``, the given files and
    their numbers of rows are not checked.
    """

    handle: TableHandle
    given: SnapshotDelta
    from_elsewhere: bool = False
    """True if the files belong to messages of other processes.

    If the earlier attempt published none of these files, the report has their number, and the
    advice to discard the messages.
    """
    rows: int | None = None
    """The number of rows to write, if no file is written yet; None if unknown."""

    def __call__(self, found: Snapshot) -> CommitReport:
        delta = delta_of(self.handle, found)
        report = replayed(self.handle, found, delta)
        before, now = delta.filter(~delta.is_delete), self.given.added
        if not len(now):
            if self.rows:
                self._require_rows(found, before, self.rows)
            return report
        leaves_out = self.handle.options.commit_discard_duplicate_files
        there = pc.is_in(now.file_name.to_arrow(), before.file_name.to_arrow())
        known = there.to_numpy(zero_copy_only=False)
        leaves_out_keys = READ_SNAPSHOT in (found.properties or {}) and not known.any()
        if found.commit_kind is not CommitKind.COMPACT and not (leaves_out or leaves_out_keys):
            self._require_rows(found, before, int(now.row_count.numbers.sum()))
        if known.any() and not known.all() and not leaves_out:
            self._refuse(found, f"without {described(self.handle, now.filter(~known))}")
        left = 0 if known.any() or not self.from_elsewhere else len(now)
        return _with_unpublished(report, left) if left else report

    def _require_rows(self, found: Snapshot, before: ManifestColumns, rows: int) -> None:
        published = int(before.row_count.numbers.sum())
        if rows != published:
            self._refuse(found, f"with {counted(published, 'row')}, but this attempt has {rows}")

    def _refuse(self, found: Snapshot, how: str) -> NoReturn:
        raise InvalidRequestError(
            f"CommitId({found.commit_user!r}, {found.commit_identifier}) was published before, as "
            f"snapshot {found.id} of {self.handle.uri} {how}: a CommitId identifies one commit. "
            "Nothing was published now; use another CommitId for other rows"
        )


def _with_unpublished(report: CommitReport, files: int) -> CommitReport:
    are = "1 file of these messages is" if files == 1 else f"{files} files of these messages are"
    reason = f"already published as snapshot {report.snapshot_id}. {are} not part of that snapshot"
    reason += ": discard the messages with Table.abort"
    return replace(report, unpublished_files=files, reason=reason)
