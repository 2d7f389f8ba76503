"""Another number of buckets for what is there: partition by partition, each in one OVERWRITE.

A partition is read merged, written under the new number, and put in place of itself, unless
somebody has written to it since: then it is planned again. Older snapshots keep what they had.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from threading import Event

import pyarrow as pa

from lakeformat.errors import (
    CommitConflictError,
    CommitOutcomeUnknownError,
    CorruptTableError,
    InvalidRequestError,
    LakeError,
    NotFoundError,
    UnsupportedError,
)
from lakeformat.executor import Executor, outcomes_of, where_to_work
from lakeformat.paimon.commit.abort import delete_written
from lakeformat.paimon.commit.commit import CommitOptions, commit_messages
from lakeformat.paimon.compact.changelogs.producers import makes_changelog
from lakeformat.paimon.compact.plan import newest_schema
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
from lakeformat.paimon.compact.where import chosen_partitions
from lakeformat.paimon.expiry_race import again_if_overtaken, is_overtaken
from lakeformat.paimon.handle import TableHandle, require_allowed, require_writable
from lakeformat.paimon.layout import POSTPONE_BUCKET
from lakeformat.paimon.metadata.commit_message import CommitMessage
from lakeformat.paimon.metadata.manifest import ManifestEntry
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import latest_snapshot
from lakeformat.paimon.options import TableOptions
from lakeformat.paimon.options.operation import Operation
from lakeformat.paimon.partition import partition_path
from lakeformat.paimon.partition_filter import these_partitions
from lakeformat.paimon.read.buckets import skips_level_zero
from lakeformat.paimon.read.plan import plan_columns
from lakeformat.paimon.read.scan import Scan
from lakeformat.paimon.read.splits import Split
from lakeformat.paimon.read.where import Partitions
from lakeformat.rows.conditions.filter import Where

__all__ = ["rescale"]

_log = logging.getLogger(__name__)
_TRIES = 10
"""So often a partition is planned again that others write to."""
_OVERTAKEN = (CommitConflictError, CorruptTableError, NotFoundError)
"""What may come of it that others wrote to a partition, and expired what was read of it."""


def rescale(
    handle: TableHandle,
    *,
    bucket: int | None = None,
    where: Where | None = None,
    partitions: Partitions | None = None,
    dry_run: bool = False,
    executor: str | Executor | None = None,
) -> RescaleReport:
    """Bring partitions to a number of buckets, that of the table's options unless given."""
    run = _Run(where_to_work("serial" if executor is None else executor))
    handle = newest_schema(handle)
    count = _require_count(handle, bucket)
    asked = chosen_partitions(handle.schema, where, partitions)
    units = _units(handle, count)
    meant = asked({*units})
    chosen = [units[each] for each in units if each in meant]
    done = [*map(_planned, chosen)] if dry_run else run.until_done(chosen)
    return RescaleReport.of(handle, count, done, dry_run=dry_run)


@dataclass(frozen=True, slots=True)
class _Unit:
    """A partition as a snapshot has it."""

    handle: TableHandle
    """The table as it looked after the snapshot: no file of that has newer columns."""
    snapshot: Snapshot
    partition: bytes
    files: tuple[ManifestEntry, ...]
    count: int

    @property
    def is_due(self) -> bool:
        """Whether some file counts other buckets."""
        return any(entry.total_buckets != self.count for entry in self.files)

    @property
    def outcome(self) -> RescaledPartition:
        """What is known before it is run."""
        return RescaledPartition(
            partition=partition_path(self.handle.schema, self.partition),
            buckets_before=self.files[0].total_buckets,
            buckets=self.count,
            rows_in=sum(entry.file.row_count for entry in self.files),
            bytes_in=sum(entry.file.file_size for entry in self.files),
            outcome="not due",
        )


