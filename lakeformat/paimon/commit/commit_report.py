# SPDX-License-Identifier: Apache-2.0
"""The report of a commit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lakeformat.paimon.commit.snapshot_delta import SnapshotDelta
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.manifest import ManifestColumns
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.tables.write_report import WriteReport

__all__ = ["CommitReport", "already_published", "committed", "nothing_to_commit", "replayed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitReport(WriteReport):
    """The result of one commit of files."""

    compact_snapshot_id: int | None = None
    """The id of the compaction's snapshot, if the call published rows and a compaction; else None.
    """
    compact_refused: str | None = None
    """The reason why the call did not publish its compaction; None in any other case.

    The files of a compaction that was not published are deleted.
    """


def committed(
    handle: TableHandle, snapshot: Snapshot, changes: SnapshotDelta, attempts: int
) -> CommitReport:
    """Return the report on a snapshot that this call published in its attempt number
    ``attempts``.
    """
    added = changes.added
    return CommitReport(
        table=handle.uri,
        kind=str(snapshot.commit_kind),
        snapshot_id=snapshot.id,
        rows=int(added.row_count.numbers.sum()),
        files=len(added),
        bytes=int(added.file_size.numbers.sum()),
        deleted_files=len(changes.table) - len(added),
        attempts=attempts,
        replayed=False,
        reason=f"published as snapshot {snapshot.id}",
    )


def replayed(handle: TableHandle, snapshot: Snapshot, delta: ManifestColumns) -> CommitReport:
    """Return the report on a snapshot that an earlier attempt published.

    ``delta`` are the manifest entries of the snapshot's changes.
    """
    report = committed(handle, snapshot, SnapshotDelta(table=delta), 0)
    return replace(
        report,
        replayed=True,
        reason=already_published(snapshot.id),
    )


def already_published(number: int) -> str:
    """Return the text of ``reason`` in a report on a commit that an earlier attempt published."""
    return f"already published as snapshot {number}; no action needed"


def nothing_to_commit(handle: TableHandle, ignored: Sequence[str] = ()) -> CommitReport:
    """Return the report of a commit without changes, for which no snapshot was published.

    ``ignored`` are the arguments, such as "the watermark 5", that are therefore stored nowhere.
    """
    lost = (
        f", and the call did not store {' or '.join(ignored)} (set 'snapshot.ignore-empty-commit' "
        "= 'false' to publish a snapshot for every commit)"
        if ignored
        else ""
    )
    return CommitReport(
        table=handle.uri,
        snapshot_id=None,
        reason=f"no rows to commit, so no snapshot was published{lost}",
    )
