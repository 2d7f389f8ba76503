# SPDX-License-Identifier: Apache-2.0
"""Plans a scan of a Mixed table: a split for each node of a partition.

A split has the data files of one node, and the deletes of the change store that may apply to them:
those of the node, of its ancestors and of the nodes inside it. So a scan reads the deletes split by
split, not all at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from lakeformat.errors import UnsupportedError
from lakeformat.iceberg.read.entry_columns import spec_of
from lakeformat.iceberg.read.plan import FilePlan, plan_files
from lakeformat.mixed.file_names import FileKind
from lakeformat.mixed.read.key_nodes import NodeFilter
from lakeformat.mixed.read.state import MixedState
from lakeformat.mixed.read.store_files import StoreFile, base_files, change_files
from lakeformat.mixed.read.version_ranges import VersionRanges
from lakeformat.mixed.stores.key_types import has_changed_key_type, require_one_key_type
from lakeformat.mixed.tree_node import ROOT, TreeNode
from lakeformat.rows.prune import Conjunction, on_columns

__all__ = [
    "MixedPlan",
    "NodeSplit",
    "NodesToMerge",
    "SelectChanges",
    "plan_all_nodes",
    "plan_nodes",
]

_NULL = "=null"
"""A part of the path of a partition with a null, or with the text ``null``."""


@dataclass(frozen=True, slots=True)
class NodeSplit:
    """The files of one node of a partition; each split can be read alone, on any machine."""

    snapshot_ids: tuple[int | None, int | None]
    """The snapshots of the base store and of the change store that are read."""
    partition: str
    node: TreeNode
    files: tuple[StoreFile, ...]
    """The files with rows: base files and inserts."""
    deletes: tuple[StoreFile, ...]
    """The delete files of the change store that may delete rows of ``files``."""
    base_versions: tuple[StoreFile, ...] = ()
    """The base files that, by their bounds, may have larger versions than inserts among ``files``;
    empty in a table without a version field."""

    @property
    def size_bytes(self) -> int:
        """The size in bytes of all files that are read, each counted once; large splits are
        started first.
        """
        read = (*self.files, *self.deletes, *self.base_versions)
        return sum({each.path: each.split.file.size_bytes for each in read}.values())


@dataclass(frozen=True, slots=True)
class NodesToMerge:
    """The tree nodes that have rows, and the changes to them that one optimizing may merge."""

    splits: Sequence[NodeSplit]
    lone_deletes: Sequence[StoreFile]
    """The delete files to merge that are in no split.

    They delete no row, because no node with rows can have their keys.
    """


@dataclass(frozen=True, slots=True)
class MixedPlan:
    """The splits of a scan, the planned files of each store, and counts of skipped files."""

    base: FilePlan
    change: FilePlan
    merged_changes: int
    """The number of files of the change store that are left out, because the base store already has
    their changes.
    """
    left_out_by_node: int
    """The number of data files that are left out, because no key of the condition is in their
    node."""
    splits: Sequence[NodeSplit]


def plan_nodes(state: MixedState, conditions: Conjunction) -> MixedPlan:
    """Plan the splits with rows that may meet all conditions.

    Raise ``UnsupportedError`` if deletes cannot be matched with rows, because of several partition
    specs, or because two partitions have one path.
    """
    version = () if state.version is None else (state.version.id,)
    base = plan_files(state.base, conditions, statistics_of=version)
    change = plan_files(state.change, conditions, statistics_of=version)
    of_keys = on_columns(conditions, {each.name for each in state.key})
    # A condition on another column must not exclude a delete, which may lack the column's value.
    only_keys = [*of_keys] == [*conditions]
    all_deletes = change if only_keys else plan_files(state.change, of_keys)
    inserts, deletes, merged = [], [], 0
    changes = [*change_files(state.change, change)]
    all_changes = changes if only_keys else [*change_files(state.change, all_deletes)]
    _require_known_merges(state, all_changes)
    for each in changes:
        if each.sequence <= state.merged.sequence(each.partition):
            merged += 1
        elif each.kind is FileKind.INSERT:
            inserts.append(each)
    for each in all_changes:
        is_newer = each.sequence > state.merged.sequence(each.partition)
        if is_newer and each.kind is FileKind.CHANGE_DELETE:
            deletes.append(each)
    rows = [*base_files(state.base, base), *inserts]
    versions: list[StoreFile] = []
    of_base = base
    if state.version is not None and inserts:
        if not only_keys:
            of_base = plan_files(state.base, of_keys, statistics_of=version)
        versions = [*base_files(state.base, of_base)]
    _require_one_spec(state, (base, change, all_deletes))
    nodes = NodeFilter.of(state.key, conditions)
    if has_changed_key_type((state.base.metadata, state.change.metadata), state.key):
        # The nodes in names of files do not fit together.
        nodes = NodeFilter(None)
        rows, deletes, versions = (
            [replace(each, node=ROOT) for each in of] for of in (rows, deletes, versions)
        )
    kept = [each for each in rows if nodes.may_have_keys(each.node)]
    ranges = VersionRanges.of(state.version, (of_base, change))
    made = _splits(state, kept, deletes, versions, ranges)
    splits = sorted(made, key=lambda each: (each.partition, each.node))
    return MixedPlan(base, change, merged, len(rows) - len(kept), splits)


SelectChanges: TypeAlias = Callable[[Sequence[StoreFile], int | None], int | None]
"""A function that returns the sequence number up to which to merge changes; None to merge none.

