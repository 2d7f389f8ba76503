# SPDX-License-Identifier: Apache-2.0
"""Plans a compaction of a Mixed table: the tasks of an optimizing, with their files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.iceberg.read.file_splits import plan_splits as plan_file_splits
from lakeformat.iceberg.read.plan import TableState, plan_files
from lakeformat.iceberg.row_changes.matched_rows import FileToChange, files_to_change
from lakeformat.mixed.batch.open_batches import (
    OpenBatch,
    end_batch_advice,
    oldest_open_batch,
)
from lakeformat.mixed.file_names import FileKind
from lakeformat.mixed.optimizing.evaluate import LastRuns
from lakeformat.mixed.optimizing.node_count import node_count
from lakeformat.mixed.optimizing.plan import (
    OptimizingPlan,
    OptimizingTask,
    PartitionPlan,
    plan_optimizing,
    plan_splits,
)
from lakeformat.mixed.optimizing.settings import OptimizingSettings
from lakeformat.mixed.read.node_splits import NodeSplit, NodesToMerge
from lakeformat.mixed.read.state import MixedState
from lakeformat.mixed.read.store_files import StoreFile, change_files
from lakeformat.mixed.stores.store_pair import LoadedPair
from lakeformat.types.byte_size import size
from lakeformat.types.count_text import counted

__all__ = [
    "STRATEGIES",
    "LoadState",
    "MergeUnit",
    "MixedCompactPlan",
    "plan_merge",
    "require_mixed_strategy",
]

STRATEGIES = ("minor", "full")
"""``minor`` does what is due by the table properties; ``full`` rewrites whole partitions."""
_VERSION = 2
"""The format version of base stores that this library merges changes into."""

LoadState = Callable[[], tuple[LoadedPair, MixedState, LastRuns]]
"""A function that returns the newest metadata of both stores, the state of the table, and the times
of the newest optimizing runs.
"""


@dataclass(frozen=True, slots=True)
class MergeUnit:
    """One task: files of a partition that share no key with the files of another task."""

    partition: str
    task: OptimizingTask
    rewritten: tuple[StoreFile, ...]
    """The files whose live rows are written to new base files."""
    remaining: tuple[StoreFile, ...]
    """The base files that are kept. The deletes of each become one position delete file."""
    key_deletes: tuple[StoreFile, ...]
    """The deletes of the change store that may apply to the rewritten and the remaining files."""
    of_base: Mapping[str, FileToChange]
    """The base files among the rewritten and the remaining files, by path."""
    nodes: int
    """The number of nodes, which are hash buckets, of the new base files of the partition."""
    base_versions: tuple[StoreFile, ...] = ()
    """In a table with a version field, the base files that may have rows with larger versions than
    inserts among ``rewritten``.
    """

    @property
    def files(self) -> tuple[StoreFile, ...]:
        """The files to rewrite, the base files that remain, and the deletes of the change store."""
        return (*self.rewritten, *self.remaining, *self.key_deletes)

    @property
    def bytes(self) -> int:
        """The total size of ``files``."""
        return sum(each.split.file.size_bytes for each in self.files)

    @property
    def rows(self) -> int:
        """The number of rows in the files to rewrite, including deleted ones."""
        return sum(each.split.file.record_count or 0 for each in self.rewritten)

    @property
    def transaction(self) -> int:
        """The transaction of the new base files: the newest transaction of the rewritten files; 0
        if no file is rewritten.
        """
        return max((each.transaction for each in self.rewritten), default=0)

    @property
    def replaced(self) -> set[str]:
        """The ids of the delete files of the base store that are not needed any more."""
        gone = {*self.task.replaced_deletes}
        deletes = [each for file in self.files for each in file.split.deletes]
        return {each.id for each in deletes if each.path in gone or each.data_file is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedCompactPlan:
    """The plan of a compaction; only metadata is read for it, and nothing is changed."""

    table: str
    strategy: str
    pair: LoadedPair
    state: MixedState
    settings: OptimizingSettings
    optimizing: OptimizingPlan
    """The decision about each partition."""
    units: tuple[MergeUnit, ...]
    waits_for: OpenBatch | None
    """The oldest batch that has begun but not committed; only changes before it are merged. None if
    there is none.
    """
    merged_alone: Mapping[str, int]
    """The highest sequence number of the lone deletes, by partition. A lone delete deletes no row.

    Only partitions without other changes to merge are listed. Their deletes are recorded as merged,
    and no file is rewritten for them.
    """
    blocked: int
    """The number of files of inserts that are not merged yet, if the plan merges no insert; else 0.
    """

    @property
    def other_compactor(self) -> None:
        """Always None: a compaction and Amoro's optimizing cannot damage each other's results."""

    @property
    def snapshot_id(self) -> int | None:
        """The id of the base store's snapshot from which the plan was made; None if the base store
        has none.
        """
        return self.state.snapshot_ids[0]

    @property
    def bytes(self) -> int:
        """The total size of the files of all tasks."""
        return sum(each.bytes for each in self.units)

    @property
    def is_due(self) -> bool:
        """True if a compaction would publish a snapshot."""
        return bool(self.units or self.merged_alone)

    @property
    def recorded(self) -> str | None:
        """A sentence about partitions whose only changes are deletes without a row to delete.

        These deletes are only recorded as merged. None if there are no such partitions.
        """
        if not self.merged_alone:
            return None
        where = counted(len(self.merged_alone), "partition")
        return f"deletes that match no row are recorded as merged in {where}"

    @property
    def due(self) -> list[PartitionPlan]:
        """The partitions to optimize."""
        return [each for each in self.optimizing.partitions if each.decision.necessary]

    @property
    def merged(self) -> dict[str, int]:
        """The sequence number of the newest change that the plan merges, by partition.

        Partitions without such changes are left out.
        """
        return {
            **{each.partition: each.sequences[1] for each in self.due if each.sequences},
            **self.merged_alone,
        }

    @property
    def waiting(self) -> str | None:
        """A sentence about changes that wait for an open batch, or that a property blocks.

        None if no batch is open and no property blocks changes.
        """
        if self.waits_for is None:
            return self.obstacle
        places = self.state.base.places
        return f"newer changes wait for the batch with {self.waits_for}: {end_batch_advice(places)}"

    @property
    def obstacle(self) -> str | None:
        """A sentence about the property that blocks every change.

        None if no property blocks changes, or while a batch is open.
        """
        if not self.blocked or self.waits_for is not None:
            return None
        return (
            f"{counted(self.blocked, 'file')} of changes cannot be merged, because a merge in the "
            f"order of transactions needs more than {self.settings.max_file_count:,} files, "
            "including files of deletes: raise 'self-optimizing.max-file-count'"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as a dict, ready for JSON."""
        return {
            **self.optimizing.to_dict(),
            "strategy": self.strategy,
            "snapshot_id": self.snapshot_id,
            "bytes": self.bytes,
            "waiting": self.waiting,
        }

    def __str__(self) -> str:
        """Return the plan as text, with one line for each partition."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"{self.strategy} compaction of {self.table}: {self.optimizing.sentence}"
        for each in self.optimizing.partitions:
            work = counted(len(each.tasks), "task") if each.decision.necessary else "kept"
            name = each.partition or "all"
            cost = f", {size(each.decision.cost)}" if each.decision.necessary else ""
            yield f"  {name}: {work} ({each.decision.reason}{cost})"
        yield from (f"  {each}" for each in (self.recorded, self.waiting) if each)


def require_mixed_strategy(strategy: str) -> str:
    """Return the strategy; raise ``InvalidRequestError`` if Mixed tables do not have it."""
    if strategy not in STRATEGIES:
        raise InvalidRequestError(
            f"strategy of a Mixed table must be one of {', '.join(STRATEGIES)}, got {strategy!r}"
        )
    return strategy


def plan_merge(load: LoadState, strategy: str, now_millis: int) -> MixedCompactPlan:
    """Plan the compaction of the newest state.

    Raise ``UnsupportedError`` if the base store does not have version 2 of the Iceberg format.
    """
    pair, state, last = load()
    _require_version(state)
    settings = OptimizingSettings.of(state.base.metadata.properties)
    if strategy == "full":
        settings, last = replace(settings, full_interval=0), replace(last, full=0)
    waits_for = oldest_open_batch(state, now_millis)
    nodes = plan_splits(state, settings, None if waits_for is None else waits_for.transaction)
    splits = nodes.splits
    lone = _newest(nodes.lone_deletes)
    planned = plan_optimizing(state, settings, last, now_millis, splits)
    optimizing = replace(
        planned, partitions=tuple(_with_lone_deletes(e, lone) for e in planned.partitions)
    )
    return MixedCompactPlan(
        table=state.base.places.uri,
        strategy=strategy,
        pair=pair,
        state=state,
        settings=settings,
        optimizing=optimizing,
        units=tuple(_units(state, optimizing, splits, settings)),
        waits_for=waits_for,
        merged_alone=_merged_alone(nodes, optimizing, strategy, settings),
        blocked=0 if any(each.in_change for e in splits for each in e.files) else _waiting(state),
    )


def _newest(files: Sequence[StoreFile]) -> dict[str, int]:
    """Return the highest sequence number of the files of each partition."""
    found: dict[str, int] = {}
    for each in files:
        found[each.partition] = max(each.sequence, found.get(each.partition, 0))
    return found


def _with_lone_deletes(plan: PartitionPlan, lone: Mapping[str, int]) -> PartitionPlan:
    """Return ``plan`` with a record of merged changes that includes the partition's lone deletes.

    A lone delete deletes no row. ``lone`` has, by partition, the sequence number of the newest lone
    delete. The record may include all changes up to this number, because the plan merges those that
    are not lone deletes.
    """
    if plan.sequences is None:
        return plan
    first, last = plan.sequences
    return replace(plan, sequences=(first, max(last, lone.get(plan.partition, 0))))


def _merged_alone(
    nodes: NodesToMerge, plan: OptimizingPlan, strategy: str, settings: OptimizingSettings
) -> dict[str, int]:
    """Return, by partition, the highest sequence number of lone deletes, which delete no row.

    These deletes are recorded as merged; without the record, they would never be removed.
    Partitions with other changes are left out. If a minor compaction has no other work and there
    are only few lone deletes, the result is empty.
    """
    is_due = plan.type is not None or strategy == "full"
    if not is_due and len(nodes.lone_deletes) < settings.minor_file_count:
        return {}
    applied = {
        split.partition
        for split in nodes.splits
        if split.deletes or any(each.in_change for each in split.files)
    }
    lone = _newest(nodes.lone_deletes)
    return {each: sequence for each, sequence in lone.items() if each not in applied}


def _waiting(state: MixedState) -> int:
    return sum(
        each.kind is FileKind.INSERT and each.sequence > state.merged.sequence(each.partition)
        for each in change_files(state.change, plan_files(state.change))
    )


def _units(
    state: MixedState,
    plan: OptimizingPlan,
    splits: Sequence[NodeSplit],
    settings: OptimizingSettings,
) -> Iterator[MergeUnit]:
    due = [each for each in plan.partitions if each.decision.necessary]
    if not due:
        return
    files = {each.path: each for split in splits for each in (*split.files, *split.deletes)}
    of_base = _base_files(state.base)
    for partition in due:
        stored = [
            file
            for split in splits
            if split.partition == partition.partition
            for file in split.files
        ]
        versions = {
            file.path: split.base_versions
            for split in splits
            for file in split.files
            if split.base_versions and file.in_change
        }
        nodes = node_count(stored, settings, partition.decision.type)
        for task in partition.tasks:
            deletes = (*task.replaced_deletes, *task.kept_deletes)
            paths = (*task.rewritten, *task.with_deletes)
            yield MergeUnit(
                partition.partition,
                task,
                tuple(files[each] for each in task.rewritten),
                tuple(files[each] for each in task.with_deletes),
                tuple(files[each] for each in deletes if each in files),
                {each: of_base[each] for each in paths if each in of_base},
                nodes,
                _unique(file for each in paths for file in versions.get(each, ())),
            )


def _unique(files: Iterable[StoreFile]) -> tuple[StoreFile, ...]:
    return tuple({each.path: each for each in files}.values())


def _base_files(base: TableState) -> dict[str, FileToChange]:
    plan = plan_files(base)
    splits = {each.file.path: each for each in plan_file_splits(base, plan)}
    return {
        file.path: file for entries in plan.entries for file in files_to_change(entries, splits)
    }


def _require_version(state: MixedState) -> None:
    version = state.base.metadata.format_version
    if version != _VERSION:
        raise UnsupportedError(
            f"the base store of {state.base.places.uri} has version {version} of the Iceberg "
            f"format, and changes are merged only into version {_VERSION}: use Amoro's optimizer"
        )
