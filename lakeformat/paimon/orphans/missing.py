"""Takes data files out of a table that its newest snapshot leads to and that are not whole."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeAlias

from lakeformat.errors import CommitConflictError, InvalidRequestError
from lakeformat.paimon.commit.commit import CommitOptions, commit_messages
from lakeformat.paimon.commit.identity import CommitId
from lakeformat.paimon.datafile.remains import what_is_left
from lakeformat.paimon.file_places import data_file_place
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.commit_message import CommitMessage
from lakeformat.paimon.metadata.index_manifest import IndexManifestEntry
from lakeformat.paimon.metadata.manifest import ManifestEntry
from lakeformat.paimon.metadata.manifest_columns.columns import Positions
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import latest_snapshot
from lakeformat.paimon.partition import partition_path
from lakeformat.paimon.read.deletions import find_vectors
from lakeformat.paimon.read.plan import FilePlan, plan_columns
from lakeformat.storage import Storage
from lakeformat.types.count_text import counted

__all__ = ["MissingFile", "MissingFilesReport", "remove_missing_files"]

_PLANS = 3
_READERS = 16
_NAMED_FILES = 1_000
_log = logging.getLogger(__name__)

_Lack: TypeAlias = tuple[ManifestEntry, int | None]
"""A file, and how many bytes of it are left; None if it is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingFile:
    """A data file that is not there, or not to its end."""

    path: str
    """Where it should be."""
    partition: str
    bucket: int
    rows: int
    """Rows that are lost with it."""
    bytes: int
    bytes_left: int | None = None
    """How many of them are there, where it was cut short; None where it is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingFilesReport:
    """The outcome of one look for data files that are gone or cut short."""

    table: str
    dry_run: bool
    snapshot_id: int | None
    """The snapshot whose files were looked for."""
    published: int | None
    """The snapshot without the missing files."""
    checked_files: int
    missing_files: int
    missing_rows: int
    """As the files say: rows that others replace or delete are counted too."""
    missing_bytes: int
    objection: str | None
    """Why they would not be taken out, if so; only a dry run comes so far then."""
    files: tuple[MissingFile, ...]
    """The first of them."""
    reason: str
    """One sentence for the log: what happened, or why nothing did."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)


def remove_missing_files(
    handle: TableHandle,
    *,
    dry_run: bool,
    max_share: float = 0.5,
    commit: CommitId | None = None,
) -> MissingFilesReport:
    """Find them, and commit that the table has them no more unless it is a dry run.

    Their rows are lost already; afterwards the table can be read again. A file that was compacted
    away meanwhile is planned anew.
    """
    share: object = max_share
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
        raise InvalidRequestError(f"max_share is a part above 0 and up to 1, got {share!r}")
    for remaining in reversed(range(_PLANS)):
        snapshot = latest_snapshot(handle.storage, handle.layout)
        if snapshot is None:
            return _report(handle, None, [], 0, dry_run=dry_run)
        plan = plan_columns(handle, snapshot)
        missing = [*_missing(handle, plan)]
        report = _report(handle, snapshot, missing, len(plan.columns), dry_run=dry_run)
        report = replace(report, objection=_objection(report, max_share))
        if dry_run or not missing:
            return report
        if report.objection is not None:
            raise InvalidRequestError(report.objection)
        try:
            messages = _messages(handle, snapshot, [entry for entry, _ in missing])
            done = commit_messages(handle, messages, CommitOptions(commit=commit))
        except CommitConflictError:
            if not remaining:
                raise
            continue
        reason = f"took {counted(report.missing_files, 'file')} out; {done.reason}"
        _log.warning(
            "%s: %s rows are lost with them; %s", *(handle.uri, report.missing_rows, reason)
        )
        return replace(report, published=done.snapshot_id, reason=reason)
    raise AssertionError("the last plan returns or raises")


def _missing(handle: TableHandle, plan: FilePlan) -> Iterator[_Lack]:
    """Each bucket is listed once; what it lacks is asked for by name before it counts."""
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
    """The files of a bucket that are not whole in its directory, or lie outside of the table."""
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
    """A message per bucket; an append table's deletion vectors forget the files."""
    buckets: dict[tuple[bytes, int], list[ManifestEntry]] = {}
    for entry in missing:
        buckets.setdefault((entry.partition, entry.bucket), []).append(entry)
    # With a primary key the vectors of files that are gone mean nothing, and may stay.
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
    """An index file of vectors as if it had none for some data files."""
    left = tuple(each for each in index.ranges or () if each.data_file_name not in names)
    return replace(index, ranges=left, row_count=len(left))


def _objection(report: MissingFilesReport, max_share: float) -> str | None:
    share = report.missing_files / max(report.checked_files, 1)
    if share <= max_share:
        return None
    return (
        f"{report.missing_files} of {report.checked_files} data files of {report.table} are not "
        f"there as a whole, more than max_share={max_share:.0%}: is the storage mounted, and is "
        "this the right place? If they are lost, say max_share=1"
    )


def _report(
    handle: TableHandle,
    snapshot: Snapshot | None,
    missing: Sequence[_Lack],
    checked: int,
    *,
    dry_run: bool,
) -> MissingFilesReport:
    rows = sum(entry.file.row_count for entry, _ in missing)
    of = "" if snapshot is None else f" of snapshot {snapshot.id}, the newest,"
    todo = ""
    if dry_run:
        todo = (
            "; nothing was changed. Look for them in a backup, or take them out of the table: "
            "dry_run=False. Older snapshots were not looked at"
        )
    return MissingFilesReport(
        table=handle.uri,
        dry_run=dry_run,
        snapshot_id=None if snapshot is None else snapshot.id,
        published=None,
        checked_files=checked,
        missing_files=len(missing),
        missing_rows=rows,
        missing_bytes=sum(entry.file.file_size for entry, _ in missing),
        objection=None,
        files=tuple(_shown(handle, *each) for each in missing[:_NAMED_FILES]),
        reason=f"{counted(checked, 'data file')}{of} looked for: {_lacks(missing)}, with "
        f"{counted(rows, 'row')}{todo}"
        if missing
        else f"{counted(checked, 'data file')}{of} looked for: none is gone or cut short",
    )


def _lacks(missing: Sequence[_Lack]) -> str:
    gone = sum(left is None for _, left in missing)
    parts = ((gone, "gone"), (len(missing) - gone, "cut short"))
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
