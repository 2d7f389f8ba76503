"""What an earlier try published, compared with what comes now: one identity, one commit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NoReturn

import pyarrow.compute as pc

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.commit.changes import Changes
from lakeformat.paimon.commit.commit_report import CommitReport, replayed
from lakeformat.paimon.commit.conflict_text import described
from lakeformat.paimon.commit.deltas import delta_of
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.manifest import ManifestColumns
from lakeformat.paimon.metadata.snapshot import CommitKind, Snapshot

__all__ = ["EarlierCommitReport"]


@dataclass(frozen=True, slots=True)
class EarlierCommitReport:
    """Reports the earlier try, and refuses what cannot be the same commit.

    A job that runs again writes its rows to files of other names: that is the same commit, and
    its new files are counted in the report. Another number of rows, or files of which that
    snapshot has some only, are another commit.
    """

    handle: TableHandle
    given: Changes
    from_elsewhere: bool = False
    """Whether the files stay if they are not published."""
    rows: int | None = None
    """How many rows there are where no file is written yet; None if nobody can tell."""

    def __call__(self, found: Snapshot) -> CommitReport:
        """The report on ``found``, the snapshot of the earlier try."""
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
        if found.commit_kind is not CommitKind.COMPACT and not leaves_out:
            self._require_rows(found, before, int(now.row_count.numbers.sum()))
        if known.any() and not known.all() and not leaves_out:
            self._refuse(found, f"without {described(self.handle, now.filter(~known))}")
        left = 0 if known.any() or not self.from_elsewhere else len(now)
        return _with_unpublished(report, left) if left else report

    def _require_rows(self, found: Snapshot, before: ManifestColumns, rows: int) -> None:
        published = int(before.row_count.numbers.sum())
        if rows != published:
            self._refuse(found, f"with {published} rows, and now it comes with {rows}")

    def _refuse(self, found: Snapshot, how: str) -> NoReturn:
        raise InvalidRequestError(
            f"CommitId({found.commit_user!r}, {found.commit_identifier}) was published before, as "
            f"snapshot {found.id} of {self.handle.uri} {how}: one identity names one commit. "
            "Nothing was published now; give other rows another identity"
        )


def _with_unpublished(report: CommitReport, files: int) -> CommitReport:
    are = "1 file of these messages is" if files == 1 else f"{files} files of these messages are"
    reason = (
        f"{report.reason}. {are} not among those it published: Table.abort removes what was "
        "written again"
    )
    return replace(report, unpublished_files=files, reason=reason)
