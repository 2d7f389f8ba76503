# SPDX-License-Identifier: Apache-2.0
"""Reads deletion vectors, which mark rows of data files as deleted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from lakeformat.errors import CorruptTableError
from lakeformat.files.deletion_vector import DeletionVector, keep_mask
from lakeformat.files.vector_record import DeletionVectorRange
from lakeformat.paimon.expiry_race import explaining_expiry
from lakeformat.paimon.file_places import index_file_place
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.index.damage import RESTORE
from lakeformat.paimon.index.deletion_vector_file import read_deletion_vectors
from lakeformat.paimon.metadata.index_heads import IndexHead, read_index_heads
from lakeformat.paimon.metadata.index_manifest import (
    DELETION_VECTORS,
    IndexManifestEntry,
    read_index_manifest,
)
from lakeformat.paimon.metadata.manifest import ManifestEntry
from lakeformat.paimon.metadata.referrer import referred_to_by
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.storage import Storage
from lakeformat.types.count_text import counted

__all__ = [
    "DeletedRows",
    "deleted_rows_of",
    "find_deleted_rows",
    "find_vector_files",
    "find_vectors",
]

_RESTORE = RESTORE.replace("the file", "the index manifest")

Place = tuple[bytes, int]
"""A partition (framed binary row) and a bucket: file names are unique only within one bucket."""


class DeletedRows:
    """The deletion vectors of a snapshot.

    The index files of a bucket are read when they are first needed.
    """

    def __init__(
        self, handle: TableHandle, entries: Iterable[IndexManifestEntry], source: str = ""
    ) -> None:
        """Keep the index files ``entries`` for later reads.

        ``source`` is the URI of the index manifest, for errors.
        """
        self._handle = handle
        self._source = source
        self._entries: dict[Place, list[IndexManifestEntry]] = {}
        for entry in entries:
            self._entries.setdefault((entry.partition, entry.bucket), []).append(entry)
        self._vectors: dict[Place, dict[str, DeletionVector]] = {}

    def keep(self, file: ManifestEntry) -> Callable[[int, int], npt.NDArray[np.bool_]] | None:
        """Return a function that makes masks of the rows of a file; None if no row is deleted.

        A mask is True for live rows. The arguments of the function are the position of the first
        row, and the number of rows.
        Raise CorruptTableError if the deletion vector is damaged.
        """
        vector = self.vector(file)
        return None if vector is None else partial(keep_mask, vector)

    def count(self, file: ManifestEntry) -> int:
        """Return the number of deleted rows of a file.

        Raise CorruptTableError if its deletion vector is damaged.
        """
        vector = self.vector(file)
        return 0 if vector is None else vector.cardinality

    def vectors(self, partition: bytes, bucket: int) -> dict[str, DeletionVector]:
        """Return all deletion vectors of a bucket, by name of the data file.

        The result also has the vectors of files that are not live.
        """
        return dict(self._of_bucket((partition, bucket)))

    def vector(self, file: ManifestEntry) -> DeletionVector | None:
        """Return the deletion vector of a data file; None if no row is deleted.

        Raise CorruptTableError if the vector deletes a row that the file does not have.
        """
        name, rows = file.file.file_name, file.file.row_count
        vector = self._of_bucket((file.partition, file.bucket)).get(name)
        if vector is not None and vector.positions and vector.positions.max() >= rows:
            raise CorruptTableError(
                f"{self._source} deletes row {vector.positions.max()} of {name}, "
                f"which has {counted(rows, 'row')} (rows count from 0); {_RESTORE}"
            )
        return vector

    def _of_bucket(self, place: Place) -> dict[str, DeletionVector]:
        if place not in self._vectors:
            self._vectors[place] = {}
            for entry in self._entries.get(place, ()):
                found = self._read(entry)
                twice = sorted(found.keys() & self._vectors[place].keys())
                if twice:
                    raise self._two_vectors(twice[0])
                self._vectors[place].update(found)
        return self._vectors[place]

    def _two_vectors(self, data_file_name: str) -> CorruptTableError:
        return CorruptTableError(
            f"{self._source} has two deletion vectors for {data_file_name}; at most one is "
            f"allowed; {_RESTORE}"
        )

    def _read(self, entry: IndexManifestEntry) -> dict[str, DeletionVector]:
        ranges: tuple[DeletionVectorRange, ...] = entry.ranges or ()
        names = [found.data_file_name for found in ranges]
        if len(set(names)) < len(names):
            raise self._two_vectors(next(name for name in names if names.count(name) > 1))
        if len(ranges) != entry.row_count:
            raise CorruptTableError(
                f"{self._source} counts {counted(entry.row_count, 'deletion vector')} in "
                f"{entry.file_name}, "
                f"but lists {len(ranges)}; {_RESTORE}"
            )
        with referred_to_by(self._source):
            storage, path = self.place(entry)
            return read_deletion_vectors(storage, path, ranges)

    def place(self, entry: IndexManifestEntry) -> tuple[Storage, str]:
        """Return storage and path of an index file."""
        return index_file_place(self._handle, entry)


def find_vectors(
    handle: TableHandle, snapshot: Snapshot
) -> dict[Place, tuple[IndexManifestEntry, ...]]:
    """Return the deletion-vector files of a snapshot by partition and bucket."""
    if snapshot.index_manifest is None:
        return {}
    who = referred_to_by(f"snapshot {snapshot.id} of {handle.uri}")
    with explaining_expiry(handle, snapshot), who:
        entries = read_index_manifest(handle.storage, handle.layout, snapshot.index_manifest)
    found: dict[Place, list[IndexManifestEntry]] = {}
    for entry in entries:
        if entry.index_type == DELETION_VECTORS:
            found.setdefault((entry.partition, entry.bucket), []).append(entry)
    return {place: tuple(there) for place, there in found.items()}


def find_vector_files(
    handle: TableHandle,
    snapshot: Snapshot,
    known: Mapping[Place, Sequence[IndexHead]] | None = None,
) -> dict[Place, list[IndexHead]]:
    """Return the deletion-vector files of a snapshot by partition and bucket.

    Call ``entry()`` on an item of the result to get its list of vectors.

    ``known`` is the result for another snapshot: entries that it has already are not decoded again.
    """
    if snapshot.index_manifest is None:
        return {}
    who = referred_to_by(f"snapshot {snapshot.id} of {handle.uri}")
    with explaining_expiry(handle, snapshot), who:
        heads = read_index_heads(
            handle.storage,
            handle.layout,
            snapshot.index_manifest,
            known=(each for some in (known or {}).values() for each in some),
        )
    found: dict[Place, list[IndexHead]] = {}
    for head in heads:
        if head.index_type == DELETION_VECTORS:
            found.setdefault((head.partition, head.bucket), []).append(head)
    return found


def find_deleted_rows(handle: TableHandle, snapshot: Snapshot) -> DeletedRows:
    """Return all deletion vectors of a snapshot."""
    vectors = find_vectors(handle, snapshot)
    return deleted_rows_of(
        handle, snapshot, (entry for there in vectors.values() for entry in there)
    )


def deleted_rows_of(
    handle: TableHandle, snapshot: Snapshot, entries: Iterable[IndexManifestEntry]
) -> DeletedRows:
    """Return the deletion vectors in the index files ``entries`` of a snapshot."""
    source = ""
    if snapshot.index_manifest is not None:
        source = handle.storage.uri(handle.layout.manifest(snapshot.index_manifest))
    return DeletedRows(handle, entries, source)
