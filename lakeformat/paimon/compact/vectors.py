# SPDX-License-Identifier: Apache-2.0
"""Updates the deletion vectors of a bucket after a compaction.

Rows that the compaction replaced are added to the vectors. The vectors of rewritten files are
dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lakeformat.files.deletion_vector import DeletionVector
from lakeformat.paimon.compact.unit import CompactUnit
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.index_manifest import IndexManifestEntry
from lakeformat.paimon.read.deletions import deleted_rows_of
from lakeformat.paimon.write.vector_file import write_vector_file
from lakeformat.rows.groups import Positions

__all__ = ["VectorChange", "write_vectors"]


@dataclass(frozen=True, slots=True)
class VectorChange:
    """The index files that a commit adds to a bucket and deletes from it."""

    new: tuple[IndexManifestEntry, ...] = ()
    deleted: tuple[IndexManifestEntry, ...] = ()


def write_vectors(
    handle: TableHandle,
    unit: CompactUnit,
    marked: Mapping[str, Positions],
) -> VectorChange:
    """Write the new deletion vectors of a bucket to one index file, and return the change.

    If no vector changes, write no file and return an empty change. If no vector remains, only
    delete the old index files. ``marked`` are the replaced rows: positions by data file name. The
    vector of a file that is not live any more is dropped: this unit has rewritten the file, or
    another engine has compacted it.
    """
    old = deleted_rows_of(handle, unit.snapshot, unit.vectors).vectors(unit.partition, unit.bucket)
    left = unit.marked_elsewhere | {file.file_name for file in unit.moved}
    vectors = {name: vector for name, vector in old.items() if name in left}
    if not marked and len(vectors) == len(old):
        return VectorChange()
    for name, positions in marked.items():
        vector = DeletionVector.of(positions)
        vectors[name] = vectors[name].merged(vector) if name in vectors else vector
    if not vectors:
        return VectorChange((), unit.vectors)
    new = write_vector_file(handle, unit.partition, unit.bucket, vectors)
    return VectorChange((new,), unit.vectors)
