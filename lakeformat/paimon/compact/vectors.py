# SPDX-License-Identifier: Apache-2.0
"""Deletion vectors of a bucket after a compaction: replaced rows added, rewritten files dropped."""

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
    """The change of the index files of a bucket in a commit."""

    new: tuple[IndexManifestEntry, ...] = ()
    deleted: tuple[IndexManifestEntry, ...] = ()


def write_vectors(
    handle: TableHandle,
    unit: CompactUnit,
    marked: Mapping[str, Positions],
) -> VectorChange:
    """Replace the index files of a bucket by one file, if any of its vectors changes.

    ``marked`` has row positions by data file. Vectors of files that are not live any more are
    dropped: of files rewritten here, and of files that another engine has compacted.
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
