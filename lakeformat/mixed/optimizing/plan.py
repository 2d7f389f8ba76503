# SPDX-License-Identifier: Apache-2.0
"""Plans the optimizing of a Mixed table: the decision about each partition, and its tasks.

Only metadata is read, and nothing is changed. A plan is a value: it can be printed, compared and
stored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from lakeformat.mixed.optimizing.evaluate import (
    DeleteKind,
    FileUse,
    LastRuns,
    OptimizingType,
    PartitionDecision,
    PartitionFile,
    PartitionFileDelete,
    evaluate,
    has_deletes_to_merge,
    strongest,
)
from lakeformat.mixed.optimizing.node_count import stored_node_count
from lakeformat.mixed.optimizing.ordered_sequence import ChangeGroup, ordered_sequence
from lakeformat.mixed.optimizing.settings import OptimizingSettings
from lakeformat.mixed.read.node_splits import NodeSplit, NodesToMerge, plan_all_nodes
from lakeformat.mixed.read.state import MixedState
from lakeformat.mixed.read.store_files import StoreFile
from lakeformat.mixed.tree_node import TreeNode
from lakeformat.types.count_text import counted

__all__ = ["OptimizingPlan", "OptimizingTask", "PartitionPlan", "plan_optimizing", "plan_splits"]


@dataclass(frozen=True, slots=True)
class OptimizingTask:
    """A part of the work that shares no key with another task."""

    node: TreeNode
    """The node that contains the nodes of all files."""
    rewritten: tuple[str, ...]
    """The files whose rows are merged into new base files."""
    with_deletes: tuple[str, ...]
    """The files that remain. The deletes of each become one position delete file."""
    replaced_deletes: tuple[str, ...]
    """The deletes that are not needed any more afterwards."""
    kept_deletes: tuple[str, ...]
    """The deletes that are read, but kept, because they also apply to files that the plan does not
    change.
    """


@dataclass(frozen=True, slots=True)
class PartitionPlan:
    """The decision about one partition, and its tasks if it is to be optimized."""

    partition: str
    decision: PartitionDecision
    sequences: tuple[int, int] | None
    """The lowest and the highest sequence number of the changes that would be merged; None without
    changes.
    """
    tasks: tuple[OptimizingTask, ...]


@dataclass(frozen=True, slots=True)
class OptimizingPlan:
    """The plans of all partitions: first those to optimize, in order of falling cost."""

    table: str
    position: str
    type: OptimizingType | None
    """The strongest kind of optimizing; None if nothing is due."""
    partitions: tuple[PartitionPlan, ...]

    @property
    def sentence(self) -> str:
        """The plan in one sentence."""
        due = [each for each in self.partitions if each.decision.necessary]
        if self.type is None:
            return f"no partition of {len(self.partitions)} is due"
        tasks = sum(len(each.tasks) for each in due)
        return (
            f"{self.type} optimizing of {len(due)} of {len(self.partitions)} partitions in "
            f"{counted(tasks, 'task')}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as a dict of JSON values; nodes are strings such as ``(3,1)``."""
        found = asdict(self)
        for shown, each in zip(found["partitions"], self.partitions, strict=True):
            for task, planned in zip(shown["tasks"], each.tasks, strict=True):
                task["node"] = str(planned.node)
        return {**found, "sentence": self.sentence}


def plan_splits(
    state: MixedState, settings: OptimizingSettings, before: int | None = None
) -> NodesToMerge:
    """Return each tree node that has rows, and the changes to it that one optimizing may merge.

    With ``before`` only changes with a lower sequence number are merged. Raise ``UnsupportedError``
    if changes cannot be matched with the rows of base files.
    """
    return plan_all_nodes(state, partial(_upto, settings.max_file_count, before))


def plan_optimizing(
    state: MixedState,
    settings: OptimizingSettings,
    last: LastRuns,
    now_millis: int,
    splits: Sequence[NodeSplit] | None = None,
) -> OptimizingPlan:
    """Plan the optimizing of a state; without ``splits`` the result of ``plan_splits`` is used."""
    groups: dict[str, list[NodeSplit]] = {}
    for split in plan_splits(state, settings).splits if splits is None else splits:
        groups.setdefault(split.partition, []).append(split)
    times = state.merged.times
    decided = [
        _decided(partition, splits, settings, _of_partition(last, times, partition), now_millis)
        for partition, splits in groups.items()
    ]
    # An equality delete of Iceberg can apply to files of several partitions.
    kept = {path for each in decided for path in each.kept}
    plans = [_partition(each, kept) for each in decided]
    plans.sort(key=lambda each: (not each.decision.necessary, -each.decision.cost, each.partition))
    return OptimizingPlan(
        table=state.base.places.uri,
        position=str(state.position),
        type=strongest(each.decision for each in plans),
        partitions=tuple(plans),
    )


def _upto(
    most_files: int, before: int | None, changes: Sequence[StoreFile], below: int | None
) -> int | None:
    """Return the highest sequence number up to which changes may be merged in the order of
    transactions.

    It is lower than ``before`` and ``below``, unless they are None. Return None if no change may
    be merged.
    """
    limits = [each for each in (before, below) if each is not None]
    files = Counter((each.sequence, each.transaction) for each in changes)
    groups = (ChangeGroup(*numbers, count) for numbers, count in files.items())
    return ordered_sequence(groups, most_files, min(limits, default=None))


def _of_partition(last: LastRuns, times: Mapping[str, int], partition: str) -> LastRuns:
    return LastRuns(
        minor=last.minor, full=last.full, base_optimized=times.get(partition, last.base_optimized)
    )


