# SPDX-License-Identifier: Apache-2.0
"""Finds the deleted rows of a published snapshot, and writes them as Iceberg deletes.

The module also finds the data files whose earlier deletes must be removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property

import pyarrow as pa

from lakeformat.files.deletion_vector import DeletionVector
from lakeformat.iceberg.metadata.snapshot import Snapshot as IcebergSnapshot
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.manifest_columns import ManifestColumns
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot
from lakeformat.paimon.read.plan import plan_columns
from lakeformat.publish.entries import FileEntries
from lakeformat.publish.published_deletes import DeletedFile, PublishedDeletes
from lakeformat.publish.vectors import (
    ChangedVector,
    Place,
    changed_vectors,
    files_by_place,
    vectors_of,
)

__all__ = ["ChangedDeletes", "DeletedRows"]


@dataclass(frozen=True, slots=True)
class ChangedDeletes:
    """The difference between the deletes of a snapshot and those of the snapshot before it."""

    deletes: pa.Table
    """The manifest entries of new deletes."""
    changed: pa.Array
    """The URIs of data files whose earlier deletes must be removed."""
    partitions: pa.StructArray
    """The partitions of the data files in ``changed``."""


@dataclass(frozen=True, slots=True)
class DeletedRows:
    """Finds and writes the deletes of one snapshot."""

    handle: TableHandle
    snapshot: Snapshot
    entries: FileEntries
    files: PublishedDeletes

    def of_all(self, shown: ManifestColumns) -> ChangedDeletes:
        """Write the deletes of all data files in ``shown``, and return them as changes.

        ``shown`` has the files that Iceberg readers read.
        """
        if self.snapshot.index_manifest is None:
            return self._changed(())
        addresses = _Addresses(self.handle, self.snapshot, self.entries, shown)
        vectors = vectors_of(self.handle, self.snapshot, addresses.places)
        return self._changed((addresses.of(each.place, each.name), each) for each in vectors)

    def after(
        self,
        parent: IcebergSnapshot,
        before: Snapshot | None,
        added: ManifestColumns,
        removed: pa.Array,
    ) -> ChangedDeletes:
        """Write the changed deletes of data files that remain, and all deletes of added data files.

        ``before`` is the Paimon snapshot of ``parent``; if None, that snapshot is read. ``removed``
        has the URIs of the data files that the snapshot removes; their deletes are left out.
        """
        had_deletes = parent.summary.get("total-delete-files") != "0"
        if self.snapshot.index_manifest is None and not had_deletes:
            return self._changed(())
        handle = self.handle
        if before is None:
            before = read_snapshot(handle.storage, handle.layout, parent.snapshot_id)
        addresses = _Addresses(handle, self.snapshot, self.entries, added)
        vectors = changed_vectors(handle, before, self.snapshot, addresses.places)
        known = ((addresses.of(each.place, each.name), each) for each in vectors)
        gone = {*removed.to_pylist()}
        return self._changed(pair for pair in known if pair[0] not in gone)

    def _changed(self, vectors: Iterable[tuple[str | None, ChangedVector]]) -> ChangedDeletes:
        """Write the deleted rows of ``vectors``: pairs of the URI of a data file and its vector.

        Pairs without a URI are left out.
        """
        changed: dict[str, bytes] = {}
        deletes = self.files.write(self._written(vectors, changed))
        partitions = self.entries.decoded(pa.array(sorted({*changed.values()}), pa.large_binary()))
        return ChangedDeletes(deletes, pa.array([*changed], pa.string()), partitions)

    def _written(
        self, vectors: Iterable[tuple[str | None, ChangedVector]], changed: dict[str, bytes]
    ) -> Iterator[tuple[DeletedFile, DeletionVector]]:
        """Yield each data file that has deleted rows now, with its deletion vector.

        Also add every data file in ``vectors`` to the dict ``changed``: its URI is the key, and its
        encoded partition is the value. Pairs in ``vectors`` without a URI are left out.
        """
        partition_of = cache(self.entries.partition_of)
        for address, each in vectors:
            if address is None:
                continue
            changed[address] = each.place[0]
            if each.vector is not None and each.vector.positions:
                yield DeletedFile(address, partition_of(each.place[0])), each.vector


class _Addresses:
    """Finds the URIs of data files; for the files in ``known``, no manifest is read."""

    def __init__(
        self, handle: TableHandle, snapshot: Snapshot, entries: FileEntries, known: ManifestColumns
    ) -> None:
        self._handle, self._snapshot, self._entries = handle, snapshot, entries
        self._known = known
        self.places = files_by_place(known)

    def of(self, place: Place, name: str) -> str | None:
        """Return the URI of a data file; None if the table has external paths and the file is not
        live any more.
        """
        row = self.places.get(place, {}).get(name)
        if row is not None:
            return self._paths[row]
        if not self._handle.options.data_file_external_paths:
            return self._entries.path(*place, name)
        return self._planned.get((place, name))

    @cached_property
    def _paths(self) -> list[str]:
        found: list[str] = self._entries.paths(self._known).to_pylist()
        return found

    @cached_property
    def _planned(self) -> dict[tuple[Place, str], str]:
        """The URIs of all live files, by place (partition and bucket) and name, read from the
        manifests.
        """
        live = plan_columns(self._handle, self._snapshot).columns
        paths = self._entries.paths(live).to_pylist()
        return {
            (place, name): paths[row]
            for place, rows in files_by_place(live).items()
            for name, row in rows.items()
        }
