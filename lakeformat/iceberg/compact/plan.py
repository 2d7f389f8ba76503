# SPDX-License-Identifier: Apache-2.0
"""Plans a compaction: groups of files to rewrite, and the reason for each group."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lakeformat.errors import InvalidRequestError
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.compact.file_order import FileOrder, file_order
from lakeformat.iceberg.compact.options import CompactSelection
from lakeformat.iceberg.compact.pick import FileGroup, expected_files, file_groups
from lakeformat.iceberg.compact.settings import CompactSettings, compact_settings
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.partition_type import partition_type
from lakeformat.iceberg.metadata.snapshot import Snapshot
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.read.entry_columns import scopes
from lakeformat.iceberg.read.plan import TableState, plan_files
from lakeformat.iceberg.read.planned_files import PlannedFile, planned_files
from lakeformat.iceberg.read.where import row_filter
from lakeformat.iceberg.write.partitioned_rows import Splitter
from lakeformat.rows.conditions.filter import PredicateFilter, Where
from lakeformat.rows.prune import Conjunction
from lakeformat.tables.arguments import Partitions
from lakeformat.types.byte_size import size
from lakeformat.types.count_text import counted

__all__ = ["CompactPlan", "CompactUnit", "explain_empty_choice", "plan_compaction"]

_JOB_ORDERS: Mapping[str, Callable[[CompactUnit], int]] = {
    "none": lambda _: 0,
    "bytes-asc": lambda unit: unit.group.bytes,
    "bytes-desc": lambda unit: -unit.group.bytes,
    "files-asc": lambda unit: len(unit.files),
    "files-desc": lambda unit: -len(unit.files),
}
_OTHER_SPECS = "(files of other partition specs)"


@dataclass(frozen=True, slots=True)
class CompactUnit:
    """A group of files that are rewritten together.

    Either all rows of the files are in one partition of the current partition spec, or none of the
    files was written with this spec.
    """

    partition: str
    """The partition as a directory name, for messages; empty for a table without partitions."""
    group: FileGroup
    expected_files: int

    @property
    def has_one_partition(self) -> bool:
        """True if all rows of the group are in one partition of the current partition spec."""
        return self.partition != _OTHER_SPECS

    @property
    def files(self) -> tuple[PlannedFile, ...]:
        """The data files to replace."""
        return self.group.files

    @property
    def rows(self) -> int:
        """The number of rows in the files, including deleted rows."""
        return sum(each.split.file.record_count or 0 for each in self.files)

    def to_dict(self) -> dict[str, Any]:
        """Return the group as a dict, ready for JSON."""
        return {
            "partition": self.partition,
            "chosen": self.group.is_chosen,
            "reason": self.group.reason,
            "files": len(self.files),
            "rows": self.rows,
            "bytes": self.group.bytes,
            "expected_files": self.expected_files if self.group.is_chosen else None,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactPlan:
    """The plan of a compaction; planning reads no data file and changes nothing."""

    table: str
    strategy: str
    loaded: LoadedMetadata
    snapshot: Snapshot | None
    """The snapshot from which the plan was made; None if the table has none."""
    settings: CompactSettings
    order: FileOrder | None = None
    """The order of rows in the new files; None if rows keep their order."""
    units: tuple[CompactUnit, ...] = ()
    not_chosen: tuple[CompactUnit, ...] = ()

    @property
    def other_compactor(self) -> None:
        """Always None: compactions by several programs cannot damage each other's results."""

    @property
    def snapshot_id(self) -> int | None:
        """The id of the snapshot from which the plan was made; None if the table has none."""
        return None if self.snapshot is None else self.snapshot.snapshot_id

    @property
    def bytes(self) -> int:
        """The number of bytes to read; about as many are written."""
        return sum(unit.group.bytes for unit in self.units)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as a dict, ready for JSON."""
        return {
            "table": self.table,
            "strategy": self.strategy,
            "snapshot_id": self.snapshot_id,
            "order": None if self.order is None else self.order.text,
            "bytes": self.bytes,
            "rows": sum(unit.rows for unit in self.units),
            "groups": [unit.to_dict() for unit in (*self.units, *self.not_chosen)],
        }

    def __str__(self) -> str:
        """Return the plan as text, with one line for each group."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        at = f"snapshot {self.snapshot_id}" if self.snapshot else "no snapshot"
        groups = counted(len(self.units), "group")
        by = "" if self.order is None else f", by {self.order.text}"
        yield f"{self.strategy} compaction of {self.table} at {at}{by}: {groups}"
        for unit in self.units:
            files = counted(len(unit.files), "file becomes", "files become")
            yield (
                f"  {_place(unit)}{files} about {unit.expected_files}, "
                f"{size(unit.group.bytes)} to read: {unit.group.reason}"
            )
        for other in self.not_chosen:
            yield f"  {_place(other)}not chosen: {other.group.reason}"