@dataclass(frozen=True, slots=True)
class _Decided:
    partition: str
    stored: Sequence[tuple[StoreFile, NodeSplit]]
    files: Sequence[PartitionFile]
    decision: PartitionDecision

    @property
    def kept(self) -> set[str]:
        """The paths of the delete files that must be kept, because data files that are not
        rewritten need them.
        """
        uses = self.decision.uses if self.decision.necessary else [FileUse.KEEP] * len(self.files)
        left = [file for file, use in zip(self.files, uses, strict=True) if use is FileUse.KEEP]
        return {delete.path for each in (*left, *self.alone) for delete in each.deletes}

    @property
    def alone(self) -> list[PartitionFile]:
        """The undersized segments that are alone in their node, and that have no deletes to
        merge.
        """
        undersized = self.with_use(FileUse.UNDERSIZED)
        return [
            group[0]
            for _, group in _by_subtree(undersized, self.nodes)
            if len(group) == 1 and not has_deletes_to_merge(group[0], keyed=True)
        ]

    @property
    def nodes(self) -> dict[str, TreeNode]:
        return {
            each.path: file.node for each, (file, _) in zip(self.files, self.stored, strict=True)
        }

    def with_use(self, use: FileUse) -> list[PartitionFile]:
        uses = zip(self.files, self.decision.uses, strict=True)
        return [file for file, given in uses if given is use]


def _decided(
    partition: str,
    splits: Sequence[NodeSplit],
    settings: OptimizingSettings,
    last: LastRuns,
    now_millis: int,
) -> _Decided:
    stored = [(file, split) for split in splits for file in split.files]
    files = [_partition_file(file, split) for file, split in stored]
    # A run leaves a fragment in each node: more of them than nodes make the next run due.
    buckets = stored_node_count((file for file, _ in stored), settings)
    settings = replace(settings, base_buckets=buckets)
    return _Decided(partition, stored, files, evaluate(files, settings, last, now_millis))


def _partition(of: _Decided, kept: Collection[str]) -> PartitionPlan:
    used = [
        (file, split)
        for (file, split), use in zip(of.stored, of.decision.uses, strict=True)
        if use is not FileUse.KEEP
    ]
    sequences = [
        each.sequence
        for file, split in used
        for each in ([file] if file.in_change else []) + [*split.deletes]
    ]
    return PartitionPlan(
        partition=of.partition,
        decision=of.decision,
        sequences=(min(sequences), max(sequences)) if sequences else None,
        tasks=tuple(_tasks(of, kept)) if of.decision.necessary else (),
    )


def _partition_file(file: StoreFile, split: NodeSplit) -> PartitionFile:
    stored = file.split.file
    by_position = (
        PartitionFileDelete(
            each.path,
            DeleteKind.EQUALITY if each.equality_ids else DeleteKind.POSITION,
            each.size_bytes,
            each.record_count,
        )
        for each in file.split.deletes
    )
    by_key = (
        PartitionFileDelete(
            each.path,
            DeleteKind.EQUALITY,
            each.split.file.size_bytes,
            each.split.file.record_count or 0,
        )
        for each in split.deletes
    )
    return PartitionFile(
        stored.path,
        file.in_change,
        stored.size_bytes,
        stored.record_count or 0,
        (*by_position, *by_key),
    )


def _tasks(of: _Decided, kept: Collection[str]) -> Iterator[OptimizingTask]:
    """Yield the tasks: first those of undersized segments, then those of all other files.

    An undersized segment that is alone in its node is not rewritten. If it has deletes, only these
    are merged.
    """
    nodes, with_deletes = of.nodes, of.with_use(FileUse.DELETES)
    for node, group in _by_subtree(of.with_use(FileUse.UNDERSIZED), nodes):
        if len(group) > 1:
            yield _task(node, group, (), kept)
        elif has_deletes_to_merge(group[0], keyed=True):
            with_deletes.append(group[0])
    rewritten = of.with_use(FileUse.REWRITE)
    paths = {each.path for each in rewritten}
    for node, group in _by_subtree((*rewritten, *with_deletes), nodes):
        yield _task(
            node,
            [each for each in group if each.path in paths],
            [each for each in group if each.path not in paths],
            kept,
        )


def _by_subtree(
    files: Iterable[PartitionFile], nodes: Mapping[str, TreeNode]
) -> list[tuple[TreeNode, list[PartitionFile]]]:
    """Group the files: a group has a node, and all files whose nodes are inside that node.

    Two groups share no key.
    """
    listed = [*files]
    with_files = {nodes[each.path] for each in listed}
    groups: dict[TreeNode, list[PartitionFile]] = {}
    for each in listed:
        top = node = nodes[each.path]
        while (parent := node.parent) is not None:
            node = parent
            top = node if node in with_files else top
        groups.setdefault(top, []).append(each)
    return sorted(groups.items(), key=lambda group: group[0])


def _task(
    node: TreeNode,
    rewritten: Sequence[PartitionFile],
    with_deletes: Sequence[PartitionFile],
    kept: Collection[str],
) -> OptimizingTask:
    deletes = {delete.path for each in (*rewritten, *with_deletes) for delete in each.deletes}
    kept = {*kept}
    return OptimizingTask(
        node,
        tuple(sorted(each.path for each in rewritten)),
        tuple(sorted(each.path for each in with_deletes)),
        tuple(sorted(deletes - kept)),
        tuple(sorted(deletes & kept)),
    )