The number is lower than the second argument, unless that is None.
"""


def plan_all_nodes(state: MixedState, select: SelectChanges) -> NodesToMerge:
    """Plan each node that has rows, and the changes to merge into it.

    ``select`` gets the changes that are not merged yet, and returns the sequence number up to which
    to merge them, or None to merge none. In a table with a version field, a delete that was written
    without an insert of its key is merged only together with the later inserts that it may hide.
    The plan of a node has all of its deletes, even those that are too old to delete a row. Raise
    ``UnsupportedError`` if the table cannot be optimized, for example because a key column had
    several types.
    """
    stores = (state.base.metadata, state.change.metadata)
    require_one_key_type(stores, state.key, "optimizing")
    version = () if state.version is None else (state.version.id,)
    base, change = (plan_files(each, statistics_of=version) for each in (state.base, state.change))
    _require_one_spec(state, (base, change, change))
    newer = [
        each
        for each in change_files(state.change, change)
        if each.sequence > state.merged.sequence(each.partition)
    ]
    ranges = VersionRanges.of(state.version, (base, change))
    upto = select(newer, None)
    if state.version is not None:
        for first, end in reversed(_broken_windows(newer, ranges)):
            if upto is not None and first <= upto < end:
                upto = select(newer, first)
    newer = [] if upto is None else [each for each in newer if each.sequence <= upto]
    rows = [
        *base_files(state.base, base),
        *(each for each in newer if each.kind is FileKind.INSERT),
    ]
    deletes = [each for each in newer if each.kind is FileKind.CHANGE_DELETE]
    _require_own_paths(
        state,
        (*rows, *deletes),
        "they cannot be optimized: read the rows with table.scan() while no program writes the "
        "table, then replace the nulls by another value, then write the rows to a new table",
    )
    _require_one_path(state, (*rows, *deletes))
    versions = [each for each in rows if state.version is not None and not each.in_change]
    splits = [*_splits(state, rows, deletes, versions, ranges, keep_old=True)]
    applied = {each.path for split in splits for each in split.deletes}
    return NodesToMerge(splits, [each for each in deletes if each.path not in applied])


def _broken_windows(changes: Sequence[StoreFile], ranges: VersionRanges) -> list[tuple[int, int]]:
    """Return the windows of sequence numbers at which a merge of changes must not end.

    A delete may hide a later insert with a smaller version. The two make a window: a merge that
    ends in it would merge the delete, but not the insert. A window is a pair of numbers: the first
    belongs to the window, the second is the first one after it. The windows are disjoint and
    sorted.

    A delete that was written with an insert of its key makes no window: after the merge, the
    inserted row or one with a larger version hides the later insert. If a commit has as many
    deletes as inserts in a node, all its deletes there are of this kind.
    """
    others: Counter[tuple[object, ...]] = Counter()
    for each in changes:
        count = each.split.file.record_count or 0
        others[_written(each)] += count if each.kind is FileKind.CHANGE_DELETE else -count
    of_nodes = _by_node(
        each for each in changes if each.kind is FileKind.CHANGE_DELETE and others[_written(each)]
    )
    windows = sorted(
        window
        for values, nodes in _by_node(x for x in changes if x.kind is FileKind.INSERT).items()
        for node, inserts in nodes.items()
        for window in ranges.hidden(_sharing_keys(of_nodes, values, node), inserts)
    )
    found: list[tuple[int, int]] = []
    for first, end in windows:
        if found and first < found[-1][1]:
            first, end = found[-1][0], max(end, found.pop()[1])
        found.append((first, end))
    return found


def _written(file: StoreFile) -> tuple[object, ...]:
    return file.sequence, file.transaction, file.values, file.node


def _require_known_merges(state: MixedState, changes: Iterable[StoreFile]) -> None:
    """Raise ``UnsupportedError`` if two partitions with merged changes have the same path.

    They share one entry of the record of merged changes.
    """
    if any(_NULL in each.partition and _is_merged(state, each) for each in changes):
        stored = change_files(state.change, plan_files(state.change))
        merged = [each for each in stored if _is_merged(state, each)]
        _require_own_paths(
            state,
            merged,
            "the rows cannot be merged correctly: read both stores into a new table while no "
            "program writes this one. First write the rows of table.base.scan(), then apply the "
            "changes of table.changes(0) in their order. In both, replace the nulls by one other "
            "value",
        )


def _is_merged(state: MixedState, change: StoreFile) -> bool:
    return change.sequence <= state.merged.sequence(change.partition)


def _require_own_paths(state: MixedState, files: Iterable[StoreFile], remedy: str) -> None:
    """Raise ``UnsupportedError`` if two partitions of ``files`` have the same path.

    The record of merged changes has one entry for both. ``remedy`` ends the message.
    """
    known: dict[str, str] = {}
    for each in files:
        if known.setdefault(each.partition, each.values) != each.values:
            raise UnsupportedError(
                f"{state.base.places.uri} has two partitions {each.partition!r}, one with a null "
                "and one with a value whose text is 'null'. Amoro records the merged changes of "
                f"both under this name, so {remedy}"
            )


def _require_one_path(state: MixedState, files: Iterable[StoreFile]) -> None:
    """Raise ``UnsupportedError`` if the files of one partition have two paths.

    The record of merged changes has an entry for each path.
    """
    known: dict[str, str] = {}
    for each in files:
        if (other := known.setdefault(each.values, each.partition)) != each.partition:
            raise UnsupportedError(
                f"{state.base.places.uri} has the partition {other!r} also as {each.partition!r}, "
                "because a partition field was renamed. Amoro records separately for each name "
                "which changes are merged, so a partition with two names cannot be optimized: read "
                "the table, and write the rows to a new one"
            )


def _require_one_spec(state: MixedState, plans: Sequence[FilePlan]) -> None:
    """Raise ``UnsupportedError`` if the files have several partition specs.

    A delete applies only to its own partition.
    """
    stores = (state.base, state.change, state.change)
    specs = {
        tuple((each.source_ids, each.transform) for each in spec_of(store.metadata, table).fields)
        for store, plan in zip(stores, plans, strict=True)
        for table in plan.entries
    }
    if len(specs) > 1:
        raise UnsupportedError(
            f"the files of the Mixed table {state.base.places.uri} have {len(specs)} different "
            "partition specs, so a delete cannot be matched with the rows of another spec: run a "
            "full optimizing with Amoro, which writes all files with the current spec"
        )


def _splits(
    state: MixedState,
    rows: Iterable[StoreFile],
    deletes: Iterable[StoreFile],
    versions: Iterable[StoreFile],
    ranges: VersionRanges,
    *,
    keep_old: bool = False,
) -> Iterator[NodeSplit]:
    keep_old = keep_old or state.version is not None  # an old delete may have a large version
    nodes: dict[tuple[str, str, TreeNode], list[StoreFile]] = {}
    for each in rows:
        nodes.setdefault((each.partition, each.values, each.node), []).append(each)
    of_nodes = _by_node(deletes)
    versions_of_nodes = _by_node(versions)
    for (partition, values, node), files in nodes.items():
        oldest = min(each.transaction for each in files)
        applied = [
            each
            for each in _sharing_keys(of_nodes, values, node)
            if keep_old or each.transaction >= oldest
        ]
        newer: tuple[StoreFile, ...] = ()
        if state.version is not None and (inserts := [each for each in files if each.in_change]):
            of_base = _sharing_keys(versions_of_nodes, values, node)
            newer = ranges.may_be_larger(of_base, inserts)
        yield NodeSplit(state.snapshot_ids, partition, node, tuple(files), tuple(applied), newer)


_ByNode: TypeAlias = dict[str, dict[TreeNode, list[StoreFile]]]


def _by_node(files: Iterable[StoreFile]) -> _ByNode:
    found: _ByNode = {}
    for each in files:
        found.setdefault(each.values, {}).setdefault(each.node, []).append(each)
    return found


def _sharing_keys(files: _ByNode, values: str, node: TreeNode) -> Iterator[StoreFile]:
    for other, listed in files.get(values, {}).items():
        if node.may_share_keys(other):
            yield from listed
