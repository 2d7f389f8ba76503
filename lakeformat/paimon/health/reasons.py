# SPDX-License-Identifier: Apache-2.0
"""The reasons against a healthy verdict: one sentence each, with the command that helps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from lakeformat.errors import UnsupportedError
from lakeformat.paimon.compact.other_compactor import OtherCompactor
from lakeformat.paimon.compact.supported import why_not_compacted
from lakeformat.paimon.consumers import StalledConsumer
from lakeformat.paimon.handle import TableHandle, require_allowed
from lakeformat.paimon.health.files import MUCH_DELETED
from lakeformat.paimon.health.health_report import (
    BucketFacts,
    DeleteFacts,
    FileFacts,
    SnapshotFacts,
    StorageFacts,
)
from lakeformat.paimon.health.history_reasons import history_reasons
from lakeformat.paimon.health.overdue import Overdue
from lakeformat.paimon.options.operation import Operation
from lakeformat.paimon.read.buckets import skips_level_zero
from lakeformat.paimon.read.postponed_rows import merges_postponed_rows
from lakeformat.tables.health.verdict import Reason
from lakeformat.types.byte_size import size

__all__ = ["find_reasons"]

STALL_AFTER = 3
"""Writers of other engines wait if a bucket has this many sorted runs more than
``num-sorted-run.compaction-trigger``.

