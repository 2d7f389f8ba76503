# SPDX-License-Identifier: Apache-2.0
"""Finds the data files that a change of rows must read, each with all of its delete files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from lakeformat.iceberg.read.data_file import FileSplit
from lakeformat.iceberg.read.entry_columns import scopes
from lakeformat.iceberg.read.file_splits import plan_splits
from lakeformat.iceberg.read.plan import FilePlan, TableState, plan_deletes

__all__ = ["PlannedFile", "planned_files"]


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A live data file with its delete files."""

    split: FileSplit
    spec_id: int
    scope: str
    """A text that is equal only for files of the same partition spec and partition."""

    @property
    def path(self) -> str:
        """The URI of the file."""
        return self.split.file.path

    @property
    def bytes(self) -> int:
        """The size of the file in bytes."""
        return self.split.file.size_bytes


def planned_files(
    state: TableState, chosen: FilePlan
) -> Iterator[tuple[pa.Table, list[PlannedFile]]]:
    """Yield the entries and the files of a plan, one partition spec after the other.

    Each file has all of its delete files, even those that the conditions of the plan exclude.
    """
    if not chosen.entries:
        return
    splits = plan_splits(state, replace(chosen, deletes=plan_deletes(state)))
    by_path = {each.file.path: each for each in splits}
    for entries in chosen.entries:
        spec_id = entries.column("spec_id")[0].as_py()
        paths = entries.column("file_path").to_pylist()
        yield (
            entries,
            [
                PlannedFile(by_path[path], spec_id, scope)
                for path, scope in zip(paths, scopes(entries), strict=True)
            ],
        )