def _require_count(handle: TableHandle, bucket: object) -> int:
    """The number of buckets asked for, of a table that has a number of them."""
    require_writable(handle)
    require_allowed(handle, Operation.COMPACT)
    option = int(handle.options.bucket)
    if option == POSTPONE_BUCKET and bucket is None:
        raise InvalidRequestError(
            f"partitions of {handle.uri} have each their own number of buckets ('bucket' = '-2'): "
            "say which they are to have"
        )
    if option < 0 and option != POSTPONE_BUCKET:
        raise UnsupportedError(
            f"{handle.uri} has as many buckets as it needs ('bucket' = '-1'): there is no number "
            "to change"
        )
    if handle.options.row_tracking_enabled:
        raise UnsupportedError(
            f"{handle.uri} numbers its rows ('row-tracking.enabled'): this version would lose the "
            "numbers"
        )
    count = option if bucket is None else bucket
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise InvalidRequestError(f"bucket is how many buckets there are to be, got {bucket!r}")
    return count


def _units(handle: TableHandle, count: int) -> dict[bytes, _Unit]:
    """Every partition of the newest snapshot with rows that have a bucket."""
    return again_if_overtaken(handle, lambda: _units_now(handle, count))


def _units_now(handle: TableHandle, count: int) -> dict[bytes, _Unit]:
    snapshot = latest_snapshot(handle.storage, handle.layout)
    handle = newest_schema(handle)  # after the snapshot, or its files might lose newer columns
    if snapshot is None:
        return {}
    files: dict[bytes, list[ManifestEntry]] = {}
    for entry in plan_columns(handle, snapshot).entries():
        if entry.bucket >= 0:
            files.setdefault(entry.partition, []).append(entry)
    return {
        partition: _Unit(handle, snapshot, partition, tuple(found), count)
        for partition, found in files.items()
    }


def _planned(unit: _Unit) -> RescaledPartition:
    if not unit.is_due:
        return unit.outcome
    _require_seen(unit)
    return replace(unit.outcome, outcome="planned")


@dataclass(slots=True)
class _Run:
    """What has become of each partition so far."""

    executor: str | Executor
    outcomes: dict[bytes, RescaledPartition] = field(default_factory=dict)

    def until_done(self, units: Sequence[_Unit]) -> list[RescaledPartition]:
        """Read, write and publish partitions, again those somebody has written to meanwhile."""
        self.outcomes = {unit.partition: unit.outcome for unit in units}
        due = [unit for unit in units if unit.is_due]
        for tries_left in reversed(range(_TRIES)):
            if not due:
                break
            refused = self._round(due, may_refuse=tries_left > 0)
            newest = _units(due[0].handle, due[0].count) if refused else {}
            again = [newest[unit.partition] for unit in refused if unit.partition in newest]
            due = [unit for unit in again if unit.is_due]
        return [*self.outcomes.values()]

    def _round(self, units: Sequence[_Unit], *, may_refuse: bool) -> list[_Unit]:
        """Rescale units of one snapshot; those that have to be planned again."""
        handle, snapshot, count = units[0].handle, units[0].snapshot, units[0].count

        def refuse(reason: LakeError) -> None:
            # Expiry follows writers: what was read may have gone once there is a newer snapshot.
            if not may_refuse or not is_overtaken(handle, snapshot.id):
                raise reason
            _log.info("partitions of %s are rescaled again: %s", handle.uri, reason)

        for unit in units:
            _require_seen(unit)
        scan = scan_of(handle, snapshot)
        try:
            parts = _parts(units, scan, in_one=self.executor == "serial")
        except _OVERTAKEN as reason:
            refuse(reason)
            return [*units]
        if not isinstance(self.executor, str):
            parts.sort(key=lambda part: -part.bytes)
        made = _Made(with_buckets(handle, count), units, parts)
        stop = Event()
        outcomes = self._started(Rewriting(handle, scan, snapshot.id, count), parts, stop)
        try:
            for part, messages, error in outcomes:
                unit = made.units[part.partition]
                try:
                    if error is not None:
                        raise error
                    if (whole := made.add(part, messages)) is not None:
                        self.outcomes[part.partition] = _published(made.target, unit, whole)
                except _OVERTAKEN as reason:
                    refuse(reason)
                    made.refuse(part)
        except BaseException:
            stop.set()
            made.give_up()
            for _, messages, _ in outcomes:
                delete_written(made.target, messages)
            raise
        return [*made.refused.values()]

    def _started(
        self, work: Rewriting, parts: Sequence[Part], stop: Event
    ) -> Iterator[PartOutcome]:
        if not isinstance(self.executor, str):
            return self.executor.outcomes(work, parts, stop)

        def unless_stopped(part: Part) -> PartOutcome:
            return (part, [], None) if stop.is_set() else work(part)

        def lost(outcome: PartOutcome) -> None:
            delete_written(work.handle, outcome[1])

        return outcomes_of(self.executor, unless_stopped, parts, stop=stop, lost=lost)


