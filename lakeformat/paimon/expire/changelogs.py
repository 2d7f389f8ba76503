# SPDX-License-Identifier: Apache-2.0
"""Expires changelogs that outlived their snapshots."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from lakeformat.paimon.consumers import Guard
from lakeformat.paimon.deletion import announce, find_protection, protection, read_intents, withdraw
from lakeformat.paimon.deletion.parallel import in_parallel
from lakeformat.paimon.deletion.retried_reads import look_again
from lakeformat.paimon.expire.delete_expired import Account, hide_changelogs, remove_files
from lakeformat.paimon.expire.plan import Plan, plan_changelogs
from lakeformat.paimon.expire.retention import (
    Retention,
    Selection,
    select_changelogs,
)
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.changelog_directory import changelog_ids, read_changelog_if_present
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot_if_present, snapshot_ids

__all__ = ["ROUND", "expire_changelogs", "finish_changelogs", "select"]

ROUND = 250
"""The number of changelogs or snapshots that are planned at once, to limit memory."""


def select(handle: TableHandle, retention: Retention, guard: Guard | None) -> list[int]:
    """Return the ids of the changelogs to expire; those that the consumer ``guard`` has not read
    are kept.
    """
    storage, layout = handle.storage, handle.layout
    ids, snapshots = changelog_ids(storage, layout), snapshot_ids(storage, layout)
    if not ids or not snapshots:
        return []

    def time_of(number: int) -> int | None:
        found = read_changelog_if_present(handle.storage, handle.layout, number)
        return None if found is None else found.time_millis

    found: Selection = select_changelogs(ids, snapshots[-1], time_of, retention, guard)
    return ids[: found.count]


def expire_changelogs(handle: TableHandle, account: Account, numbers: Sequence[int]) -> bool:
    """Delete the changelogs with these ids, and the files that only these changelogs need.

    Return True if every file was removed. The changelogs are deleted in rounds of up to ``ROUND``.
    After a round in which a file could not be removed, return False and keep the later changelogs.
    """
    for start in range(0, len(numbers), ROUND):
        some = numbers[start : start + ROUND]
        read = in_parallel(
            handle, partial(read_changelog_if_present, handle.storage, handle.layout), some
        )
        changelogs = [each for each in read if each is not None]
        if not changelogs:
            continue
        intent = None
        if not account.dry_run:
            intent = announce(handle, changelogs, some[-1] + 1, changelogs=True)
        if not _expire(handle, account, changelogs, hides=True):
            return False
        if intent is not None:
            withdraw(handle, intent)
    return True


def finish_changelogs(handle: TableHandle, account: Account) -> bool:
    """Finish interrupted expiries of changelogs: delete the remaining files of deleted changelogs.

    Return True if every file was removed.
    """
    storage, layout = handle.storage, handle.layout
    for intent in read_intents(handle, changelogs=True):
        numbers = [each.id for each in intent.snapshots]
        found = (read_changelog_if_present(storage, layout, number) for number in numbers)
        there = {each.identity for each in found if each is not None}
        gone = [each for each in intent.snapshots if each.identity not in there]
        if gone and not _expire(handle, account, gone, hides=False):
            return False
        if intent.is_over(gone):
            account.finished += 1
            if not account.dry_run:
                withdraw(handle, intent)
    return True


def _expire(
    handle: TableHandle, account: Account, changelogs: Sequence[Snapshot], *, hides: bool
) -> bool:
    storage, layout, last = handle.storage, handle.layout, changelogs[-1].id
    # While this finishes an expiry, a changelog with one of its numbers must be a new one.
    going = {changelog.id for changelog in changelogs if hides}

    def look() -> tuple[Plan, int]:
        left = [number for number in changelog_ids(storage, layout) if number not in going]
        later = [number for number in left if number > last]
        kept = [number for number in left if number <= last] + later[:1]
        read = partial(read_changelog_if_present, storage, layout)
        snapshots = snapshot_ids(storage, layout)
        oldest = read_snapshot_if_present(storage, layout, snapshots[0]) if snapshots else None
        found = find_protection(
            handle,
            oldest=oldest,
            expiring=len(changelogs),
            with_oldest_state=True,
            changelogs=filter(None, in_parallel(handle, read, kept)),
            expired_changelogs=going,
            later_changelogs=later[1 : 1 + max(protection.LATER_SNAPSHOTS, len(changelogs))],
        )
        return plan_changelogs(handle, changelogs, found), later[0] if later else last + 1

    plan, next_one = look_again(handle, look)
    if hides:
        hide_changelogs(handle, account, changelogs, next_one)
    return remove_files(handle, account, plan)
