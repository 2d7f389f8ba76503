# SPDX-License-Identifier: Apache-2.0
"""Finds the rows that meet a condition, by data file and position.

Metadata shows which files may have such rows. If it also shows that all rows of a file meet the
condition, the file is not read. Of the remaining files, only the columns of the condition are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from lakeformat.files.deletion_vector import DeletionVector
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.snapshot import Snapshot
from lakeformat.iceberg.read.data_file import DeleteFile, FileSplit
from lakeformat.iceberg.read.entry_columns import scopes, spec_of
from lakeformat.iceberg.read.file_splits import plan_splits
from lakeformat.iceberg.read.plan import TableState, plan_deletes, plan_files
from lakeformat.iceberg.read.planned_files import PlannedFile
from lakeformat.iceberg.read.scan import Scan
from lakeformat.iceberg.write.file_choice import files_where
from lakeformat.rows.conditions.filter import PredicateFilter, Where

__all__ = [
    "FileToChange",
    "MatchPlan",
    "MatchedFile",
    "files_to_change",
    "matched_rows",
    "plan_matches",
]


@dataclass(frozen=True, slots=True)
class FileToChange(PlannedFile):
    """A live data file with its delete files and its partition."""

    partition: pa.StructArray
    """The partition values, as an array of length one."""

    @property
    def own_deletes(self) -> list[DeleteFile]:
        """The position deletes and deletion vectors that apply to this data file alone."""
        return [each for each in self.split.deletes if each.data_file is not None]


@dataclass(frozen=True, slots=True)
class MatchPlan:
    """The files of one snapshot that may have rows that meet a condition."""

    loaded: LoadedMetadata
    snapshot: Snapshot | None
    condition: PredicateFilter
    scan: Scan
    """Reads the rows that meet the condition."""
    whole: tuple[FileToChange, ...]
    """Files whose rows all meet the condition."""
    open: tuple[FileToChange, ...]
    """Files that must be read to find the rows."""


@dataclass(frozen=True, slots=True)
class MatchedFile:
    """A data file that was read, with the rows that meet the condition."""

    file: FileToChange
    positions: DeletionVector
    """The positions of live rows that meet the condition."""
    deleted: DeletionVector | None
    """The positions of rows that earlier commits deleted by position; None if there are none."""

    @property
    def all_deleted(self) -> DeletionVector:
        """The positions to delete, and those that earlier commits deleted by position."""
        return self.positions if self.deleted is None else self.positions.merged(self.deleted)

    @property
    def is_whole(self) -> bool:
        """True if ``all_deleted`` has the position of every row of the file."""
        return self.all_deleted.cardinality == self.file.split.file.record_count


def plan_matches(
    loaded: LoadedMetadata, branch: str, where: Where, *, with_all_deletes: bool
) -> MatchPlan:
    """Return the files of the newest snapshot that may have matching rows; only metadata is read.

    Equality deletes whose keys cannot match are left out, unless ``with_all_deletes`` is set. Raise
    ``InvalidRequestError`` for a condition that does not fit the table.
    """
    metadata = loaded.metadata
    head = metadata.references.get(branch)
    snapshot = None if head is None else metadata.snapshot(head.snapshot_id)
    state = TableState(loaded.places, metadata, snapshot, metadata.schema)
    choice = files_where(metadata, where)
    tests = [test for each in choice.condition.conjuncts() for test in each.conditions()]
    plan = plan_files(state, tests)
    if with_all_deletes:
        plan = replace(plan, deletes=plan_deletes(state))
    splits = {each.file.path: each for each in plan_splits(state, plan)}
    whole: list[FileToChange] = []
    open_files: list[FileToChange] = []
    for entries in plan.entries:
        has_some, has_all = choice.masks(metadata, spec_of(metadata, entries), entries)
        for file, some, every in zip(
            files_to_change(entries, splits), has_some.to_pylist(), has_all.to_pylist(), strict=True
        ):
            if some:
                (whole if every else open_files).append(file)
    scan = Scan(state, where=choice.condition)
    return MatchPlan(loaded, snapshot, choice.condition, scan, tuple(whole), tuple(open_files))


def matched_rows(scan: Scan, file: FileToChange) -> MatchedFile:
    """Read a file; return it with the positions of the live rows that ``scan`` selects.

    The result also has the positions of rows that are already deleted by position.
    """
    positions = DeletionVector.of_parts(scan.positions(file.split))
    return MatchedFile(file, positions, scan.deleted_positions(file.split))


def files_to_change(entries: pa.Table, splits: Mapping[str, FileSplit]) -> list[FileToChange]:
    """Return the data files of ``entries``, which all have the same partition spec.

    ``splits`` has each data file with its delete files, by the URI of the data file.
    """
    spec_id = entries.column("spec_id")[0].as_py()
    partitions = entries.column("partition").combine_chunks()
    paths = entries.column("file_path").to_pylist()
    return [
        FileToChange(splits[path], spec_id, scope, partitions.slice(place, 1))
        for place, (path, scope) in enumerate(zip(paths, scopes(entries), strict=True))
    ]
