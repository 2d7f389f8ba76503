# SPDX-License-Identifier: Apache-2.0
"""Expires partitions: deletes their rows, in one or more commits.

The files are deleted when the snapshots that name them expire. One snapshot decides which
partitions expire; after a conflict, a newer snapshot decides about the remaining ones. With the
strategy ``update-time``, a commit that changes an expiring partition meanwhile is a conflict.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, TypeAlias

import pyarrow as pa

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.commit.commit import CommitOptions, commit_messages
from lakeformat.paimon.expiry_race import head_of
from lakeformat.paimon.handle import TableHandle, require_allowed
from lakeformat.paimon.metadata.data_file_meta import local_wall_clock
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import latest_snapshot
from lakeformat.paimon.options import TableOptions
from lakeformat.paimon.options.operation import Operation
from lakeformat.paimon.options.option import Option
from lakeformat.paimon.partition_filter import these_partitions
from lakeformat.paimon.partitions.expired import UPDATE_TIME, ExpireRules, Expiry, pick_expired
from lakeformat.paimon.partitions.live import live_partitions
from lakeformat.paimon.partitions.mark_done import remove_marks_of_emptied
from lakeformat.paimon.partitions.partition_reports import ExpiredPartition, ExpirePartitionsReport
from lakeformat.tables.driver import Round, Steps, carry_out
from lakeformat.tables.moment import to_millis
from lakeformat.tables.past_time import PastTime, past_millis
from lakeformat.tables.time_format import fill_pattern, time_format
from lakeformat.types.duration_text import exact_duration

__all__ = ["ExpireRequest", "expire_partitions"]

_log = logging.getLogger(__name__)

_Batch: TypeAlias = Sequence[ExpiredPartition]
"""Partitions that are deleted in one commit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpireRequest:
    """The arguments of one call; an argument that is not None replaces a table option."""

    expiration_time: PastTime | None = None
    strategy: str | None = None
    timestamp_pattern: str | None = None
    timestamp_formatter: str | None = None
    max_num: int | None = None
    batch_size: int | None = None

    def rules(self, handle: TableHandle) -> ExpireRules:
        """Return the rules of this request, completed by the table options.

        Raise InvalidRequestError if the table has no partition columns, if no expiration time is
        set, or if a value is invalid.
        """
        if not handle.schema.partition_keys:
            raise InvalidRequestError(
                f"{handle.uri} has no partition columns, so no partition can expire: delete old "
                "rows with Table.delete, or create a table that is partitioned by time"
            )
        options = _with_request(handle.options, self)
        expiration = self._expiration(handle)
        pattern = options.partition_timestamp_pattern
        strategy = options.partition_expiration_strategy
        if strategy != UPDATE_TIME:
            fill_pattern(pattern, dict.fromkeys(handle.schema.partition_keys, ""))  # refuses it
        return ExpireRules(
            strategy=strategy,
            expiration=expiration,
            pattern=pattern,
            format=time_format(options.partition_timestamp_formatter),
            max_num=options.partition_expiration_max_num,
            batch_size=options.partition_expiration_batch_size,
        )

    def _expiration(self, handle: TableHandle) -> timedelta:
        asked = self.expiration_time
        if isinstance(asked, timedelta):
            found = asked
        elif asked is None:
            millis = handle.options.partition_expiration_time_millis
            if millis is None:
                raise InvalidRequestError(
                    f"{handle.uri} does not set 'partition.expiration-time', so its partitions "
                    "never expire: set the option by alter_table(…, "
                    "set_option('partition.expiration-time', '7 d')), or pass expiration_time='7 d'"
                )
            found = timedelta(milliseconds=millis)
        else:
            now = handle.environment.now_millis()
            try:
                found = timedelta(milliseconds=now - past_millis("expiration_time", asked, now))
            except OverflowError:
                found = timedelta.max
        if found <= timedelta(0):
            shown = exact_duration(found // timedelta(milliseconds=1))
            name = "option 'partition.expiration-time'" if asked is None else "expiration_time"
            raise InvalidRequestError(
                f"{name} is {shown}, but must be above zero, because otherwise every "
                "partition would expire. Use drop_partitions (lake partition drop) to delete some "
                "of them, or truncate() to delete all rows"
            )
        return found

    def older_than(self, rules: ExpireRules, now_millis: int) -> datetime:
        """Return the local time before which partitions expire.

        If ``expiration_time`` is a point in time, return it converted to the local time of this
        machine. An age is subtracted from the local time, as in Java. A change to or from summer
        time does not shift the result: with an age of one day, the partition of today never
        expires.
        """
        asked = self.expiration_time
        try:
            if asked is not None and not isinstance(asked, timedelta):
                with suppress(InvalidRequestError):  # an age such as "7 d"
                    return local_wall_clock(to_millis(asked))
            return local_wall_clock(now_millis) - rules.expiration
        except (OverflowError, OSError, ValueError):
            return datetime.min  # noqa: DTZ901 - a wall clock, as files have it


def expire_partitions(
    handle: TableHandle, request: ExpireRequest, *, dry_run: bool = False
) -> ExpirePartitionsReport:
    """Delete the rows of expired partitions; with ``dry_run`` only list them.

    Raise InvalidRequestError if the table has no partition columns, if no expiration time is set,
    or if a value is invalid.
    """
    rules = request.rules(handle)
    if not dry_run:
        require_allowed(handle, Operation.COMMIT)
    older_than = request.older_than(rules, handle.environment.now_millis())
    run = _PartitionExpiry(handle, rules, older_than)
    if dry_run:
        run.plan()
    else:
        run.until_done()
    report = run.report(dry_run=dry_run)
    _log.info("expiry of partitions of %s: %s", handle.name, report.reason)
    if report.warning is not None:
        _log.warning("%s: %s", handle.name, report.warning)
    return report


@dataclass(slots=True)
class _PartitionExpiry:
    handle: TableHandle
    rules: ExpireRules
    older_than: datetime
    _plan: Expiry = field(default_factory=Expiry)
    _read: Snapshot | None = None
    """The snapshot on which the expiry was planned.

    A later commit that changes an expired partition is a conflict. None if there is no such check.
    """
    _done: list[ExpiredPartition] = field(default_factory=list)
    _snapshot_ids: list[int] = field(default_factory=list)

    def plan(self) -> Snapshot | None:
        """Choose the partitions to delete, by their state in the newest snapshot.

        Return that snapshot; None for a table without commits. Partitions that this call has
        already deleted count towards the limit of partitions.
        """
        head = latest_snapshot(self.handle.storage, self.handle.layout)
        there = live_partitions(self.handle, head)
        rules = replace(self.rules, max_num=self.rules.max_num - len(self._done))
        self._plan = pick_expired(self.handle.schema, there, rules, self.older_than)
        return head

    def until_done(self) -> None:
        """Delete the chosen partitions in batches; after a conflict, choose again on the newest
        snapshot.
        """
        carry_out(
            Steps(
                name=f"expiring partitions of {self.handle.uri}",
                head=head_of(self.handle),
                plan=self._plan_round,
                take=self._delete,
                environment=self.handle.environment,
            )
        )

    def _plan_round(self) -> Round[_Batch, _Batch] | None:
        head = self.plan()
        if head is None or not self._plan.expired:
            return None
        # The age from a partition's values does not change when another commit writes to the
        # partition.
        self._read = head if self.rules.strategy == UPDATE_TIME else None
        batches = [*_batches(self._plan.expired, self.rules.batch_size)]
        return Round(units=batches, work=lambda batch: batch)

    def _delete(self, batch: _Batch) -> None:
        rows = pa.array([each.partition.row for each in batch], pa.large_binary())
        read = self._read
        options = CommitOptions(
            read_snapshot=None if read is None else read.id,
            read_identity=None if read is None else read.identity,
        )
        report = commit_messages(
            self.handle,
            [],
            options,
            overwrite=these_partitions(self.handle.schema, rows),
        )
        if report.snapshot_id is not None:
            self._snapshot_ids.append(report.snapshot_id)
        self._done += batch
        remove_marks_of_emptied(self.handle, report)

    def report(self, *, dry_run: bool) -> ExpirePartitionsReport:
        plan = self._plan
        expired = plan.expired if dry_run else tuple(self._done)
        return ExpirePartitionsReport(
            table=self.handle.uri,
            dry_run=dry_run,
            strategy=self.rules.strategy,
            older_than=self.older_than.isoformat(" ", "seconds"),
            expired=expired,
            left=plan.left,
            kept=plan.kept,
            unknown=plan.unknown,
            snapshot_ids=tuple(self._snapshot_ids),
            reason=_reason(expired, plan, dry_run=dry_run),
        )


def _reason(expired: Sequence[ExpiredPartition], plan: Expiry, *, dry_run: bool) -> str:
    would = "partitions that would be deleted" if dry_run else "partitions deleted"
    parts = [f"{would}: {len(expired)}" if expired else "no partition expired"]
    if plan.left:
        parts.append(f"left for the next run, because of the limit of one run: {plan.left}")
    if plan.unknown:
        parts.append(f"kept because their age is unknown: {len(plan.unknown)}")
    return "; ".join(parts)


def _batches(expired: Sequence[ExpiredPartition], size: int | None) -> Iterator[_Batch]:
    step = size or max(len(expired), 1)
    for start in range(0, len(expired), step):
        yield expired[start : start + step]


def _with_request(options: TableOptions, request: ExpireRequest) -> TableOptions:
    said: dict[Option[Any], object] = {
        TableOptions.partition_expiration_strategy: request.strategy,
        TableOptions.partition_timestamp_pattern: request.timestamp_pattern,
        TableOptions.partition_timestamp_formatter: request.timestamp_formatter,
        TableOptions.partition_expiration_max_num: request.max_num,
        TableOptions.partition_expiration_batch_size: request.batch_size,
    }
    texts = {option.key: str(value) for option, value in said.items() if value is not None}
    return TableOptions({**options.to_dict(), **texts})
