# SPDX-License-Identifier: Apache-2.0
"""Reasons against a healthy verdict: overdue snapshots and changelogs, stalled consumers, branches
and orphans.
"""

from __future__ import annotations

from collections.abc import Iterator

from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.health.health_report import FileFacts, SnapshotFacts, StorageFacts
from lakeformat.paimon.health.overdue import Overdue
from lakeformat.paimon.options import TableOptions
from lakeformat.tables.health.verdict import Reason
from lakeformat.types.byte_size import size
from lakeformat.types.count_text import counted
from lakeformat.types.duration_text import duration

__all__ = ["history_reasons", "retention_text", "undeleted_share"]

_UNLIMITED = 2**31 - 1
_MUCH_HISTORY = 3
"""The limit for the bytes of old files, as a multiple of the live bytes.

Old files are those that only overdue snapshots and branches keep. If they have more bytes than this
limit and than one target file, the table is not healthy. The multiple is larger than 1, because
each full compaction leaves the replaced files as history.
"""


def history_reasons(
    handle: TableHandle,
    files: FileFacts,
    snapshots: SnapshotFacts,
    storage: StorageFacts,
    overdue: Overdue,
) -> Iterator[Reason]:
    """Yield the reasons about overdue snapshots and changelogs, stalled consumers, branches and
    orphans.
    """
    table = handle.argument
    if overdue.refusal is not None:
        keys = "changelog" if overdue.refusal.startswith("changelog.") else "snapshot"
        yield Reason(
            f"nothing expires: {overdue.refusal}",
            f"lake set-option {table} {keys}.num-retained.min=VALUE, or "
            f"{keys}.num-retained.max=VALUE",
        )
    yield from _of_snapshots(handle, storage, overdue)
    yield from _of_changelogs(handle, overdue)
    for each in snapshots.stalled_consumers:
        yield Reason(each.finding, each.advice(handle.argument))
    if _is_much(_undeleted_bytes(storage, overdue), files, storage):
        yield _of_bytes(handle, snapshots, storage, overdue)
    if storage.unknown is not None and storage.unknown.old_files:
        yield Reason(
            f"nothing refers to {counted(storage.unknown.old_files, 'file')} with "
            f"{size(storage.unknown.old_bytes)}, last changed a day or more before the newest "
            "commit: probably a writer that died left them",
            f"lake orphans {handle.argument} --remove",
        )


def undeleted_share(
    files: FileFacts, snapshots: SnapshotFacts, storage: StorageFacts, overdue: Overdue
) -> float:
    """Return the share of the table, from 0 to 1, that should have been deleted already.

    It is the largest of several shares: of the snapshots, of the changelogs, and of the bytes.
    """
    shares = [overdue.snapshots.backlog, overdue.changelogs.backlog]
    if snapshots.stalled_consumers:
        shares.append(overdue.held_backlog)
    undeleted = (storage.overdue_bytes or 0) + (storage.branch_bytes or 0)
    if _is_much(undeleted, files, storage):
        shares.append(undeleted / (undeleted + storage.live_bytes))
    dead = 0 if storage.unknown is None else storage.unknown.old_bytes
    if dead:
        shares.append(dead / (dead + storage.live_bytes))
    return max(shares)


def _of_snapshots(handle: TableHandle, storage: StorageFacts, overdue: Overdue) -> Iterator[Reason]:
    numbers = overdue.snapshots
    if not numbers.backlog:
        return
    held = storage.overdue_bytes
    freed = f" {size(held)} are kept only for them." if held else ""
    yield Reason(
        f"{numbers.expirable:,} of {counted(numbers.count, 'snapshot')} are beyond their retention "
        f"({retention_text(handle.options)}).{freed} {_who_deletes(handle.options)}",
        f"lake expire {handle.argument} --limit {numbers.expirable}",
    )


def _of_changelogs(handle: TableHandle, overdue: Overdue) -> Iterator[Reason]:
    numbers = overdue.changelogs
    if not numbers.backlog:
        return
    yield Reason(
        f"{numbers.expirable:,} of {counted(numbers.count, 'changelog')} that outlived their "
        "snapshots are beyond their own retention ('changelog.time-retained' and "
        f"'changelog.num-retained.max'). {_who_deletes(handle.options)}",
        f"lake expire {handle.argument} --limit {numbers.expirable}",
    )


def _who_deletes(options: TableOptions) -> str:
    if options.write_only:
        return "The writers delete none, because 'write-only' is true: schedule `lake expire`"
    return (
        f"Writers of Flink and Spark delete at most {options.snapshot_expire_limit} at each "
        "commit, and none once they have stopped"
    )


def retention_text(options: TableOptions) -> str:
    """Describe the snapshots that the options keep, such as ``the last 1 h, at least 10``."""
    most = options.snapshot_num_retained_max
    limit = "" if most == _UNLIMITED else f", at most {most:,}"
    return (
        f"the last {duration(options.snapshot_time_retained_millis)}, at least "
        f"{options.snapshot_num_retained_min:,}{limit}"
    )


def _undeleted_bytes(storage: StorageFacts, overdue: Overdue) -> int:
    """Return the bytes that only branches and overdue snapshots keep.

    The bytes of overdue snapshots are left out if another reason already reports them.
    """
    of_snapshots = 0 if overdue.snapshots.backlog else storage.overdue_bytes or 0
    return of_snapshots + (storage.branch_bytes or 0)


def _is_much(undeleted: int, files: FileFacts, storage: StorageFacts) -> bool:
    return undeleted > max(_MUCH_HISTORY * storage.live_bytes, files.target_file_size)


def _of_bytes(
    handle: TableHandle, snapshots: SnapshotFacts, storage: StorageFacts, overdue: Overdue
) -> Reason:
    """Return a reason about the bytes that only branches and overdue snapshots keep.

    The advice is about branches if they keep at least half of these bytes, else about snapshots.
    """
    table, of_branches = handle.argument, storage.branch_bytes or 0
    undeleted = _undeleted_bytes(storage, overdue)
    more = f"more than {_MUCH_HISTORY} times the {size(storage.live_bytes)} of the newest snapshot"
    branches = counted(snapshots.branches, "branch", "branches") if of_branches else ""
    overdue_count = _overdue_count(overdue) if of_branches < undeleted else ""
    kept_for = " and ".join(filter(None, [branches, overdue_count]))
    what = f"{size(undeleted)} are kept only for {kept_for}"
    if 2 * of_branches >= undeleted:
        found = [each for each in snapshots.holders if each.what.startswith("branch ")]
        oldest = f"; the oldest is {found[0]}" if found else ""
        return Reason(
            f"{what}, {more}{oldest}",
            f"lake branch list {table} shows them; lake branch delete {table} NAME deletes one "
            "with the files that only it needs",
        )
    return Reason(f"{what}, {more}", f"lake expire {table}")


def _overdue_count(overdue: Overdue) -> str:
    if overdue.snapshots.expirable:
        return f"{counted(overdue.snapshots.expirable, 'snapshot')} beyond the retention"
    return f"{counted(overdue.changelogs.expirable, 'changelog')} beyond the retention"
