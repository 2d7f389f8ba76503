# SPDX-License-Identifier: Apache-2.0
"""Removes missing and truncated data files from the newest snapshot of a table."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.paimon.commit.commit import CommitOptions, commit_messages
from lakeformat.paimon.datafile.file_presence import what_is_left
from lakeformat.paimon.expiry_race import head_of
from lakeformat.paimon.file_places import data_file_place
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.commit_message import CommitMessage
from lakeformat.paimon.metadata.index_manifest import IndexManifestEntry
from lakeformat.paimon.metadata.manifest import ManifestEntry
from lakeformat.paimon.metadata.manifest_columns.columns import Positions
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import latest_snapshot
from lakeformat.paimon.orphans.lost_changes import lost_changes
from lakeformat.paimon.partition import partition_path
from lakeformat.paimon.read.deletions import find_vectors
from lakeformat.paimon.read.plan import FilePlan, plan_columns
from lakeformat.storage import Storage
from lakeformat.tables.commit_id import CommitId
from lakeformat.tables.driver import Round, Steps, carry_out
from lakeformat.tables.report import Report
from lakeformat.types.count_text import counted

__all__ = ["MissingFile", "MissingFilesReport", "remove_missing_files"]

_READERS = 16
_NAMED_FILES = 1_000
_log = logging.getLogger(__name__)

_Lack: TypeAlias = tuple[ManifestEntry, int | None]
"""A manifest entry, and the number of bytes that its file has; None if the file is missing."""
_Lacking: TypeAlias = tuple[Snapshot, list[_Lack]]
"""A snapshot, and at least one missing or truncated file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingFile:
    """A missing or truncated data file of the newest snapshot."""

    path: str
    """The URI at which the file should be."""
    partition: str
    bucket: int
    rows: int
    """The number of rows lost with the file."""
    bytes: int
    bytes_left: int | None = None
    """The size of a truncated file in bytes; None if the file is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingFilesReport(Report):
    """The result of a search for missing and truncated data files."""

    table: str
    dry_run: bool
    snapshot_id: int | None
    """The number of the checked snapshot."""
    published: int | None
    """The number of the published snapshot without the missing files; None if none was
    published.
    """
    checked_files: int
    missing_files: int
    missing_rows: int
    """The number of rows in the missing and truncated files, including rows that other files
    replace or delete.
    """
    missing_bytes: int
    objection: str | None
    """In a dry run, the message of the error that the removal would raise, if any."""
    files: tuple[MissingFile, ...]
    """The first 1,000 missing or truncated files."""
    reason: str
    """The outcome in one sentence, for the log."""


def remove_missing_files(
    handle: TableHandle,
    *,
    dry_run: bool,
    max_share: float = 0.5,
    commit: CommitId | None = None,
) -> MissingFilesReport:
    """Find missing and truncated files, and commit a snapshot without them unless it is a dry run.

    The rows of these files are lost already; after the commit, the table can be read again. In a
    table with a primary key, earlier rows that these files deleted or replaced appear again. Raise
    InvalidRequestError if these files exceed ``max_share`` of all files, and UnsupportedError if
    any are found in a table with row ids; a dry run reports these errors instead. If another commit
    changes the files meanwhile, the search is repeated.
    """
    share: object = max_share
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
        raise InvalidRequestError(f"max_share must be above 0 and at most 1, got {share!r}")
    removal = _Removal(handle, float(share), commit, dry_run=dry_run)
    if dry_run:
        removal.search()
    else:
        carry_out(
            Steps(
                name=f"removing missing files of {handle.uri}",
                head=head_of(handle),
                plan=removal.plan,
                take=removal.publish,
                environment=handle.environment,
            )
        )
    return removal.report


@dataclass(slots=True)
class _Removal:
    handle: TableHandle
    max_share: float
    commit: CommitId | None
    dry_run: bool
    report: MissingFilesReport = field(init=False)

    def search(self) -> _Lacking | None:
        """Check the files of the newest snapshot, and set the report.

        Return the snapshot with its missing and truncated files; None if all files are complete.
        """
        handle = self.handle
        snapshot = latest_snapshot(handle.storage, handle.layout)
        if snapshot is None:
            self.report = _report(handle, None, [], 0, dry_run=self.dry_run)
            return None
        plan = plan_columns(handle, snapshot)
        missing = [*_missing(handle, plan)]
        checked = len(plan.columns)
        objection = self._loss_of_row_ids(missing) or _objection(
            handle, len(missing), checked, self.max_share
        )
        self.report = _report(
            handle, snapshot, missing, checked, dry_run=self.dry_run, objection=objection
        )
        return (snapshot, missing) if missing else None

    def plan(self) -> Round[_Lacking, _Lacking] | None:
        found = self.search()
        if found is not None and (refusal := self._loss_of_row_ids(found[1])) is not None:
            raise UnsupportedError(refusal)
        if self.report.objection is not None:
            raise InvalidRequestError(self.report.objection)
        return None if found is None else Round(units=[found], work=lambda found: found)

    def _loss_of_row_ids(self, missing: Sequence[_Lack]) -> str | None:
        if not missing or not self.handle.options.row_tracking_enabled:
            return None
        return (
            f"{self.handle.uri} tracks row ids ('row-tracking.enabled'), and this library cannot "
            "remove files from such a table: restore the missing files from a backup, or remove "
            "them from the table with another engine"
        )

    def publish(self, found: _Lacking) -> None:
        snapshot, missing = found
        messages = _messages(self.handle, snapshot, [entry for entry, _ in missing])
        done = commit_messages(self.handle, messages, CommitOptions(commit=self.commit))
        report = self.report
        files = counted(report.missing_files, "missing or truncated file")
        reason = f"removed {files}; {done.reason}{lost_changes(self.handle)}"
        rows = counted(report.missing_rows, "row")
        _log.warning("%s: lost %s; %s", self.handle.uri, rows, reason)
        self.report = replace(report, published=done.snapshot_id, reason=reason)


def _missing(handle: TableHandle, plan: FilePlan) -> Iterator[_Lack]:
    """Yield the missing and truncated files of a plan.

    Each bucket is listed once. Then each file that the listing lacks, or lists with too few bytes,
    is looked up.
    """
    readers = handle.options.file_operation_threads or _READERS
    with ThreadPoolExecutor(readers) as pool:
        places = plan.places()
        for at in range(0, len(places), readers):
            window = places[at : at + readers]
            absent = [*pool.map(lambda rows: _absent(handle, plan, rows), window)]
            doubtful = [entry for entries in absent for entry in entries]
            wanted = [(*_path(handle, entry), entry.file.file_size) for entry in doubtful]
            remains = pool.map(lambda place: what_is_left(*place), wanted)
            yield from (
                (entry, found.size)
                for entry, found in zip(doubtful, remains, strict=True)
                if not found.is_whole
            )


def _absent(handle: TableHandle, plan: FilePlan, rows: Positions) -> list[ManifestEntry]:
    """Return the entries of one bucket whose file the listing lacks, or lists with too few bytes.

    Files at an external path are always returned, because the listing does not show them.
    """
    names = plan.columns.file_name.take(rows).texts()
    sizes = plan.columns.file_size.take(rows).numbers.tolist()
    [first] = plan.columns.entries(rows[:1])
    directory = partition_path(handle.schema, first.partition)
    listed = handle.storage.list(handle.layout.bucket_directory(first.bucket, directory))
    there = {info.name: info.size for info in listed if not info.is_directory}
    pairs = zip(names, sizes, strict=True)
    lacking = rows[[name is None or there.get(name, -1) < size for name, size in pairs]]
    return plan.columns.entries(lacking) if len(lacking) else []


def _path(handle: TableHandle, entry: ManifestEntry) -> tuple[Storage, str]:
    directory = partition_path(handle.schema, entry.partition)
    return data_file_place(handle, entry.bucket, entry.file, directory)


def _messages(
    handle: TableHandle, snapshot: Snapshot, missing: Sequence[ManifestEntry]
) -> list[CommitMessage]:
    """Return messages that delete the missing files, one per bucket.

    In append tables, the messages also delete the deletion vectors of these files.
    """
    buckets: dict[tuple[bytes, int], list[ManifestEntry]] = {}
    for entry in missing:
        buckets.setdefault((entry.partition, entry.bucket), []).append(entry)
    # In a table with a primary key, the vectors of missing files are ignored, so they may remain.
    vectors = {} if handle.schema.primary_keys else find_vectors(handle, snapshot)
    found = []
    for (partition, bucket), entries in buckets.items():
        names = {entry.file.file_name for entry in entries}
        old = [
            index
            for index in vectors.get((partition, bucket), ())
            if any(each.data_file_name in names for each in index.ranges or ())
        ]
        found.append(
            CommitMessage(
                partition=partition,
                bucket=bucket,
                total_buckets=entries[0].total_buckets,
                deleted_files=tuple(entry.file for entry in entries),
                deleted_index_files=tuple(old),
                new_index_files=tuple(_forgetting(index, names) for index in old),
            )
        )
    return found


def _forgetting(index: IndexManifestEntry, names: set[str]) -> IndexManifestEntry:
    """Return the entry of a deletion-vector file without the vectors of the data files
    ``names``.
    """
    left = tuple(each for each in index.ranges or () if each.data_file_name not in names)
    return replace(index, ranges=left, row_count=len(left))


def _objection(handle: TableHandle, missing: int, checked: int, max_share: float) -> str | None:
    if missing / max(checked, 1) <= max_share:
        return None
    return (
        f"{missing} of {checked} data files of {handle.uri} {'is' if missing == 1 else 'are'} "
        f"missing or truncated, more than max_share={max_share:.0%}. Check that the storage is "
        "mounted and the path is right. If the files are lost, pass max_share=1"
    )


def _report(
    handle: TableHandle,
    snapshot: Snapshot | None,
    missing: Sequence[_Lack],
    checked: int,
    *,
    dry_run: bool,
    objection: str | None = None,
) -> MissingFilesReport:
    rows = sum(entry.file.row_count for entry, _ in missing)
    of = "" if snapshot is None else f" of the newest snapshot {snapshot.id}"
    todo = ""
    if dry_run:
        them = "it" if len(missing) == 1 else "them"
        todo = f"; nothing was changed. Restore {them} from a backup"
        if objection is None:
            todo += f", or remove {them} from the table with dry_run=False"
        todo += ". Older snapshots were not checked"
        todo += lost_changes(handle) if objection is None else ""
    return MissingFilesReport(
        table=handle.uri,
        dry_run=dry_run,
        snapshot_id=None if snapshot is None else snapshot.id,
        published=None,
        checked_files=checked,
        missing_files=len(missing),
        missing_rows=rows,
        missing_bytes=sum(entry.file.file_size for entry, _ in missing),
        objection=objection,
        files=tuple(_shown(handle, *each) for each in missing[:_NAMED_FILES]),
        reason=f"checked {counted(checked, 'data file')}{of}: {_lacks(missing)}, with "
        f"{counted(rows, 'row')}{todo}"
        if missing
        else f"checked {counted(checked, 'data file')}{of}: none is missing or truncated",
    )


def _lacks(missing: Sequence[_Lack]) -> str:
    gone = sum(left is None for _, left in missing)
    parts = ((gone, "missing"), (len(missing) - gone, "truncated"))
    return ", ".join(
        f"{count:,} {'is' if count == 1 else 'are'} {what}" for count, what in parts if count
    )


def _shown(handle: TableHandle, entry: ManifestEntry, left: int | None) -> MissingFile:
    storage, path = _path(handle, entry)
    return MissingFile(
        path=storage.uri(path),
        partition=partition_path(handle.schema, entry.partition),
        bucket=entry.bucket,
        rows=entry.file.row_count,
        bytes=entry.file.file_size,
        bytes_left=left,
    )
