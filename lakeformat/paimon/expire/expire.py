# SPDX-License-Identifier: Apache-2.0
"""Expires snapshots: selects and announces them, makes them unreachable, then deletes their
files.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from lakeformat.errors import CorruptTableError, LakeError, NotFoundError
from lakeformat.paimon.commit.same_table import require_same_table
from lakeformat.paimon.consumers import (
    Guard,
    Progress,
    StalledConsumer,
    expire_consumers,
    find_stalled,
    read_progress,
)
from lakeformat.paimon.deletion import (
    Deleter,
    OnRemoval,
    Removal,
    announce,
    withdraw,
)
from lakeformat.paimon.deletion.retried_reads import look_again
from lakeformat.paimon.expire.changelogs import ROUND, expire_changelogs
from lakeformat.paimon.expire.changelogs import select as select_old_changelogs
from lakeformat.paimon.expire.delete_expired import Account, hide_snapshots, remove_files
from lakeformat.paimon.expire.expire_report import ExpireReport
from lakeformat.paimon.expire.interrupted import existing_snapshots, finish_interrupted
from lakeformat.paimon.expire.plan import Plan, deltas_of
from lakeformat.paimon.expire.protected_plan import plan_protected
from lakeformat.paimon.expire.retention import (
    Retention,
    Selection,
    changelog_retention,
    changelog_rules,
    is_decoupled,
    select_snapshots,
    snapshot_retention,
)
from lakeformat.paimon.handle import TableHandle, require_allowed
from lakeformat.paimon.metadata.changelog_directory import changelog_ids
from lakeformat.paimon.metadata.fence import ABANDONED_MILLIS, is_fenced, remove_old_fences
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot_if_present, snapshot_ids
from lakeformat.paimon.options.operation import Operation
from lakeformat.tables.past_time import PastTime, past_millis
from lakeformat.types.byte_size import size
from lakeformat.types.count_text import counted

__all__ = ["expire_snapshots"]

_FILES_PER_ROUND = 50_000
"""A round takes no further snapshots once it deletes this many data files."""
_NOTHING = "the table has no snapshot yet"
_OVERTAKEN = "another expiry expired more snapshots meanwhile"
_ROLLED_BACK = (
    "a rollback is running, or ran meanwhile: run the expiry again afterwards. If the rollback was "
    "interrupted, repeat the rollback; after one day, expiries no longer wait for its end"
)
_LEFT = "some files could not be removed: the next run tries again"
_log = logging.getLogger(__name__)


def expire_snapshots(
    handle: TableHandle,
    *,
    retain_max: int | None = None,
    retain_min: int | None = None,
    older_than: PastTime | None = None,
    limit: int | None = None,
    consumers_older_than: PastTime | None = None,
    dry_run: bool = False,
    on_progress: OnRemoval | None = None,
) -> ExpireReport:
    """Expire snapshots that are too old or too many, and delete the files that only they need.

    ``retain_max``, ``retain_min``, ``older_than`` and ``limit`` default to the table options. With
    ``consumers_older_than``, consumers that have made no progress since then are deleted, too.
    Without this argument, only the table option ``consumer.expiration-time`` deletes consumers.

    Raise InvalidRequestError for invalid limits, UnsupportedError for a table that this version
    cannot expire, and CorruptTableError for a damaged consumer file. A file that cannot be deleted
    raises no error: the report counts it.
    """
    require_allowed(handle, Operation.EXPIRE)
    require_same_table(handle)
    now = handle.environment.now_millis()
    retention = snapshot_retention(
        handle.options,
        now,
        retain_max=retain_max,
        retain_min=retain_min,
        older_than=older_than,
        limit=limit,
    )
    removals: list[Removal] = []
    listener = removals.append if dry_run and on_progress is None else on_progress
    account = Account(
        Deleter(handle.options.file_operation_threads, dry_run=dry_run, on_progress=listener),
        dry_run,
    )
    run = _Expiry(handle, retention, account)
    if consumers_older_than is not None:
        run.consumers_before = past_millis("consumers_older_than", consumers_older_than, now)
    if not dry_run:
        handle.require_published()
    report = run.run(removals)
    _log.info("expiry of %s: %s", handle.name, _sentence(report))
    for each in report.stalled_consumers:
        _log.warning("%s: %s; %s", report.table, each.finding, each.advice(report.table))
    return report


def _sentence(report: ExpireReport) -> str:
    snapshots, changelogs, files = len(report.snapshots), len(report.changelogs), report.deleted
    if not (snapshots or changelogs or files.total):
        return f"no action needed; {report.reason}"
    done = "would expire" if report.dry_run else "expired"
    failed = f", {files.failures:,} more could not be removed" if files.failures else ""
    return (
        f"{done} {counted(snapshots, 'snapshot')} and {counted(changelogs, 'changelog')} with "
        f"{counted(files.total, 'file')} of {size(files.bytes)}{failed}; {report.reason}"
    )


@dataclass(slots=True)
class _Expiry:
    handle: TableHandle
    retention: Retention
    account: Account
    keeps_changelogs: bool = False
    newest: int = 0
    """The id of the newest snapshot when the snapshots to expire were selected."""
    consumers_before: int | None = None
    """Delete consumers without progress since this time (epoch milliseconds), regardless of
    options.

    None: delete consumers only by the options.
    """

    def run(self, removals: list[Removal]) -> ExpireReport:
        handle, account = self.handle, self.account
        self.keeps_changelogs = is_decoupled(handle.options)
        deleted = self._delete_consumers()
        selection = Selection(0, _LEFT)
        if finish_interrupted(handle, account):
            progress = read_progress(handle, without=deleted)
            if self._expire_changelogs(progress):
                selection = self._expire(progress)
                # This run may have deleted snapshots of an earlier intent.
                if not account.dry_run and not account.deleter.deleted.failures:
                    finish_interrupted(handle, account)
        if not account.dry_run:
            with suppress(LakeError):  # the next run removes these files
                remove_old_fences(handle.storage, handle.layout, handle.environment.now_millis())
        left = [number for number in self._ids() if number not in account.snapshots]
        return ExpireReport(
            table=handle.uri,
            dry_run=account.dry_run,
            snapshots=tuple(account.snapshots),
            changelogs=tuple(account.changelogs),
            consumers=tuple(deleted),
            stale_consumers=read_progress(handle, without=deleted).stale,
            earliest_snapshot=min(left, default=None),
            reason=selection.reason,
            limited=selection.limited,
            finished=account.finished,
            deleted=account.deleter.deleted,
            directories=account.directories,
            spared=account.spared,
            notes=tuple(account.notes),
            stalled_consumers=self._stalled_consumers(deleted),
            removals=tuple(removals),
        )

    def _delete_consumers(self) -> list[str]:
        bounds = [] if self.consumers_before is None else [self.consumers_before]
        after = self.handle.options.consumer_expiration_time_millis
        if after is not None:
            bounds.append(self.handle.environment.now_millis() - after)
        if not bounds:
            return []
        older_than = max(bounds)
        report = expire_consumers(self.handle, older_than=older_than, dry_run=self.account.dry_run)
        return [*report.removed]

    def _stalled_consumers(self, deleted: Sequence[str]) -> tuple[StalledConsumer, ...]:
        options = self.handle.options
        only_changelogs = self.keeps_changelogs and options.consumer_changelog_only
        return find_stalled(
            self.handle,
            snapshots=None if only_changelogs else self.retention,
            changelogs=changelog_rules(options, self.handle.environment.now_millis()),
            without=deleted,
        )

    def _expire_changelogs(self, progress: Progress) -> bool:
        """Expire changelogs before this run makes new ones.

        Return False if a file could not be deleted.
        """
        handle = self.handle
        if not changelog_ids(handle.storage, handle.layout):
            return True
        now = handle.environment.now_millis()
        retention = changelog_retention(handle.options, now, self.retention.limit)
        numbers = select_old_changelogs(handle, retention, progress.guard)
        return expire_changelogs(handle, self.account, numbers)

    def _expire(self, progress: Progress) -> Selection:
        """Select the snapshots once, then expire them round by round.

        The result has the reason why no more snapshots expired.
        """
        ids = self._ids()
        if not ids:
            return Selection(0, _NOTHING)
        self.newest = ids[-1]
        selection = select_snapshots(ids, self._time_of, self.retention, self._guard(progress))
        position = 0
        while position < selection.count:
            upto = min(position + ROUND, selection.count)
            going, position = existing_snapshots(self.handle, ids[position:upto]), upto
            if not going:  # another expiry was faster
                continue
            oldest = next(filter(None, map(self._snapshot, ids[position:])), None)
            if oldest is None:
                return Selection(0, _OVERTAKEN)
            kept = self._cut([*going, oldest])
            if kept < len(going):
                position = ids.index(going[kept].id)
                going, oldest = going[:kept], going[kept]
            stopped = self._round(going, oldest)
            if stopped is not None:
                return Selection(len(self.account.snapshots), stopped)
        return selection

    def _cut(self, snapshots: Sequence[Snapshot]) -> int:
        """Return the number of ``snapshots`` to expire in the next round.

        The last of ``snapshots`` is the oldest kept snapshot, which does not count. A round ends
        when it deletes ``_FILES_PER_ROUND`` files.
        """
        files = 0
        for position, manifests in enumerate(deltas_of(self.handle, snapshots[1:])):
            files += sum(manifest.num_deleted_files for manifest in manifests)
            if files >= _FILES_PER_ROUND:
                return position + 1
        return len(snapshots) - 1

    def _round(self, snapshots: Sequence[Snapshot], oldest: Snapshot) -> str | None:
        """Expire ``snapshots``; ``oldest`` is the first snapshot that is kept.

        Return the reason if the expiry must stop, else None.
        """
        handle, account, keeps = self.handle, self.account, self.keeps_changelogs
        if account.dry_run:
            try:
                plan = self._plan_round(snapshots, oldest)
            except (CorruptTableError, NotFoundError):
                if self._snapshot(oldest.id) == oldest:
                    raise
                return _OVERTAKEN
            hide_snapshots(handle, account, snapshots, oldest.id, keeps_changelogs=keeps)
            remove_files(handle, account, plan)
            return None
        intent = announce(handle, snapshots, oldest.id, keeps_changelogs=keeps)
        try:
            stopped = self._overtaken(snapshots, oldest)
            if stopped is not None:
                withdraw(handle, intent)
                return stopped
            plan = self._plan_round(snapshots, oldest)
        except LakeError as error:
            with suppress(
                LakeError
            ):  # nothing was deleted, and the intent would refuse new tags and branches
                withdraw(handle, intent)
            is_gone = isinstance(error, CorruptTableError | NotFoundError)
            if is_gone and self._snapshot(oldest.id) != oldest:
                return _OVERTAKEN
            raise
        hide_snapshots(handle, account, snapshots, oldest.id, keeps_changelogs=keeps)
        handle.require_published()
        if not remove_files(handle, account, plan):
            return _LEFT
        withdraw(handle, intent)
        return None

    def _plan_round(self, snapshots: Sequence[Snapshot], oldest: Snapshot) -> Plan:
        """Return the plan to delete ``snapshots``; retry the reads while other programs delete
        snapshots, tags or branches.
        """

        def look() -> Plan:
            return plan_protected(
                self.handle, snapshots, oldest, keeps_changelogs=self.keeps_changelogs
            )

        return look_again(self.handle, look)

    def _overtaken(self, snapshots: Sequence[Snapshot], oldest: Snapshot) -> str | None:
        """Return a reason to stop if a consumer was set or a rollback began after the selection of
        ``snapshots``; else None.
        """
        guard = self._guard(read_progress(self.handle))
        if guard is not None and guard.next_snapshot <= snapshots[-1].id:
            return (
                f"kept snapshots from {guard.next_snapshot} on for {guard.what}, which was just set"
            )
        ids, going = self._ids(), {snapshot.id for snapshot in snapshots}
        newest = self._snapshot(ids[-1]) if ids else None
        if newest is None or newest.id < self.newest:
            return _ROLLED_BACK
        if any(number < oldest.id and number not in going for number in ids):
            return _ROLLED_BACK
        # Check all snapshots: a fence does not list a snapshot that was committed after it.
        now = self.handle.environment.now_millis()
        fenced = (*snapshots, oldest, newest)
        storage, layout = self.handle.storage, self.handle.layout
        if is_fenced(storage, layout, *fenced, newer_than=now - ABANDONED_MILLIS):
            return _ROLLED_BACK
        return None

    def _guard(self, progress: Progress) -> Guard | None:
        if self.keeps_changelogs and self.handle.options.consumer_changelog_only:
            return progress.of_snapshots
        return progress.guard

    def _ids(self) -> list[int]:
        """Return the ids of all snapshots from a listing of the directory.

        The hints are not used: with a wrong hint, some snapshots would never expire.
        """
        return snapshot_ids(self.handle.storage, self.handle.layout)

    def _snapshot(self, number: int) -> Snapshot | None:
        return read_snapshot_if_present(self.handle.storage, self.handle.layout, number)

    def _time_of(self, number: int) -> int | None:
        found = self._snapshot(number)
        return None if found is None else found.time_millis
