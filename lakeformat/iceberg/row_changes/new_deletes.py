# SPDX-License-Identifier: Apache-2.0
"""Writes new deletes: deletion vectors in version 3, position delete files in version 2."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from lakeformat.environment import Environment
from lakeformat.files.deletion_vector import DeletionVector
from lakeformat.iceberg.row_changes.matched_rows import FileToChange, MatchedFile, MatchPlan
from lakeformat.iceberg.row_changes.position_files import is_by_file, write_position_files
from lakeformat.iceberg.row_changes.vector_file import write_vectors

__all__ = ["NewDeletes", "new_deletes"]

_WITH_VECTORS = 3
"""The first format version with deletion vectors."""


@dataclass(frozen=True, slots=True)
class NewDeletes:
    """New deletes that are written but not published."""

    entries: Sequence[pa.Table] = ()
    """The manifest entries of the new deletes, as one table for each partition spec."""
    replaced: Sequence[str] = ()
    """The ids of older delete files to remove in the same commit, because the new deletes include
    their positions.
    """

    @property
    def paths(self) -> list[str]:
        """The URIs of the new files, each once."""
        found = (path for each in self.entries for path in each.column("file_path").to_pylist())
        return [*dict.fromkeys(found)]


def new_deletes(
    plan: MatchPlan, matched: Sequence[MatchedFile], environment: Environment
) -> NewDeletes:
    """Write the deletes of matched rows to new files. After any exception no file is left.

    A new deletion vector also has the positions of all older position deletes of its data file. A
    new position delete file for a single data file also has the positions of the older delete files
    that apply only to that data file. A new position delete file for a partition has only the
    positions of matched rows.
    """
    if not matched:
        return NewDeletes()
    metadata = plan.loaded.metadata
    own = [delete.id for each in matched for delete in each.file.own_deletes]
    if metadata.format_version >= _WITH_VECTORS:
        # A deletion vector replaces all position deletes of its file, so it includes their
        # positions.
        vectors = ((each.file, each.all_deleted) for each in matched)
        return NewDeletes(write_vectors(plan.loaded, vectors, environment), own)
    if is_by_file(metadata.properties):
        merged = _with_own_deletes(plan, matched)
        return NewDeletes(write_position_files(plan.loaded, merged, environment), own)
    positions = ((each.file, each.positions) for each in matched)
    return NewDeletes(write_position_files(plan.loaded, positions, environment))


def _with_own_deletes(
    plan: MatchPlan, matched: Sequence[MatchedFile]
) -> Iterator[tuple[FileToChange, DeletionVector]]:
    for each in matched:
        own = replace(each.file.split, deletes=tuple(each.file.own_deletes))
        older = plan.scan.deleted_positions(own)
        yield each.file, each.positions if older is None else each.positions.merged(older)
