# SPDX-License-Identifier: Apache-2.0
"""The snapshot on which a change was planned, to detect conflicts with later commits.

The rules for each kind of change are in ``replace_files.py`` and ``row_delta.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from lakeformat.errors import CommitConflictError
from lakeformat.iceberg.metadata.snapshot import Snapshot
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.partition_spec import PartitionSpec
from lakeformat.iceberg.read.data_file import DeleteFile
from lakeformat.iceberg.read.delete_index import DeleteIndex
from lakeformat.iceberg.read.key_ranges import KeyRanges
from lakeformat.iceberg.read.plan import all_fields
from lakeformat.iceberg.read.planned_files import PlannedFile
from lakeformat.iceberg.write.publish import Base

__all__ = ["PlannedState", "deletes_of"]


@dataclass(frozen=True, slots=True)
class PlannedState:
    """The snapshot on which a change was planned."""

    name: str
    """The change and its table in words, for error messages."""
    snapshot: Snapshot
    version: int
    """The format version of the table when the change was planned."""

    def require_history(self, base: Base) -> None:
        """Raise ``CommitConflictError`` if the branch no longer contains the planned snapshot.

        Raise it also if the format version has changed.
        """
        metadata = base.loaded.metadata
        head = None if base.parent is None else base.parent.snapshot_id
        ids = (each.snapshot_id for each in metadata.ancestry(head))
        if self.snapshot.snapshot_id not in ids:
            raise self.conflict("the branch was moved to another history, or that snapshot expired")
        if metadata.format_version != self.version:
            raise self.conflict(f"the table was upgraded to version {metadata.format_version}")

    def conflict(self, reason: str) -> CommitConflictError:
        """Return the error for an outdated plan; ``reason`` is a clause that names what changed."""
        return CommitConflictError(
            f"the {self.name}, planned at snapshot {self.snapshot.snapshot_id}, was not published: "
            f"{reason} meanwhile. Repeat the call, which plans again"
        )


def deletes_of(
    files: Iterable[PlannedFile],
    deletes: Iterable[tuple[PartitionSpec, pa.Table]],
    metadata: TableMetadata,
) -> Iterator[tuple[PlannedFile, DeleteFile]]:
    """Yield a pair for each file and each delete file that may apply to it."""
    index = DeleteIndex(all_fields(metadata))
    for spec, entries in deletes:
        index.add(entries, spec)
    index.sort()
    if not index.files:
        return
    for file in files:
        for delete in index.find(file.split.file, file.scope, KeyRanges({})):
            yield file, delete