def plan_compaction(
    handle: TableHandle, wanted: CompactSelection, *, without: Collection[int] = ()
) -> CompactPlan:
    """Plan a compaction of the newest snapshot of the branch; no data file is read.

    Files that were added by the snapshots in ``without`` are left out. Raise
    ``InvalidRequestError`` for options, conditions or columns that do not fit the table.
    """
    loaded = handle.load()
    metadata = loaded.metadata
    settings = compact_settings(metadata, wanted.options)
    order = file_order(metadata, wanted.options)
    asked = row_filter(metadata, metadata.schema, wanted.where, wanted.partitions)
    state = _newest_state(handle, loaded)
    found: list[CompactUnit] = []
    for partition, files in _by_partition(state, asked, without).items():
        for group in file_groups(files, settings):
            found.append(CompactUnit(partition, group, expected_files(group.bytes, settings)))
    return CompactPlan(
        table=handle.uri,
        strategy=wanted.strategy,
        loaded=loaded,
        snapshot=state.snapshot,
        settings=settings,
        order=order,
        units=_in_order(found, wanted.options.rewrite_job_order),
        not_chosen=tuple(each for each in found if not each.group.is_chosen),
    )


def _in_order(found: Sequence[CompactUnit], order: str) -> tuple[CompactUnit, ...]:
    if order not in _JOB_ORDERS:
        raise InvalidRequestError(
            f"rewrite_job_order must be one of {', '.join(_JOB_ORDERS)}, got {order!r}"
        )
    return tuple(sorted((each for each in found if each.group.is_chosen), key=_JOB_ORDERS[order]))


def explain_empty_choice(
    handle: TableHandle, where: Where | None, partitions: Partitions | None
) -> str | None:
    """Return the reason why ``where`` and ``partitions`` choose no file.

    None if they choose a file, or if neither was given.
    """
    loaded = handle.load()
    asked = row_filter(loaded.metadata, loaded.metadata.schema, where, partitions)
    if asked is None or plan_files(_newest_state(handle, loaded), _tests(asked)).entries:
        return None
    asked_for = {"where": where, "partitions": partitions}
    given = " and ".join(
        f"{name}={value!r}" for name, value in asked_for.items() if value is not None
    )
    return f"no data file of {handle.uri} can match {given}: check the names and values"


def _newest_state(handle: TableHandle, loaded: LoadedMetadata) -> TableState:
    metadata = loaded.metadata
    head = metadata.references.get(handle.branch)
    snapshot = None if head is None else metadata.snapshot(head.snapshot_id)
    return TableState(loaded.places, metadata, snapshot, metadata.schema)


def _tests(asked: PredicateFilter) -> Conjunction:
    return [test for each in asked.conjuncts() for test in each.conditions()]


def _by_partition(
    state: TableState, asked: PredicateFilter | None, without: Collection[int]
) -> dict[str, list[PlannedFile]]:
    """Return the files that may have rows that match ``asked``, by partition directory.

    Files of partition specs other than the current one are under one common name. Files that one of
    the snapshots ``without`` added are left out.
    """
    chosen = plan_files(state, () if asked is None else _tests(asked))
    found: dict[str, list[PlannedFile]] = {}
    for entries, files in planned_files(state, chosen):
        names = _names(state.metadata, files[0].spec_id, entries)
        snapshots = entries.column("snapshot_id").to_pylist()
        for file, name, snapshot in zip(files, names, snapshots, strict=True):
            if snapshot not in without:
                found.setdefault(name, []).append(file)
    return found


def _names(metadata: TableMetadata, spec_id: int, entries: pa.Table) -> Iterator[str]:
    """Yield the partition of each file as a directory name.

    All files of other specs than the current one have one common name.
    """
    spec = metadata.spec_of(metadata.default_spec_id)
    if spec_id != spec.spec_id:  # these rows may be in any partition of the current spec
        yield from [_OTHER_SPECS if spec.fields else ""] * len(entries)
        return
    splitter = Splitter(spec, metadata.schema, partition_type(metadata, spec))
    partitions = entries.column("partition").combine_chunks()
    known: dict[str, str] = {}
    for place, scope in enumerate(scopes(entries)):
        if scope not in known:
            known[scope] = splitter.directory(partitions.slice(place, 1)).rstrip("/")
        yield known[scope]


def _place(unit: CompactUnit) -> str:
    return f"{unit.partition}: " if unit.partition else ""
