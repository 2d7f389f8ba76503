"""Publishes new files as an APPEND snapshot, by the optimistic protocol.

Read the newest snapshot, write manifests that build on it, publish the next number. If
another writer took the number, build on that one and try again: an append never conflicts.
Data files are durable before the first attempt, and nothing refers to them until publication.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence

from lakeformat.commit.attempt import AppendAttempts
from lakeformat.commit.identity import BATCH_IDENTIFIER, CommitId, find_commit
from lakeformat.commit.publish import Outcome
from lakeformat.commit.report import CommitReport
from lakeformat.errors import CommitConflictError, CommitOutcomeUnknownError, LakeError
from lakeformat.handle import TableHandle, require_writable
from lakeformat.metadata.commit_message import CommitMessage
from lakeformat.metadata.manifest import FileKind, ManifestEntry
from lakeformat.metadata.manifest_list import read_manifest_list
from lakeformat.metadata.snapshot import CommitKind, Snapshot
from lakeformat.metadata.snapshot_directory import (
    FIRST_SNAPSHOT_ID,
    latest_snapshot,
    write_hints,
)

__all__ = ["commit_append", "find_earlier_append"]

_log = logging.getLogger(__name__)
_JITTER = 0.2


def commit_append(
    handle: TableHandle,
    messages: Sequence[CommitMessage],
    *,
    commit: CommitId | None = None,
    watermark: int | None = None,
    properties: Mapping[str, str] | None = None,
) -> CommitReport:
    """Publish the files of ``messages`` once; safe to repeat with the same ``commit``."""
    require_writable(handle)
    if commit is not None and (done := find_earlier_append(handle, commit)):
        return done
    entries = tuple(_entries(messages))
    if not entries:
        return _nothing_to_commit(handle)
    identity = commit or CommitId(handle.environment.new_id(), BATCH_IDENTIFIER)
    attempts = AppendAttempts(handle, entries, identity, watermark, dict(properties or {}))
    return _publish(attempts)


def find_earlier_append(handle: TableHandle, commit: CommitId) -> CommitReport | None:
    """The result of an earlier commit with this identity, if there was one."""
    head = latest_snapshot(handle.storage, handle.layout)
    newest = head.id if head else 0
    found = find_commit(handle, commit, CommitKind.APPEND, newest=newest, oldest=FIRST_SNAPSHOT_ID)
    return None if found is None else _replayed(handle, found)


def _publish(attempts: AppendAttempts) -> CommitReport:
    """Publish, or raise knowing whether it may have happened all the same."""
    try:
        return _try_until_published(attempts)
    except LakeError as error:
        if attempts.in_doubt:
            raise _outcome_unknown(attempts) from error
        attempts.discard()
        raise


def _try_until_published(attempts: AppendAttempts) -> CommitReport:
    handle = attempts.handle
    first_id: int | None = None
    for number in range(1, handle.options.commit_max_retries + 2):
        head = latest_snapshot(handle.storage, handle.layout)
        if first_id is not None and (found := _published_since(attempts, head, first_id)):
            return _found(attempts, found, number)
        snapshot = attempts.snapshot_on(head)
        first_id = first_id or snapshot.id
        outcome = attempts.publish(snapshot)
        if outcome is Outcome.COMMITTED:
            return _committed(attempts, snapshot, number)
        _wait(handle, number)
    raise _out_of_retries(handle)


def _published_since(
    attempts: AppendAttempts, head: Snapshot | None, oldest: int
) -> Snapshot | None:
    """Our commit, if an attempt got through unnoticed or a twin of ours was faster."""
    newest = head.id if head else 0
    return find_commit(
        attempts.handle, attempts.commit, CommitKind.APPEND, newest=newest, oldest=oldest
    )


def _found(attempts: AppendAttempts, snapshot: Snapshot, number: int) -> CommitReport:
    if snapshot.uuid in attempts.published_uuids:
        return _committed(attempts, snapshot, number)
    attempts.discard()
    return _replayed(attempts.handle, snapshot)


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
