"""Deletion vectors of a bucket after a compaction: old rows marked, rewritten files forgotten."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lakeformat.compact.unit import CompactUnit
from lakeformat.handle import TableHandle
from lakeformat.index.deletion_vector import DeletionVector
from lakeformat.index.deletion_vector_file import VectorForm, encode_deletion_vectors
from lakeformat.layout import index_file_name
from lakeformat.merge.groups import Positions
from lakeformat.metadata.index_manifest import DELETION_VECTORS, IndexManifestEntry
from lakeformat.partition import partition_path
from lakeformat.read.deletions import deleted_rows_of

__all__ = ["VectorChange", "write_vectors"]


@dataclass(frozen=True, slots=True)
class VectorChange:
    """What a commit says of the index files of a bucket."""

    new: tuple[IndexManifestEntry, ...] = ()
    deleted: tuple[IndexManifestEntry, ...] = ()


def write_vectors(
    handle: TableHandle,
    unit: CompactUnit,
    marked: Mapping[str, Positions],
) -> VectorChange:
    """Put one file in place of those a bucket has, if any of its vectors changes.

    ``marked`` are rows by data file. Vectors of files that are not there any more mean nothing:
    of those rewritten here, and of those that another engine's compaction has left behind.
    """
    old = deleted_rows_of(handle, unit.snapshot, unit.vectors).vectors(unit.partition, unit.bucket)
    left = unit.marked_elsewhere | {file.file_name for file in unit.moved}
    vectors = {name: vector for name, vector in old.items() if name in left}
    if not marked and len(vectors) == len(old):
        return VectorChange()
    for name, positions in marked.items():
        vector = DeletionVector.of(positions)
        vectors[name] = vectors[name].merged(vector) if name in vectors else vector
    return VectorChange((_write(handle, unit, vectors),) if vectors else (), unit.vectors)


def _write(
    handle: TableHandle, unit: CompactUnit, vectors: Mapping[str, DeletionVector]
) -> IndexManifestEntry:
    is_wide = handle.options.deletion_vectors_bitmap64
    form = VectorForm.BITMAP64 if is_wide else VectorForm.BITMAP32
    content, ranges = encode_deletion_vectors(vectors, form)
    name = index_file_name(handle.environment.new_id(), 0)
    path = handle.layout.index_file(name)
    if handle.options.index_file_in_data_file_dir:
        directory = partition_path(handle.schema, unit.partition)
        path = handle.layout.data_file(unit.bucket, name, directory)
    with handle.storage.open_output(path) as stream:
        stream.write(content)
    return IndexManifestEntry(
        partition=unit.partition,
        bucket=unit.bucket,
        index_type=DELETION_VECTORS,
        file_name=name,
        file_size=len(content),
        row_count=len(ranges),
        ranges=ranges,
    )