If the option ``num-sorted-run.stop-trigger`` is set, they wait at that number of runs.
"""
_SHOWN_FILES = 3
_COMPACT = "lake compact "
_EXPIRE = "lake expire "
_STEPS = (_COMPACT, _EXPIRE, "lake orphans ")


def find_reasons(
    handle: TableHandle,
    table: str,
    files: FileFacts,
    worst: Sequence[BucketFacts],
    deletes: DeleteFacts,
    snapshots: SnapshotFacts,
    storage: StorageFacts,
    overdue: Overdue,
    other: OtherCompactor | None,
) -> tuple[Reason, ...]:
    """Return the reasons that follow from the numbers of a report, each with advice.

    If the table refuses an advised command, the refusal replaces the advice. ``other`` is
    None if no other program compacts the table.
    """
    found = [
        *_of_lost_files(table, storage, snapshots),
        *(_of_runs if handle.schema.primary_keys else _of_small_files)(handle, table, files, worst),
        *_of_invisible_rows(handle, table, files),
        *_of_deletes(handle, table, files, deletes),
        *history_reasons(handle, files, snapshots, storage, overdue),
        *([] if other is None else [Reason(other.finding, other.advice)]),
        *_of_publication(table, snapshots),
    ]
    found = _without_refused(handle, found)
    return tuple(_by_one_command(found, table, snapshots.stalled_consumers))


def _without_refused(handle: TableHandle, reasons: Sequence[Reason]) -> list[Reason]:
    """Return ``reasons``. Where the table refuses the advised command, its refusal replaces the
    advice.
    """
    found = [*reasons]
    for command, why_refused in _REFUSALS.items():
        is_due = any(reason.advice.startswith(command) for reason in found)
        refusal = why_refused(handle) if is_due else None
        if refusal is not None:
            found = [
                replace(reason, advice=refusal) if reason.advice.startswith(command) else reason
                for reason in found
            ]
    return found


def _why_not_expired(handle: TableHandle) -> str | None:
    try:
        require_allowed(handle, Operation.EXPIRE)
    except UnsupportedError as reason:
        return str(reason)
    return None


_REFUSALS: Final[Mapping[str, Callable[[TableHandle], str | None]]] = {
    _COMPACT: why_not_compacted,
    _EXPIRE: _why_not_expired,
}


def _by_one_command(
    reasons: Sequence[Reason], table: str, consumers: Sequence[StalledConsumer]
) -> list[Reason]:
    """Return ``reasons``. If several steps are due, ``lake maintain`` is the advice for each.

    A stalled consumer counts as one more step.
    """
    steps = {step for reason in reasons for step in _STEPS if reason.advice.startswith(step)}
    if not steps or len(steps) + bool(consumers) < 2:
        return [*reasons]
    advice = {each.finding: each.advice_to_maintain(table) for each in consumers}
    return [
        replace(reason, advice=f"lake maintain {table}")
        if any(reason.advice.startswith(step) for step in _STEPS)
        else replace(reason, advice=advice.get(reason.finding, reason.advice))
        for reason in reasons
    ]


def _of_lost_files(table: str, storage: StorageFacts, snapshots: SnapshotFacts) -> Iterator[Reason]:
    if lost := storage.lost_files:
        one = len(lost) == 1
        them, partitions = ("it", "its partition") if one else ("them", "their partitions")
        yield Reason(
            f"{_many(len(lost), 'file')} of the newest snapshot {_are(lost)} missing or truncated: "
            f"{_some(lost)}; reads that need {them} fail",
            f"restore {them} from a copy, or write {partitions} again from the source",
            is_severe=True,
        )
    if lost := storage.lost_changelog_files:
        later = f"lake consumer set {table} NAME --next {(snapshots.newest or 0) + 1}"
        yield Reason(
            f"{_many(len(lost), 'changelog file')} {_are(lost)} missing or truncated: "
            f"{_some(lost)}; readers of those changes fail",
            f"restore the files from a copy, or let the readers skip these changes: {later}",
            is_severe=True,
        )


def _of_publication(table: str, snapshots: SnapshotFacts) -> Iterator[Reason]:
    lag = snapshots.publication
    if lag is not None and lag.finding is not None:
        yield Reason(lag.finding, lag.advice or f"lake publish {table}")


def _are(lost: Sequence[str]) -> str:
    return "is" if len(lost) == 1 else "are"


def _some(lost: Sequence[str]) -> str:
    more = ", …" if len(lost) > _SHOWN_FILES else ""
    return f"{', '.join(lost[:_SHOWN_FILES])}{more}"


def _of_runs(
    handle: TableHandle, table: str, files: FileFacts, worst: Sequence[BucketFacts]
) -> Iterator[Reason]:
    trigger = handle.options.compaction_trigger
    stalls = max(handle.options.stop_trigger or trigger + STALL_AFTER, trigger)
    if not files.buckets_due or not worst:
        return
    most = worst[0].sorted_runs or 0
    have = "has" if files.buckets_due == 1 else "have"
    yield Reason(
        f"{files.buckets_due} of {_many(files.buckets, 'bucket')} {have} {trigger} or more sorted "
        f"runs; {_place(worst[0])} has the most, {most}; each read merges them",
        f"lake compact {table}",
        is_severe=most >= stalls,
    )


def _of_small_files(
    handle: TableHandle, table: str, files: FileFacts, worst: Sequence[BucketFacts]
) -> Iterator[Reason]:
    if not files.small_files or not files.buckets_due or not worst:
        return
    ratio = handle.options.compaction_small_file_ratio
    yield Reason(
        f"{files.small_files} of {_many(files.files, 'file')}, with {size(files.small_bytes)}, "
        f"{'is' if files.small_files == 1 else 'are'} smaller than {ratio:g} of the target size, "
        f"{size(files.target_file_size)}; "
        f"{_place(worst[0])} has the most, {worst[0].small_files}",
        f"lake compact {table}",
    )


def _of_invisible_rows(handle: TableHandle, table: str, files: FileFacts) -> Iterator[Reason]:
    if skips_level_zero(handle.schema) and files.level_0_files:
        yield Reason(
            f"until a compaction, batch reads do not see {_many(files.level_0_rows or 0, 'row')} "
            f"in {_many(files.level_0_files, 'file')} of level 0",
            f"lake compact {table} --strategy full",
        )
    if files.postponed_files:
        is_merged = merges_postponed_rows(handle.schema)
        seen = "merge them in memory" if is_merged else "do not see them"
        yield Reason(
            f"the rows of {_many(files.postponed_files, 'file')} have no bucket yet: batch reads "
            f"{seen}",
            f"lake compact {table}",
        )


def _of_deletes(
    handle: TableHandle, table: str, files: FileFacts, deletes: DeleteFacts
) -> Iterator[Reason]:
    if deletes.files_over_limit:
        limit = handle.options.compaction_delete_ratio_threshold
        yield Reason(
            f"in {_many(deletes.files_over_limit, 'file')}, deletion vectors hide more than "
            f"{limit:.0%} of the rows",
            f"lake compact {table} --strategy full",
        )
    if files.rows and deletes.delete_rows > MUCH_DELETED * files.rows:
        yield Reason(
            f"{deletes.delete_rows} of {files.rows} rows in files are delete rows, which only a "
            "full compaction removes",
            f"lake compact {table} --strategy full",
        )


def _place(bucket: BucketFacts) -> str:
    where = f" of partition {bucket.partition}" if bucket.partition else ""
    return f"bucket {bucket.bucket}{where}"


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