class _Made:
    """What was written of partitions that are not published yet."""

    def __init__(self, target: TableHandle, units: Sequence[_Unit], parts: Sequence[Part]) -> None:
        self.target = target
        self.units = {unit.partition: unit for unit in units}
        self.refused: dict[bytes, _Unit] = {}
        self._lacking = Counter(part.partition for part in parts)
        self._messages: dict[bytes, list[CommitMessage]] = {}

    def add(self, part: Part, messages: list[CommitMessage]) -> list[CommitMessage] | None:
        """All of a partition, once its last part is there."""
        if part.partition in self.refused:
            delete_written(self.target, messages)
            return None
        kept = self._messages.setdefault(part.partition, [])
        kept += messages
        self._lacking[part.partition] -= 1
        return None if self._lacking[part.partition] else self._messages.pop(part.partition)

    def refuse(self, part: Part) -> None:
        """A partition that is to be planned again: what was written of it goes."""
        self.refused[part.partition] = self.units[part.partition]
        delete_written(self.target, self._messages.pop(part.partition, []))

    def give_up(self) -> None:
        """What was written of all of them goes."""
        for messages in self._messages.values():
            delete_written(self.target, messages)
        self._messages.clear()


def _parts(units: Sequence[_Unit], scan: Scan, *, in_one: bool) -> list[Part]:
    """What is to be written of each partition, ``in_one`` or in as many parts as may be."""
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
        for remainder, of_class in (by_class or {0: []}).items():  # rows may all be gone
            parts.append(Part(unit.partition, tuple(of_class), classes, remainder))
    return parts


def _require_seen(unit: _Unit) -> None:
    """Refuse rows that a read does not see yet, or no changelog tells: they would be gone."""
    require_whole_rows(unit.handle, unit.files)
    levels = {entry.file.level for entry in unit.files}
    options = unit.handle.options
    waiting = None
    if skips_level_zero(unit.handle.schema) and 0 in levels:
        waiting = "rows on level 0, which are seen after a compaction only"
    elif makes_changelog(options) and min(levels) <= _untold_level(options, levels):
        waiting = f"rows that its changelog ({options.changelog_producer!r}) does not tell of yet"
    if waiting is not None:
        place = partition_path(unit.handle.schema, unit.partition)
        raise InvalidRequestError(
            f"{f'partition {place} of ' if place else ''}{unit.handle.uri} has {waiting}: compact "
            "it first. Nothing was changed of it"
        )


def _untold_level(options: TableOptions, levels: Collection[int]) -> int:
    """The highest level with rows that are told by a compaction to come."""
    if options.changelog_producer == "lookup":
        return 0
    return max(options.level_count - 1, *levels) - 1


def _published(
    target: TableHandle, unit: _Unit, messages: list[CommitMessage]
) -> RescaledPartition:
    """Put what was written in place of a partition; when that is refused, it goes."""
    replaced = these_partitions(target.schema, pa.array([unit.partition], pa.large_binary()))
    options = CommitOptions(read_snapshot=unit.snapshot.id)
    try:
        report = commit_messages(target, messages, options, overwrite=replaced)
    except CommitOutcomeUnknownError:
        raise  # the table may refer to the files: they stay
    except LakeError:
        delete_written(target, messages)
        raise
    files = [file for message in messages for file in message.new_files]
    return replace(
        unit.outcome,
        outcome="rescaled",
        snapshot_id=report.snapshot_id,
        rows_out=sum(file.row_count for file in files),
        bytes_out=sum(file.file_size for file in files),
    )
