# SPDX-License-Identifier: Apache-2.0
"""Writes an index file with the deletion vectors of one bucket."""

from __future__ import annotations

from collections.abc import Mapping

from lakeformat.files.deletion_vector import DeletionVector
from lakeformat.files.vector_record import VectorForm
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.index.deletion_vector_file import encode_deletion_vectors
from lakeformat.paimon.layout import index_file_name
from lakeformat.paimon.metadata.index_manifest import DELETION_VECTORS, IndexManifestEntry
from lakeformat.paimon.partition import partition_path

__all__ = ["write_vector_file"]


def write_vector_file(
    handle: TableHandle, partition: bytes, bucket: int, vectors: Mapping[str, DeletionVector]
) -> IndexManifestEntry:
    """Write a new index file with deletion vectors; return its manifest entry.

    ``vectors`` maps the name of each data file to its deletion vector. No snapshot refers to the
    new index file yet.
    """
    is_wide = handle.options.deletion_vectors_bitmap64
    form = VectorForm.BITMAP64 if is_wide else VectorForm.BITMAP32
    content, ranges = encode_deletion_vectors(vectors, form)
    name = index_file_name(handle.environment.new_id(), 0)
    path = handle.layout.index_file(name)
    if handle.options.index_file_in_data_file_dir:
        directory = partition_path(handle.schema, partition)
        path = handle.layout.data_file(bucket, name, directory)
    with handle.storage.open_output(path) as stream:
        stream.write(content)
    return IndexManifestEntry(
        partition=partition,
        bucket=bucket,
        index_type=DELETION_VECTORS,
        file_name=name,
        file_size=len(content),
        row_count=len(ranges),
        ranges=ranges,
    )
