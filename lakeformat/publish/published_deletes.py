# SPDX-License-Identifier: Apache-2.0
"""Writes the deleted rows of a Paimon snapshot as Iceberg delete files, in the metadata directory.

Paimon stores deletion vectors in index files. Most Iceberg readers cannot read these files: the
readers need vectors in a Puffin file, and format version 2 has no vectors. So changed vectors are
written again: in Puffin files, or in version 2 as one small Parquet file for each data file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

import pyarrow as pa

from lakeformat.environment import Environment
from lakeformat.files.deletion_vector import DeletionVector
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.manifest import entry_schema
from lakeformat.iceberg.metadata.metadata_file import metadata_directory
from lakeformat.iceberg.metadata.partition_type import partition_type
from lakeformat.iceberg.row_changes.position_files import write_position_files
from lakeformat.iceberg.row_changes.vector_file import write_vectors
from lakeformat.iceberg.write.new_entries import delete_files
from lakeformat.publish.format_version import HAS_ROW_IDS

__all__ = ["DeletedFile", "PublishedDeletes"]

_MOST_IN_A_FILE = 1000
"""The largest number of vectors in a Puffin file, because some readers read the whole file for one
vector.
"""


@dataclass(frozen=True, slots=True)
class DeletedFile:
    """A data file with deleted rows."""

    path: str
    partition: pa.StructArray
    spec_id: int = 0

    @property
    def scope(self) -> str:
        """A text that is equal only for files of the same partition."""
        return repr(self.partition[0].as_py())


class PublishedDeletes:
    """Writes the delete files of one snapshot.

    If the snapshot is not published, call ``delete_all`` to delete the files.
    """

    def __init__(self, base: LoadedMetadata, environment: Environment) -> None:
        self._base, self._environment = base, environment
        self.written: list[str] = []
        """The URIs of all delete files that were written."""

    def write(self, files: Iterable[tuple[DeletedFile, DeletionVector]]) -> pa.Table:
        """Write the deleted rows of data files; return the manifest entries of the delete files."""
        metadata = self._base.metadata
        directory = metadata_directory(metadata)
        has_vectors = metadata.format_version >= HAS_ROW_IDS
        writer = write_vectors if has_vectors else write_position_files
        found = [self.none()]
        for some in _parts(files):
            made = writer(self._base, some, self._environment, directory)
            found += made
            for entries in made:
                self.written += entries.column("file_path").unique().to_pylist()
        return pa.concat_tables(found)

    def none(self) -> pa.Table:
        """Return an empty table of manifest entries."""
        metadata = self._base.metadata
        return entry_schema(partition_type(metadata, metadata.partition_specs[0])).empty_table()

    def delete_all(self) -> None:
        """Delete all written files. Call this only if their snapshot was not published."""
        delete_files(self._base.places, self.written)


def _parts(
    files: Iterable[tuple[DeletedFile, DeletionVector]],
) -> Iterator[Iterator[tuple[DeletedFile, DeletionVector]]]:
    """Yield the files in parts of at most 1,000.

    Read each part to its end before you take the next one.
    """
    rest = iter(files)
    for first in rest:
        yield _with_first(first, islice(rest, _MOST_IN_A_FILE - 1))


def _with_first(
    first: tuple[DeletedFile, DeletionVector], rest: Iterable[tuple[DeletedFile, DeletionVector]]
) -> Iterator[tuple[DeletedFile, DeletionVector]]:
    yield first
    yield from rest
