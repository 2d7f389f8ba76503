"""Another number of buckets for what is there: partition by partition, each in one OVERWRITE.

A partition is read merged, written under the new number, and put in place of itself, unless
somebody has written to it since: then it is planned again. Older snapshots keep what they had.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from lakeformat.commit.abort import delete_written
from lakeformat.commit.commit import CommitOptions, commit_messages
from lakeformat.compact.plan import newest_schema
from lakeformat.compact.postponed import with_buckets
from lakeformat.compact.producers import tells
from lakeformat.compact.rescale_report import RescaledPartition, RescaleReport
from lakeformat.compact.supported import require_whole_rows
from lakeformat.compact.where import chosen_partitions
from lakeformat.errors import (
    CommitConflictError,
    CommitOutcomeUnknownError,
    CorruptTableError,
    InvalidRequestError,
    LakeError,
    NotFoundError,
    UnsupportedError,
)
from lakeformat.expired_meanwhile import again_if_overtaken, is_overtaken
from lakeformat.handle import TableHandle, require_writable
from lakeformat.layout import POSTPONE_BUCKET
from lakeformat.merge.row_kinds import INSERT
from lakeformat.metadata.commit_message import CommitMessage
from lakeformat.metadata.manifest import ManifestEntry
from lakeformat.metadata.snapshot import Snapshot
from lakeformat.metadata.snapshot_directory import latest_snapshot
from lakeformat.options import TableOptions
from lakeformat.partition import partition_path
from lakeformat.partition_filter import these_partitions
from lakeformat.read.buckets import skips_level_zero
from lakeformat.read.plan import plan_columns
from lakeformat.read.predicate_filter import Where
from lakeformat.read.scan import Scan
from lakeformat.read.where import Partitions
from lakeformat.write.append_bucket import AppendBuckets
from lakeformat.write.assign import Assigner, PartitionNumbers
from lakeformat.write.key_value_bucket import KeyValueBuckets
from lakeformat.write.sequences import SequenceNumbers

__all__ = ["rescale"]

_log = logging.getLogger(__name__)
_TRIES = 10
"""So often a partition is planned again that others write to."""


def rescale(
    handle: TableHandle,
    *,
    bucket: int | None = None,
    where: Where | None = None,
    partitions: Partitions | None = None,
    dry_run: bool = False,
) -> RescaleReport:
    """Bring partitions to a number of buckets, that of the table's options unless given."""
    handle = newest_schema(handle)
    count = _require_count(handle, bucket)
    asked = chosen_partitions(handle.schema, where, partitions)
    units = _units(handle, count)
    meant = asked({*units})
    done = [
        _planned(units[each]) if dry_run else _run(units[each]) for each in units if each in meant
    ]
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


def _run(first: _Unit) -> RescaledPartition:
    """Read, write and publish one partition, again if somebody has written to it meanwhile."""
    unit: _Unit | None = first
    for tries_left in reversed(range(_TRIES)):
        if unit is None or not unit.is_due:
            return first.outcome
        _require_seen(unit)
        try:
            return _moved(unit)
        except (CommitConflictError, CorruptTableError, NotFoundError) as refused:
            # Expiry follows writers: what was read may have gone once there is a newer snapshot.
            if not tries_left or not is_overtaken(unit.handle, unit.snapshot.id):
                raise
            _log.info("partition of %s is rescaled again: %s", unit.handle.uri, refused)
        unit = _units(unit.handle, unit.count).get(unit.partition)
    raise AssertionError("the last try returns or raises")


def _moved(unit: _Unit) -> RescaledPartition:
    target = with_buckets(unit.handle, unit.count)
    messages = _rewritten(target, unit)
    try:
        return _published(target, unit, messages)
    except CommitOutcomeUnknownError:
        raise  # the table may refer to the files: they stay
    except LakeError:
        delete_written(target, messages)
        raise


def _require_seen(unit: _Unit) -> None:
    """Refuse rows that a read does not see yet, or no changelog tells: they would be gone."""
    require_whole_rows(unit.handle, unit.files)
    levels = {entry.file.level for entry in unit.files}
    options = unit.handle.options
    waiting = None
    if skips_level_zero(unit.handle.schema) and 0 in levels:
        waiting = "rows on level 0, which are seen after a compaction only"
    elif tells(options) and min(levels) <= _untold_level(options, levels):
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


def _rewritten(target: TableHandle, unit: _Unit) -> list[CommitMessage]:
    """New files with the rows of a partition; when this raises, none is left."""
    schema = target.schema
    assign = Assigner(schema, PartitionNumbers(schema, None))
    sequences = SequenceNumbers(target, None)
    buckets: AppendBuckets | KeyValueBuckets
    if schema.primary_keys:
        buckets = KeyValueBuckets(target, sequences, assign.place, with_changelog=False)
    else:
        buckets = AppendBuckets(target, sequences, assign.place)
    try:
        for batch in _rows(unit):
            kinds = np.full(batch.num_rows, INSERT, np.int8)
            buckets.add(batch, kinds, assign(batch, range(batch.num_rows)))
        made = buckets.finish()
    except BaseException:
        buckets.abort()
        raise
    return [
        CommitMessage(
            table=target.uri,
            partition=files.place.partition,
            bucket=files.place.bucket,
            total_buckets=unit.count,
            base_snapshot=unit.snapshot.id,
            branch=target.layout.branch,
            new_files=files.data,
        )
        for files in made
    ]


def _rows(unit: _Unit) -> Iterator[pa.RecordBatch]:
    """The rows a read sees, whatever waits for a bucket."""
    options = {**unit.handle.schema.options, "postpone.merge-on-read": "false"}
    handle = replace(unit.handle, schema=replace(unit.handle.schema, options=options))
    scan = Scan(handle, unit.snapshot, None)
    for split in scan.splits():
        if split.partition == unit.partition:
            yield from (batch for batch in scan.read(split) if batch.num_rows)


def _published(
    target: TableHandle, unit: _Unit, messages: list[CommitMessage]
) -> RescaledPartition:
    replaced = these_partitions(target.schema, pa.array([unit.partition], pa.large_binary()))
    options = CommitOptions(read_snapshot=unit.snapshot.id)
    report = commit_messages(target, messages, options, overwrite=replaced)
    files = [file for message in messages for file in message.new_files]
    return replace(
        unit.outcome,
        outcome="rescaled",
        snapshot_id=report.snapshot_id,
        rows_out=sum(file.row_count for file in files),
        bytes_out=sum(file.file_size for file in files),
    )
