# SPDX-License-Identifier: Apache-2.0
"""Writes deletion vectors for version 3; one Puffin file has the vectors of many data files."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from lakeformat.environment import Environment
from lakeformat.files.deletion_vector import DeletionVector
from lakeformat.files.puffin import PuffinWriter
from lakeformat.files.vector_record import VectorForm, encode_deletion_vector
from lakeformat.iceberg.data_paths import require_own_data_path
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.manifest import PUFFIN
from lakeformat.iceberg.read.file_rows import POSITION
from lakeformat.iceberg.row_changes.delete_entries import FileWithDeletes, delete_entries
from lakeformat.iceberg.write.new_entries import NewFile, delete_files
from lakeformat.iceberg.write.settings import data_location

__all__ = ["write_vectors"]

_VECTOR = "deletion-vector-v1"


def write_vectors(
    loaded: LoadedMetadata,
    files: Iterable[tuple[FileWithDeletes, DeletionVector]],
    environment: Environment,
    directory: str | None = None,
) -> list[pa.Table]:
    """Write deletion vectors to one file; return their entries, one table for each partition spec.

    ``files`` has pairs of a data file and its deleted positions. The Puffin file is written to
    ``directory``, by default to the directory of data files. After any exception no file is left.
    """
    if directory is None:
        require_own_data_path(loaded.places, loaded.metadata)
    place = directory or data_location(loaded.metadata)
    uri = f"{place}/00000-0-{environment.new_id()}-00001-deletes.puffin"
    storage, path = loaded.places.place(uri)
    made: list[tuple[FileWithDeletes, NewFile]] = []
    try:
        with storage.open_output(path) as stream:
            writer = PuffinWriter(stream)
            for file, vector in files:
                made.append((file, _add(writer, uri, file, vector)))
            writer.finish({"created-by": "lakeformat"})
    except BaseException:
        delete_files(loaded.places, [uri])
        raise
    for _, new in made:
        new.members["file_size_in_bytes"] = writer.size
    return delete_entries(loaded.metadata, made)


def _add(writer: PuffinWriter, uri: str, file: FileWithDeletes, vector: DeletionVector) -> NewFile:
    content, length = encode_deletion_vector(vector, VectorForm.BITMAP64)
    named = {"referenced-data-file": file.path, "cardinality": str(vector.cardinality)}
    offset = writer.add(_VECTOR, content, fields=[POSITION.id], properties=named)
    members = {
        "file_path": uri,
        "file_format": PUFFIN,
        "record_count": vector.cardinality,
        "referenced_data_file": file.path,
        "content_offset": offset,
        "content_size_in_bytes": length,
    }
    return NewFile(file.partition, members)
