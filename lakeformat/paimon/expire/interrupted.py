# SPDX-License-Identifier: Apache-2.0
"""Finishes interrupted expiries.

Each has left an intent: a file that names the snapshots or changelogs to delete.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from lakeformat.paimon.deletion import Intent, read_intents, withdraw
from lakeformat.paimon.deletion.intent import STALE_MILLIS
from lakeformat.paimon.deletion.parallel import in_parallel
from lakeformat.paimon.deletion.retried_reads import look_again
from lakeformat.paimon.expire.changelogs import finish_changelogs
from lakeformat.paimon.expire.delete_expired import Account, remove_files
from lakeformat.paimon.expire.plan import Plan
from lakeformat.paimon.expire.protected_plan import plan_protected
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot_if_present, snapshot_ids

__all__ = ["existing_snapshots", "finish_interrupted"]


def finish_interrupted(handle: TableHandle, account: Account) -> bool:
    """Finish interrupted expiries: delete the remaining files of deleted snapshots and changelogs.

    Return True if every file was removed.
    """
    if not finish_changelogs(handle, account):
        return False
    return all(_finish_one(handle, account, intent) for intent in read_intents(handle))


def existing_snapshots(handle: TableHandle, ids: Sequence[int]) -> list[Snapshot]:
    """Return the snapshots with these ids that still exist."""
    read = partial(read_snapshot_if_present, handle.storage, handle.layout)
    return [snapshot for snapshot in in_parallel(handle, read, ids) if snapshot is not None]


def _finish_one(handle: TableHandle, account: Account, intent: Intent) -> bool:
    gone, plan = look_again(handle, partial(_left_of, handle, intent))
    if plan is not None and not remove_files(handle, account, plan):
        return False
    age = handle.environment.now_millis() - intent.time_millis
    if intent.is_over(gone) or age > STALE_MILLIS:
        account.finished += 1
        if not account.dry_run:
            withdraw(handle, intent)
    return True


def _left_of(handle: TableHandle, intent: Intent) -> tuple[Sequence[Snapshot], Plan | None]:
    """Return the announced snapshots that are deleted, and a plan to delete their remaining files.

    The plan is None if no announced snapshot is deleted, or the table has no snapshot.
    """
    ids = snapshot_ids(handle.storage, handle.layout)
    # Compare identities, not numbers: a rollback to a tag may reuse the numbers.
    announced = [each.id for each in intent.snapshots]
    there = {each.identity for each in existing_snapshots(handle, announced)}
    gone = [each for each in intent.snapshots if each.identity not in there]
    after = [number for number in ids if not gone or number > gone[-1].id] or ids[-1:]
    read = partial(read_snapshot_if_present, handle.storage, handle.layout)
    oldest = next(filter(None, map(read, after)), None)
    if not gone or oldest is None:
        return gone, None
    older = existing_snapshots(handle, [number for number in ids if number < oldest.id])
    plan = plan_protected(
        handle, gone, oldest, keeps_changelogs=intent.keeps_changelogs, older=older
    )
    return gone, plan
