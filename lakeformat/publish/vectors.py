# SPDX-License-Identifier: Apache-2.0
"""Finds the deletion vectors of a Paimon snapshot that are not published yet.

Index files never change. So an index file that the published snapshot already has is read only if
it may have the vector of a data file that was added since.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from lakeformat.files.deletion_vector import DeletionVector
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.index_heads import IndexHead
from lakeformat.paimon.metadata.index_manifest import IndexManifestEntry
from lakeformat.paimon.metadata.manifest_columns import ManifestColumns
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.read.deletions import deleted_rows_of, find_vector_files, find_vectors

__all__ = ["ChangedVector", "Place", "changed_vectors", "files_by_place", "vectors_of"]

Place: TypeAlias = tuple[bytes, int]
"""The encoded partition and the bucket, within which the name of a data file is unique."""
_Files: TypeAlias = Mapping[Place, Sequence[IndexHead]]


@dataclass(frozen=True, slots=True)
class ChangedVector:
    """The deleted rows of a data file in the newer snapshot."""

    place: Place
    name: str
    vector: DeletionVector | None
    """The deleted rows; None if no row of the data file is deleted any more."""


def files_by_place(files: ManifestColumns) -> dict[Place, dict[str, int]]:
    """Return the position of each data file in ``files``, by its place and its name.

    A place is a partition and a bucket.
    """
    found: dict[Place, dict[str, int]] = {}
    columns = (files.partition.to_arrow().to_pylist(), files.bucket.numbers.tolist())
    for row, (partition, bucket, name) in enumerate(
        zip(*columns, files.file_name.texts(), strict=True)
    ):
        assert name is not None  # manifests have a name for each file
        found.setdefault((partition, bucket), {})[name] = row
    return found


def vectors_of(
    handle: TableHandle, snapshot: Snapshot, names: Mapping[Place, Collection[str]]
) -> Iterator[ChangedVector]:
    """Yield the vectors of the named data files; files without a vector are left out."""
    for place, entries in find_vectors(handle, snapshot).items():
        if place in names:
            for name, vector in _read(handle, snapshot, place, entries).items():
                if name in names[place]:
                    yield ChangedVector(place, name, vector)


def changed_vectors(
    handle: TableHandle,
    before: Snapshot,
    after: Snapshot,
    added: Mapping[Place, Collection[str]],
) -> Iterator[ChangedVector]:
    """Yield the vectors that differ between two snapshots, and the vectors of the added data files.

    Vectors of files that the table no longer has may be among them.
    """
    is_same = before.index_manifest == after.index_manifest
    if is_same and not added:
        return
    older = find_vector_files(handle, before)
    newer = older if is_same else find_vector_files(handle, after, older)
    for place in dict.fromkeys((*older, *newer)):
        yield from _changed_in(handle, (before, older), (after, newer), place, added.get(place, ()))


def _changed_in(
    handle: TableHandle,
    before: tuple[Snapshot, _Files],
    after: tuple[Snapshot, _Files],
    place: Place,
    added: Collection[str],
) -> Iterator[ChangedVector]:
    """Yield the changed vectors of a bucket.

    An unchanged index file is read only if it has the vector of an added data file. A data file has
    at most one vector in a snapshot. So it has lost its vector if the vector is in a removed index
    file, and no new index file has a vector for this data file.
    """
    old_files, new_files = before[1].get(place, ()), after[1].get(place, ())
    old_names, new_names = ({each.file_name for each in some} for some in (old_files, new_files))
    old = [each.entry() for each in old_files if each.file_name not in new_names]
    new = []
    for each in new_files:
        is_new = each.file_name not in old_names
        if is_new or added:
            entry = each.entry()
            if is_new or any(one.data_file_name in added for one in entry.ranges or ()):
                new.append(entry)
    were = _read(handle, before[0], place, old)
    are = _read(handle, after[0], place, new)
    for name, vector in are.items():
        if name in added or were.get(name) != vector:
            yield ChangedVector(place, name, vector)
    for name in sorted(were.keys() - are.keys()):
        yield ChangedVector(place, name, None)


def _read(
    handle: TableHandle, snapshot: Snapshot, place: Place, entries: Collection[IndexManifestEntry]
) -> dict[str, DeletionVector]:
    return deleted_rows_of(handle, snapshot, entries).vectors(*place) if entries else {}
