"""Publishes new files as an APPEND snapshot, by the optimistic protocol.

Read the newest snapshot, write manifests that build on it, publish the next number. If
another writer took the number, build on that one and try again: an append never conflicts.
Data files are durable before the first attempt, and nothing refers to them until publication.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence

from lakeformat.commit.attempt import AppendAttempts
from lakeformat.commit.checks import check_arguments, require_distinct_files
from lakeformat.commit.identity import BATCH_IDENTIFIER, CommitId, EarlierCommits
from lakeformat.commit.publish import Outcome
from lakeformat.commit.report import CommitReport
from lakeformat.errors import CommitConflictError, CommitOutcomeUnknownError, LakeError
from lakeformat.handle import TableHandle, require_writable
from lakeformat.metadata.commit_message import CommitMessage
from lakeformat.metadata.manifest import FileKind, ManifestEntry
from lakeformat.metadata.manifest_list import read_manifest_list
from lakeformat.metadata.snapshot import CommitKind, Snapshot
from lakeformat.metadata.snapshot_directory import latest_snapshot, write_hints

__all__ = ["commit_append", "earlier_appends", "find_earlier_append"]

_log = logging.getLogger(__name__)
_JITTER = 0.2


def commit_append(
    handle: TableHandle,
    messages: Sequence[CommitMessage],
    *,
    commit: CommitId | None = None,
    watermark: int | None = None,
    properties: Mapping[str, str] | None = None,
    earlier: EarlierCommits | None = None,
) -> CommitReport:
    """Publish the files of ``messages`` once; safe to repeat with the same ``commit``.

    ``earlier`` is what ``find_earlier_append`` has looked through already.
    """
    require_writable(handle)
    check_arguments(watermark, properties)
    entries = tuple(_entries(messages))
    identity = commit or CommitId(handle.environment.new_id(), BATCH_IDENTIFIER)
    earlier = earlier or earlier_appends(handle, identity)
    head = latest_snapshot(handle.storage, handle.layout)
    if commit is None:
        earlier.skip(head)
    elif (done := earlier.find(head)) is not None:
        return _replayed(handle, done)
    if not entries:
        return _nothing_to_commit(handle)
    require_distinct_files(entries)
    attempts = AppendAttempts(handle, entries, identity, watermark, dict(properties or {}))
    return _publish(attempts, earlier)


def earlier_appends(handle: TableHandle, commit: CommitId) -> EarlierCommits:
    """Where to look for a commit that may have been made before."""
    return EarlierCommits(handle, commit, CommitKind.APPEND)


def find_earlier_append(handle: TableHandle, earlier: EarlierCommits) -> CommitReport | None:
    """The result of an earlier commit with the same identity, if there was one."""
    found = earlier.find(latest_snapshot(handle.storage, handle.layout))
    return None if found is None else _replayed(handle, found)


def _publish(attempts: AppendAttempts, earlier: EarlierCommits) -> CommitReport:
    """Publish, or raise knowing whether it may have happened all the same."""
    try:
        return _try_until_published(attempts, earlier)
    except LakeError as error:
        if attempts.in_doubt:
            raise _outcome_unknown(attempts) from error
        attempts.discard()
        raise


def _try_until_published(attempts: AppendAttempts, earlier: EarlierCommits) -> CommitReport:
    handle = attempts.handle
    for number in range(1, handle.options.commit_max_retries + 2):
        head = latest_snapshot(handle.storage, handle.layout)
        # On the very head that is built on: a twin may have published since the last look.
        if (found := earlier.find(head)) is not None:
            return _found(attempts, found, number)
        snapshot = attempts.snapshot_on(head)
        if attempts.publish(snapshot) is Outcome.COMMITTED:
            return _committed(attempts, snapshot, number)
        _wait(handle, number)
    raise _out_of_retries(handle)


def _found(attempts: AppendAttempts, found: Snapshot, number: int) -> CommitReport:
    """Our commit got through unnoticed, or a twin of ours was faster."""
    ours = attempts.resolve_doubt()
    if ours is not None:
        return _committed(attempts, ours, number)
    attempts.discard()
    return _replayed(attempts.handle, found)


def _committed(attempts: AppendAttempts, snapshot: Snapshot, number: int) -> CommitReport:
    handle, files = attempts.handle, [entry.file for entry in attempts.entries]
    write_hints(handle.storage, handle.layout, snapshot.id)
    report = CommitReport(
        table=handle.uri,
        snapshot_id=snapshot.id,
        rows=sum(file.row_count for file in files),
        files=len(files),
        bytes=sum(file.file_size for file in files),
        attempts=number,
        replayed=False,
        reason=f"published as snapshot {snapshot.id}",
    )
    _log.info("commit %s", report)
    return report


def _replayed(handle: TableHandle, snapshot: Snapshot) -> CommitReport:
    delta = read_manifest_list(handle.storage, handle.layout, snapshot.delta_manifest_list)
    report = CommitReport(
        table=handle.uri,
        snapshot_id=snapshot.id,
        rows=snapshot.delta_record_count,
        files=sum(manifest.num_added_files for manifest in delta),
        bytes=0,
        attempts=0,
        replayed=True,
        reason=f"this commit was published before, as snapshot {snapshot.id}; nothing was done",
    )
    _log.info("commit %s", report)
    return report


def _nothing_to_commit(handle: TableHandle) -> CommitReport:
    return CommitReport(
        table=handle.uri,
        snapshot_id=None,
        rows=0,
        files=0,
        bytes=0,
        attempts=0,
        replayed=False,
        reason="no rows were given, so no snapshot was made",
    )


def _out_of_retries(handle: TableHandle) -> CommitConflictError:
    tries = handle.options.commit_max_retries + 1
    return CommitConflictError(
        f"commit to {handle.uri} met a newer snapshot in each of {tries} attempts; nothing was "
        "published. Try again, or raise commit.max-retries if many writers share this table"
    )


def _outcome_unknown(attempts: AppendAttempts) -> CommitOutcomeUnknownError:
    return CommitOutcomeUnknownError(
        f"commit to {attempts.handle.uri} got no answer from the storage and may have been "
        f"published. Repeat it with {attempts.commit}: if it was, nothing happens twice. "
        "No file was removed"
    )


def _entries(messages: Sequence[CommitMessage]) -> Iterator[ManifestEntry]:
    for message in messages:
        for file in message.new_files:
            yield ManifestEntry(
                FileKind.ADD, message.partition, message.bucket, message.total_buckets, file
            )


def _wait(handle: TableHandle, failures: int) -> None:
    """Back off exponentially, with jitter so that rivals do not meet again."""
    options, environment = handle.options, handle.environment
    longest = options.commit_max_retry_wait_millis
    wait_millis = min(options.commit_min_retry_wait_millis * 2 ** (failures - 1), longest)
    environment.sleep_seconds(wait_millis / 1000 * (1 + _JITTER * environment.random_fraction()))
