# SPDX-License-Identifier: Apache-2.0
"""The data files that a change of a table reads, each with all of its deletes."""

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
    """A live data file with its deletes."""

    split: FileSplit
    spec_id: int
    scope: str
    """A text that equals that of files of the same spec and partition."""

    @property
    def path(self) -> str:
        """The address of the file."""
        return self.split.file.path

    @property
    def bytes(self) -> int:
        """The size of the file."""
        return self.split.file.size_bytes


def planned_files(
    state: TableState, chosen: FilePlan
) -> Iterator[tuple[pa.Table, list[PlannedFile]]]:
    """Yield the entries of each spec of a plan, with the file of each entry.

    A file has all of its deletes, also those of rows that the conditions of the plan leave out.
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
