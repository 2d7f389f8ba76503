# SPDX-License-Identifier: Apache-2.0
"""Publishes one change as one snapshot, by the optimistic protocol.

An attempt reads the newest snapshot, checks the change against it, writes manifests, and publishes
the snapshot with the next number. If another writer has taken that number, the next attempt builds
on the snapshot of that writer. Data files are durable before the first attempt, and no snapshot
refers to them before publication.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import replace

from lakeformat.errors import (
    CommitConflictError,
    CommitOutcomeUnknownError,
    CorruptTableError,
    LakeError,
    NotFoundError,
)
from lakeformat.paimon.commit.attempt import Attempts, CommitIntent
from lakeformat.paimon.commit.commit_report import CommitReport, committed
from lakeformat.paimon.commit.conflict_text import described, named
from lakeformat.paimon.commit.identity import EarlierCommits, require_same
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import (
    latest_snapshot,
    latest_snapshot_id,
    read_snapshot,
    write_hints,
)
from lakeformat.storage.turns import turn
from lakeformat.tables.create_once import PublishOutcome
from lakeformat.types.count_text import counted

__all__ = ["publish_once", "wait_to_retry"]

_log = logging.getLogger(__name__)


def publish_once(
    handle: TableHandle, intent: CommitIntent, earlier: EarlierCommits
) -> CommitReport:
    """Publish a change, or find the snapshot by which an earlier attempt published it.

    After CommitOutcomeUnknownError, this call may have published the change. After
    CommitUndecidableError, an earlier attempt may have published it. After any other error, this
    call has not published it.
    """
    attempts = Attempts(handle, intent)
    report = _published(attempts, earlier)
    handle.observe_commit()
    return report


def _published(attempts: Attempts, earlier: EarlierCommits) -> CommitReport:
    try:
        return _try_until_published(attempts, earlier)
    except CommitOutcomeUnknownError:
        raise
    except LakeError as error:
        with suppress(LakeError):
            attempts.resolve_doubt()
        if attempts.in_doubt:
            raise _outcome_unknown(attempts) from error
        attempts.discard()
        raise


def _try_until_published(attempts: Attempts, earlier: EarlierCommits) -> CommitReport:
    handle, sleep = attempts.handle, attempts.handle.environment.sleep_seconds
    started = handle.environment.now_millis()
    number = 0
    try:
        for number in range(1, handle.options.commit_max_retries + 2):
            with turn(handle.storage, handle.layout.snapshot_directory, sleep):
                done = _try_once(attempts, earlier, number)
            if done is not None:
                return done
            if _is_over(handle, started):
                tries = f"{counted(number, 'attempt')} within commit.timeout"
                raise _given_up(attempts, tries, "commit.timeout")
            wait_to_retry(handle, number)
        raise _given_up(attempts, counted(number, "attempt"), "commit.max-retries")
    except CommitConflictError as conflict:
        conflict.attempts = number
        raise


def _try_once(attempts: Attempts, earlier: EarlierCommits, number: int) -> CommitReport | None:
    """Make attempt ``number`` on the newest snapshot.

    Return None if another attempt must follow: another writer was faster, or the storage gave no
    answer.
    """
    handle = attempts.handle
    newest = latest_snapshot_id(handle.storage, handle.layout, for_commit=True)
    try:
        head = None if newest is None else read_snapshot(handle.storage, handle.layout, newest)
        return _try_on(attempts, earlier, number, head)
    except (CorruptTableError, NotFoundError):
        # The expiry may delete files of this snapshot as soon as a newer one exists.
        if latest_snapshot_id(handle.storage, handle.layout) == newest:
            raise
        return None


def _try_on(
    attempts: Attempts, earlier: EarlierCommits, number: int, head: Snapshot | None
) -> CommitReport | None:
    """Make attempt ``number`` on the snapshot ``head``; return None if another must follow."""
    # Search ``head``, too: another attempt with the same identity may just have published it.
    if (found := earlier.find(head)) is not None:
        return _found(attempts, found, number)
    snapshot = attempts.snapshot_on(head)
    if attempts.publish(snapshot) is PublishOutcome.COMMITTED:
        return _committed(attempts, snapshot, number)
    return None


def _found(attempts: Attempts, found: Snapshot, number: int) -> CommitReport:
    """Return the report on the snapshot ``found``, which has the identity of this commit.

    If an attempt of this call published it without getting an answer, report it as committed.
    Otherwise another call published it: discard the files of this call and report a replay.
    """
    ours = attempts.resolve_doubt()
    if ours is not None:
        return _committed(attempts, ours, number)
    attempts.discard()
    require_same(attempts.handle, found, attempts.intent.kind, attempts.intent.operation)
    return attempts.intent.replay(found)


def _committed(attempts: Attempts, snapshot: Snapshot, number: int) -> CommitReport:
    handle = attempts.handle
    write_hints(handle.storage, handle.layout, snapshot.id)
    report = committed(handle, snapshot, attempts.changes, number)
    if _log.isEnabledFor(logging.INFO):
        _log.info("commit to %s: %s", handle.name, report.sentence)
    return report


def _is_over(handle: TableHandle, started: int) -> bool:
    limit = handle.options.commit_timeout_millis
    return limit is not None and handle.environment.now_millis() - started > limit


def _given_up(attempts: Attempts, tries: str, option: str) -> CommitConflictError:
    handle, newest = attempts.handle, "the newest snapshot cannot be read"
    with suppress(LakeError):
        head = latest_snapshot(handle.storage, handle.layout)
        newest = f"the newest is {named(head)}" if head else "the table has no snapshot"
    who, files = attempts.intent.who, attempts.changes.added
    if who.planned_on is None:
        who = replace(who, planned_on=attempts.began_on)
    lost = f"These files were not published: {described(handle, files)}" if len(files) else ""
    return CommitConflictError(
        f"{who} found a newer snapshot, or got no answer, in each of {tries}. "
        f"{lost or 'Nothing was published'}; {newest}. Retry with {attempts.intent.commit}, or "
        f"increase {option} if many writers share this table"
    )


def _outcome_unknown(attempts: Attempts) -> CommitOutcomeUnknownError:
    return CommitOutcomeUnknownError(
        f"the commit to {attempts.handle.uri} got no answer from the storage and may have been "
        f"published. Retry with {attempts.intent.commit}: if it was published, the retry changes "
        "nothing. No file was removed"
    )


def wait_to_retry(handle: TableHandle, failures: int) -> None:
    """Sleep for about ``commit.min-retry-wait``; longer after more failures, up to about
    ``commit.max-retry-wait``.
    """
    handle.environment.back_off(
        failures,
        least_millis=handle.options.commit_min_retry_wait_millis,
        longest_millis=handle.options.commit_max_retry_wait_millis,
    )
