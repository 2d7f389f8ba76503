# SPDX-License-Identifier: Apache-2.0
"""Chooses the buckets to compact, with a reason for each bucket that is left out.

Planning reads no data file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from lakeformat.paimon.compact.append_pick import (
    AppendPick,
    AppendSettings,
    Deletions,
    pick_queue,
    pick_unordered,
)
from lakeformat.paimon.compact.key_value_plan import plan_bucket
from lakeformat.paimon.compact.newest_schema import newest_schema
from lakeformat.paimon.compact.partition_choice import (
    WHOLE_TABLE,
    Chosen,
    ChosenFiles,
    idle_millis,
)
from lakeformat.paimon.compact.postponed_plan import plan_postponed
from lakeformat.paimon.compact.settings import PickSettings
from lakeformat.paimon.compact.steps import Rewrite
from lakeformat.paimon.compact.supported import require_supported, require_whole_rows
from lakeformat.paimon.compact.unit import CompactPlan, CompactUnit, NotChosen
from lakeformat.paimon.handle import TableHandle, is_unaware
from lakeformat.paimon.metadata.data_file_meta import local_wall_clock
from lakeformat.paimon.metadata.index_manifest import IndexManifestEntry
from lakeformat.paimon.metadata.manifest import ManifestEntry
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import latest_snapshot
from lakeformat.paimon.options.kinds import POSTPONE_BUCKET
from lakeformat.paimon.partition import partition_name
from lakeformat.paimon.read.deletions import deleted_rows_of, find_vectors
from lakeformat.paimon.read.plan import naming_partition, plan_columns
from lakeformat.types.duration_text import duration

__all__ = ["has_left_table", "plan_compaction"]


def has_left_table(handle: TableHandle, unit: CompactUnit) -> bool:
    """Return True if a file or deletion vector of the unit is not live in the newest snapshot.

    Then an expiry may have deleted the file, which explains an error of the unit.
    """
    snapshot = latest_snapshot(handle.storage, handle.layout)
    if snapshot is None or snapshot.id == unit.snapshot.id:
        return snapshot is None
    live = plan_columns(handle, snapshot, buckets=[unit.bucket]).entries()
    there = {entry.identity for entry in live}
    if any(entry.identity not in there for entry in (*unit.files, *unit.looked_up)):
        return True
    vectors = find_vectors(handle, snapshot).get((unit.partition, unit.bucket), ())
    return not {each.file_name for each in unit.vectors} <= {each.file_name for each in vectors}


def plan_compaction(
    handle: TableHandle, *, strategy: str = "full", chosen: Chosen = WHOLE_TABLE
) -> CompactPlan:
    """Return the plan to compact the newest snapshot; nothing is changed.

    Raise UnsupportedError for a table that this version cannot compact, and InvalidRequestError for
    an unknown strategy or a wrong choice.
    """
    snapshot = latest_snapshot(handle.storage, handle.layout)
    # The schema is read after the snapshot. Otherwise columns of its files could be lost.
    handle = newest_schema(handle)
    require_supported(handle, strategy)
    files = ChosenFiles(handle, chosen)
    millis = None if chosen.idle is None else idle_millis(chosen.idle)
    nothing = CompactPlan(
        table=handle.uri, strategy=strategy, snapshot_id=None, schema_id=handle.schema.id
    )
    if snapshot is None:
        return nothing
    now = local_wall_clock(handle.environment.now_millis())
    planner = _CompactionPlanner(
        handle, snapshot, strategy == "full" or chosen.idle is not None, now
    )
    with naming_partition(handle, snapshot):
        by_place = files.by_bucket(snapshot)
        # Every file names the number of buckets of its partition, also a file of another bucket.
        entries = files.all_live(snapshot) if _waiting(by_place) else []
        units, others = _planned(planner, by_place, entries, _written_since(by_place, now, millis))
    return replace(
        nothing,
        snapshot_id=snapshot.id,
        units=tuple(sorted(units, key=lambda unit: -unit.bytes)),
        not_chosen=tuple(others),
    )


def _planned(
    planner: _CompactionPlanner,
    by_place: Mapping[tuple[bytes, int], list[ManifestEntry]],
    live: list[ManifestEntry],
    fresh: Mapping[bytes, str],
) -> tuple[list[CompactUnit], list[NotChosen]]:
    """Return the units of all buckets, and the buckets that are left out.

    ``live`` has the entries of all live files; the list may be empty if no partition has postponed
    rows.
    ``fresh`` has the partitions that were written too recently, with the reason.
    """
    units: list[CompactUnit] = []
    others: list[NotChosen] = []
    waiting = _waiting(by_place)
    for (partition, bucket), files in by_place.items():
        if partition in fresh:
            found: list[CompactUnit] | str = fresh[partition]
        elif partition not in waiting:
            found = planner.plan(files)
        elif bucket == POSTPONE_BUCKET:
            found = planner.give_buckets(files, [e for e in live if e.partition == partition])
        else:
            found = "postponed rows of its partition get their buckets first"
        if isinstance(found, str):
            others.append(planner.not_chosen(files, found))
        else:
            units += found
    return units, others


def _waiting(places: Iterable[tuple[bytes, int]]) -> set[bytes]:
    return {partition for partition, bucket in places if bucket == POSTPONE_BUCKET}


def _written_since(
    by_place: Mapping[tuple[bytes, int], list[ManifestEntry]], now: datetime, millis: int | None
) -> dict[bytes, str]:
    """Return the partitions that were written less than ``millis`` ago, each with the reason to
    leave it out. With ``millis=None`` there are none.
    """
    if millis is None:
        return {}
    written: dict[bytes, datetime] = {}
    for (partition, _), files in by_place.items():
        for entry in files:
            made = entry.file.creation_time
            if made is not None:
                written[partition] = max(made, written.get(partition, made))
    ages = {
        partition: (now - made) // timedelta(milliseconds=1) for partition, made in written.items()
    }
    return {
        partition: (
            f"last written {duration(age)} ago, but 'idle' asks for {duration(millis)} without "
            "writes"
        )
        for partition, age in ages.items()
        if age < millis
    }


@dataclass(slots=True)
class _CompactionPlanner:
    """Plans the compaction of one bucket at a time.

    After ``compaction.file-num-limit`` files of an append table are planned, further buckets are
    left out.
    """

    handle: TableHandle
    snapshot: Snapshot
    full: bool
    now: datetime
    _vectors: dict[tuple[bytes, int], tuple[IndexManifestEntry, ...]] | None = None
    _taken: int = 0

    def plan(self, files: list[ManifestEntry]) -> list[CompactUnit] | str:
        """Return the units of a bucket, or a text with the reason why it needs no work."""
        require_whole_rows(self.handle, files)
        if self.handle.schema.primary_keys:
            settings = PickSettings.of_options(self.handle.options, self.now)
            return plan_bucket(self._unit(files, ""), self.handle, settings, full=self.full)
        return self._append(files)

    def give_buckets(
        self, files: list[ManifestEntry], live: list[ManifestEntry]
    ) -> list[CompactUnit]:
        """Return the unit that moves the postponed rows of a partition to buckets."""
        require_whole_rows(self.handle, files)
        return [plan_postponed(self._unit(files, ""), self.handle, live)]

    def not_chosen(self, files: list[ManifestEntry], reason: str) -> NotChosen:
        return NotChosen(
            path=self._path(files[0].partition),
            bucket=files[0].bucket,
            files=len(files),
            bytes=sum(entry.file.file_size for entry in files),
            reason=reason,
        )

    def _append(self, files: list[ManifestEntry]) -> list[CompactUnit] | str:
        if self._taken >= self.handle.options.compaction_file_num_limit:
            return (
                f"{self._taken} files of other buckets are compacted first "
                "('compaction.file-num-limit')"
            )
        settings = AppendSettings.of_options(self.handle.options)
        deletions = self._deletions(files)
        metas = [entry.file for entry in files]
        if is_unaware(self.handle):
            picks = pick_unordered(metas, settings, deletions=deletions, full=self.full)
        else:
            picks = pick_queue(metas, settings, deletions=deletions, full=self.full)
        if not picks:
            small = sum(file.file_size < settings.small_bytes for file in metas)
            return _too_few_small(small, len(metas), in_order=not is_unaware(self.handle))
        self._taken += sum(len(pick.files) for pick in picks)
        return [self._append_unit(files, pick, deletions, settings) for pick in picks]

    def _append_unit(
        self,
        files: list[ManifestEntry],
        pick: AppendPick,
        deletions: Deletions,
        settings: AppendSettings,
    ) -> CompactUnit:
        by_name = {entry.file.file_name: entry for entry in files}
        unit = self._unit([by_name[file.file_name] for file in pick.files], pick.reason)
        marked = {name for file in pick.files if (name := file.file_name) in deletions.rows}
        touched = {deletions.index_file[name] for name in marked}
        return replace(
            unit,
            steps=(Rewrite(((pick.files,),)),),
            vectors=tuple(entry for entry in unit.vectors if entry.file_name in touched),
            deleted_rows=sum(deletions.rows[name] for name in marked),
            expected_files=max(-(-_all_bytes(unit) // settings.target_bytes), 1),
        )

    def _unit(self, files: list[ManifestEntry], reason: str) -> CompactUnit:
        place = (files[0].partition, files[0].bucket)
        if self._vectors is None:
            self._vectors = find_vectors(self.handle, self.snapshot)
        return CompactUnit(
            snapshot=self.snapshot,
            schema_id=self.handle.schema.id,
            path=self._path(files[0].partition),
            files=tuple(files),
            steps=(),
            vectors=self._vectors.get(place, ()),
            reason=reason,
        )

    def _deletions(self, files: list[ManifestEntry]) -> Deletions:
        vectors = self._unit(files, "").vectors
        deleted = deleted_rows_of(self.handle, self.snapshot, vectors)
        named = {each.data_file_name: v.file_name for v in vectors for each in v.ranges or ()}
        rows = {
            name: deleted.count(entry) for entry in files if (name := entry.file.file_name) in named
        }
        return Deletions(rows, named)

    def _path(self, partition: bytes) -> str:
        return partition_name(self.handle.schema, partition)


def _too_few_small(small: int, files: int, *, in_order: bool) -> str:
    if files == 1:
        return "there is one file only"
    if small == 0:
        return f"none of {files} files is small"
    verb = "is" if small == 1 else "are"
    few = "but too few of them are adjacent" if in_order and small > 1 else "too few"
    return f"{small} of {files} files {verb} small, {few} for a compaction"


def _all_bytes(unit: CompactUnit) -> int:
    return sum(entry.file.file_size for entry in unit.files)
