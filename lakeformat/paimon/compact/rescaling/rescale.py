# SPDX-License-Identifier: Apache-2.0
"""Gives partitions another number of buckets, and rewrites each partition by one OVERWRITE.

The merged rows of a partition are written with the new number of buckets and replace the partition.
If another commit changes the partition meanwhile, the partition is planned again. Older snapshots
are not changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from lakeformat.errors import InvalidRequestError, LakeError, UnsupportedError
from lakeformat.executor import Executor, where_to_work
from lakeformat.paimon.commit.commit import CommitOptions, commit_messages
from lakeformat.paimon.commit.written_files import delete_written
from lakeformat.paimon.compact.changelogs.waiting import level_without_changelog
from lakeformat.paimon.compact.newest_schema import newest_schema
from lakeformat.paimon.compact.partition_choice import WHOLE_TABLE, Chosen, chosen_partitions
from lakeformat.paimon.compact.postponed import with_buckets
from lakeformat.paimon.compact.rescaling.part import (
    Part,
    PartOutcome,
    Rewriting,
    classes_of,
    scan_of,
)
from lakeformat.paimon.compact.rescaling.rescale_report import RescaledPartition, RescaleReport
from lakeformat.paimon.compact.supported import require_whole_rows
from lakeformat.paimon.expiry_race import again_if_overtaken, head_of
from lakeformat.paimon.handle import TableHandle, require_allowed, require_writable
from lakeformat.paimon.metadata.commit_message import CommitMessage
from lakeformat.paimon.metadata.manifest import ManifestEntry
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import latest_snapshot
from lakeformat.paimon.options.kinds import POSTPONE_BUCKET
from lakeformat.paimon.options.operation import Operation
from lakeformat.paimon.partition import partition_name, partition_path
from lakeformat.paimon.partition_filter import these_partitions
from lakeformat.paimon.read.buckets import skips_level_zero
from lakeformat.paimon.read.plan import plan_columns
from lakeformat.paimon.read.scan import Scan
from lakeformat.paimon.read.splits import Split
from lakeformat.tables.driver import Round, Steps, carry_out
from lakeformat.tables.kept_files import kept_if_published

__all__ = ["rescale"]


def rescale(
    handle: TableHandle,
    *,
    bucket: int | None = None,
    chosen: Chosen = WHOLE_TABLE,
    dry_run: bool = False,
    executor: str | Executor | None = None,
) -> RescaleReport:
    """Rewrite partitions so that each has ``bucket`` buckets; None for the table option ``bucket``.

    ``executor=None`` does the work in this thread. Raise UnsupportedError for a table that cannot
    be rescaled. Raise InvalidRequestError for a wrong number of buckets, a wrong choice of
    partitions, or a partition that must be compacted first. Raise CommitConflictError if other
    commits change a partition again and again.
    """
    where = where_to_work("serial" if executor is None else executor)
    handle = newest_schema(handle)
    count = _require_count(handle, bucket)
    run = _Rescale(handle, count, where, chosen_partitions(handle.schema, chosen))
    done = run.planned() if dry_run else run.until_done()
    return RescaleReport.of(handle, count, done, dry_run=dry_run)


@dataclass(frozen=True, slots=True)
class _RescaledPartition:
    """A partition to rescale to ``count`` buckets, with its files in one snapshot."""

    handle: TableHandle
    """The table with the schema of the plan; no file of the snapshot has a newer schema."""
    snapshot: Snapshot
    partition: bytes
    files: tuple[ManifestEntry, ...]
    count: int

    @property
    def is_due(self) -> bool:
        return any(entry.total_buckets != self.count for entry in self.files)

    @property
    def outcome(self) -> RescaledPartition:
        return RescaledPartition(
            partition=partition_name(self.handle.schema, self.partition),
            buckets_before=self.files[0].total_buckets,
            buckets=self.count,
            rows_in=sum(entry.file.row_count for entry in self.files),
            bytes_in=sum(entry.file.file_size for entry in self.files),
            outcome="not due",
        )


def _require_count(handle: TableHandle, bucket: object) -> int:
    """Return the new number of buckets: ``bucket`` or, for None, the option of the table.

    Raise UnsupportedError for a table that cannot be rescaled. Raise InvalidRequestError if the
    number is missing, or if it is not an int of at least 1.
    """
    require_writable(handle)
    require_allowed(handle, Operation.COMPACT)
    option = int(handle.options.bucket)
    if option == POSTPONE_BUCKET and bucket is None:
        raise InvalidRequestError(
            f"each partition of {handle.uri} has its own number of buckets ('bucket' = '-2'): "
            "pass the new number as bucket= (--bucket)"
        )
    if option < 0 and option != POSTPONE_BUCKET:
        why = (
            "has dynamic buckets ('bucket' = '-1'): they grow by themselves and cannot be rescaled"
        )
        if not handle.schema.primary_keys:
            why = "has only one bucket ('bucket' = '-1') and cannot be rescaled"
            if not handle.options.row_tracking_enabled:  # such a table cannot be compacted here
                why += ": compact it instead"
        raise UnsupportedError(f"{handle.uri} {why}")
    if handle.options.row_tracking_enabled:
        raise UnsupportedError(
            f"{handle.uri} tracks row ids ('row-tracking.enabled'), which this version would lose: "
            "rescale it with another engine"
        )
    count = option if bucket is None else bucket
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise InvalidRequestError(f"bucket must be a number of buckets, at least 1; got {bucket!r}")
    return count


def _units_now(handle: TableHandle, count: int) -> dict[bytes, _RescaledPartition]:
    snapshot = latest_snapshot(handle.storage, handle.layout)
    # The schema is read after the snapshot. Otherwise columns of its files could be lost.
    handle = newest_schema(handle)
    if snapshot is None:
        return {}
    files: dict[bytes, list[ManifestEntry]] = {}
    for entry in plan_columns(handle, snapshot).entries():
        if entry.bucket >= 0:
            files.setdefault(entry.partition, []).append(entry)
    return {
        partition: _RescaledPartition(handle, snapshot, partition, tuple(found), count)
        for partition, found in files.items()
    }


def _planned(unit: _RescaledPartition) -> RescaledPartition:
    if not unit.is_due:
        return unit.outcome
    _require_seen(unit)
    return replace(unit.outcome, outcome="planned")


@dataclass(slots=True)
class _Rescale:
    handle: TableHandle
    count: int
    executor: str | Executor
    are_meant: Callable[[set[bytes]], set[bytes]]
    outcomes: dict[bytes, RescaledPartition] = field(default_factory=dict)
    _wanted: list[bytes] | None = None
    """The partitions (framed binary rows) to plan again; None before the first plan."""
    _made: _UnpublishedPartitions = field(init=False)

    def planned(self) -> list[RescaledPartition]:
        return [*map(_planned, again_if_overtaken(self.handle, self._units))]

    def until_done(self) -> list[RescaledPartition]:
        """Rescale the chosen partitions that are due, and return the outcomes of all chosen ones.

        Partitions that another commit changes meanwhile are planned and rewritten again.
        """
        carry_out(
            Steps(
                name=f"rescaling {self.handle.uri}",
                head=head_of(self.handle),
                plan=self._plan_round,
                take=self._take,
                finish=self._finish,
                give_up=lambda: self._made.give_up(),
                discard=lambda outcome: delete_written(self._made.target, outcome[1]),
                environment=self.handle.environment,
                executor=self.executor,
            )
        )
        return [*self.outcomes.values()]

    def _plan_round(self) -> Round[Part, PartOutcome] | None:
        due = [unit for unit in self._units() if unit.is_due]
        self._wanted = [unit.partition for unit in due]
        if not due:
            return None
        for unit in due:
            _require_seen(unit)
        handle, snapshot = due[0].handle, due[0].snapshot
        scan = scan_of(handle, snapshot)
        parts = _parts(due, scan, in_one=self.executor == "serial")
        if not isinstance(self.executor, str):
            parts.sort(key=lambda part: -part.bytes)
        self._made = _UnpublishedPartitions(with_buckets(handle, self.count), due, parts)
        work = Rewriting(handle, scan, snapshot.id, self.count)
        return Round(units=parts, work=work)

    def _units(self) -> list[_RescaledPartition]:
        newest = _units_now(self.handle, self.count)
        if self._wanted is None:
            meant = self.are_meant({*newest})
            self.outcomes = {each: unit.outcome for each, unit in newest.items() if each in meant}
        wanted = self.outcomes if self._wanted is None else self._wanted
        return [newest[each] for each in wanted if each in newest]

    def _take(self, outcome: PartOutcome) -> None:
        part, messages, error = outcome
        made = self._made
        try:
            if error is not None:
                raise error
            if (whole := made.add(part, messages)) is not None:
                unit = made.units[part.partition]
                self.outcomes[part.partition] = _published(made.target, unit, whole)
        except LakeError:
            made.refuse(part)
            raise

    def _finish(self) -> None:
        self._wanted = [*self._made.refused]


class _UnpublishedPartitions:
    def __init__(
        self, target: TableHandle, units: Sequence[_RescaledPartition], parts: Sequence[Part]
    ) -> None:
        self.target = target
        self.units = {unit.partition: unit for unit in units}
        self.refused: dict[bytes, _RescaledPartition] = {}
        self._lacking = Counter(part.partition for part in parts)
        self._messages: dict[bytes, list[CommitMessage]] = {}

    def add(self, part: Part, messages: list[CommitMessage]) -> list[CommitMessage] | None:
        """Keep the messages of ``part``; after the last part, return those of the whole partition.

        Return None before the last part. If the partition was refused, delete the files of the part
        and return None.
        """
        if part.partition in self.refused:
            delete_written(self.target, messages)
            return None
        kept = self._messages.setdefault(part.partition, [])
        kept += messages
        self._lacking[part.partition] -= 1
        return None if self._lacking[part.partition] else self._messages.pop(part.partition)

    def refuse(self, part: Part) -> None:
        """Delete the files written for the partition of ``part``; the next round plans it again."""
        self.refused[part.partition] = self.units[part.partition]
        delete_written(self.target, self._messages.pop(part.partition, []))

    def give_up(self) -> None:
        for messages in self._messages.values():
            delete_written(self.target, messages)
        self._messages.clear()


def _parts(units: Sequence[_RescaledPartition], scan: Scan, *, in_one: bool) -> list[Part]:
    """Divide each partition into parts that can be rewritten independently, and return the parts.

    With ``in_one``, each partition is a single part. Otherwise it has at most as many parts as
    ``classes_of`` returns.
    """
    splits: dict[bytes, list[Split]] = {unit.partition: [] for unit in units}
    for split in scan.splits():
        if split.partition in splits and split.bucket >= 0:
            splits[split.partition].append(split)
    parts: list[Part] = []
    for unit in units:
        before = {entry.total_buckets for entry in unit.files}
        classes = 1 if in_one else classes_of(unit.handle, [*before], unit.count)
        by_class: dict[int, list[Split]] = {}
        for split in splits[unit.partition]:
            by_class.setdefault(split.bucket % classes, []).append(split)
        for remainder, of_class in (
            by_class or {0: []}
        ).items():  # the partition may have no rows left
            parts.append(Part(unit.partition, tuple(of_class), classes, remainder))
    return parts


def _require_seen(unit: _RescaledPartition) -> None:
    """Raise InvalidRequestError for a partition with rows that a rescale would lose.

    These are rows that no reader sees yet, or that the changelog does not contain yet. Raise
    UnsupportedError for files that have only some columns of their rows.
    """
    require_whole_rows(unit.handle, unit.files)
    levels = {entry.file.level for entry in unit.files}
    options = unit.handle.options
    waiting = None
    if skips_level_zero(unit.handle.schema) and 0 in levels:
        waiting = "rows on level 0, which only a compaction makes visible"
    elif options.makes_changelog and min(levels) <= level_without_changelog(options, levels):
        waiting = f"rows that its changelog ({options.changelog_producer!r}) does not contain yet"
    if waiting is not None:
        place = partition_path(unit.handle.schema, unit.partition)
        raise InvalidRequestError(
            f"{f'partition {place} of ' if place else ''}{unit.handle.uri} has {waiting}: compact "
            "it first (Table.compact, or lake compact). This partition was not changed"
        )


def _published(
    target: TableHandle, unit: _RescaledPartition, messages: list[CommitMessage]
) -> RescaledPartition:
    """Replace a partition by its new files, and return its outcome.

    After an error the new files are deleted, unless they may have been published.
    """
    replaced = these_partitions(target.schema, pa.array([unit.partition], pa.large_binary()))
    read = unit.snapshot
    options = CommitOptions(read_snapshot=read.id, read_identity=read.identity)
    with kept_if_published(lambda: delete_written(target, messages)):
        report = commit_messages(target, messages, options, overwrite=replaced)
    files = [file for message in messages for file in message.new_files]
    return replace(
        unit.outcome,
        outcome="rescaled",
        snapshot_id=report.snapshot_id,
        rows_out=sum(file.row_count for file in files),
        bytes_out=sum(file.file_size for file in files),
    )
