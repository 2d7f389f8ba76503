# SPDX-License-Identifier: Apache-2.0
"""The directory ``_lake`` of a table: files of this library that no other engine reads.

Java's removal of orphan files ignores names that begin with ``_``. Each branch has its own files.
Records are in ``<kind>/<uuid>``, where ``<uuid>`` is the UUID of the table, because two tables can
share a directory after a rename or a drop. Earlier releases wrote records in ``<kind>``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from urllib.parse import quote

from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.commit.identity import identities
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.storage import Storage
from lakeformat.tables.position import MAIN_BRANCH

__all__ = ["OwnRecords", "branch_directory", "every_directory", "own_directory", "own_records"]

_DIRECTORY = "_lake"


@dataclass(frozen=True, slots=True)
class OwnRecords:
    """The place of this library's records of one kind, for one branch of a table."""

    loaded: LoadedMetadata
    old_directory: str
    """The directory of earlier releases; its files can belong to another table."""
    others: tuple[Callable[[], LoadedMetadata], ...]
    """Functions that load the metadata of the other stores of a Mixed table, each at most once."""

    @property
    def storage(self) -> Storage:
        """The storage of the records."""
        return self.loaded.places.storage

    @property
    def directory(self) -> str:
        """The directory of the records; for a table without a UUID, it is ``old_directory``."""
        uuid = self.loaded.metadata.table_uuid
        return f"{self.old_directory}/{quote(uuid, safe='')}" if uuid else self.old_directory

    @property
    def has_old_place(self) -> bool:
        """True if records of earlier releases are in another directory than new ones."""
        return self.directory != self.old_directory

    @property
    def has_all_snapshots(self) -> bool:
        """True if no snapshot since the creation of the table has expired.

        Then a record belongs to another table if this table has none of the snapshots that the
        record names.
        """
        return all(map(_has_all_snapshots, self._stores()))

    def may_name(self, snapshot_ids: Collection[int]) -> bool:
        """Return True if a record that names these snapshots can belong to this table.

        A record that names no snapshot can always belong to this table.
        """
        if not snapshot_ids:
            return True
        found = {each.snapshot_id for store in self._stores() for each in store.snapshots}
        return not found.isdisjoint(snapshot_ids) or not self.has_all_snapshots

    def identifiers(self) -> Mapping[str, int] | None:
        """Return the highest commit identifier of each commit user in the table; None if snapshots
        have expired, because the table may have had more commits.
        """
        if not self.has_all_snapshots:
            return None
        found: dict[str, int] = {}
        for store in self._stores():
            for user, identifier in identities(store.snapshots):
                found[user] = max(identifier, found.get(user, identifier))
        return found

    def _stores(self) -> Iterator[TableMetadata]:
        yield self.loaded.metadata
        yield from (load().metadata for load in self.others)


def own_records(
    handle: TableHandle,
    kind: str,
    *other_stores: TableHandle,
    loaded: LoadedMetadata | None = None,
) -> OwnRecords:
    """Return the place of this library's records of a kind, such as ``stream``, for a branch.

    ``other_stores`` are the stores of a Mixed table whose snapshots the records can name, too.
    ``loaded`` is the metadata if it is already read.
    """
    loaded = loaded or handle.load()
    directory = _directory(loaded, handle.branch, kind)
    return OwnRecords(loaded, directory, tuple(cache(each.load) for each in other_stores))


def own_directory(handle: TableHandle, name: str) -> tuple[Storage, str]:
    """Return the storage and the path of the directory ``name`` that all tables of a location
    share.
    """
    loaded = handle.load()
    return loaded.places.storage, _directory(loaded, handle.branch, name)


def every_directory(loaded: LoadedMetadata, kind: str) -> Iterator[str]:
    """Yield each directory that can have records of a kind.

    These are the directories of all branches of all tables in this table's directory.
    """
    storage, root = loaded.places.storage, f"{loaded.places.root}/{_DIRECTORY}"
    branches = storage.list(f"{root}/branch")
    for parent in (root, *(each.path for each in branches if each.is_directory)):
        yield f"{parent}/{kind}"
        inside = storage.list(f"{parent}/{kind}")
        yield from (each.path for each in inside if each.is_directory)


def branch_directory(loaded: LoadedMetadata, branch: str) -> str:
    """Return the path of the directory of a branch other than main."""
    return f"{loaded.places.root}/{_DIRECTORY}/{_inside(branch)}"


def _directory(loaded: LoadedMetadata, branch: str, name: str) -> str:
    inside = "" if branch == MAIN_BRANCH else f"{_inside(branch)}/"
    return f"{loaded.places.root}/{_DIRECTORY}/{inside}{name}"


def _inside(branch: str) -> str:
    return f"branch/branch-{quote(branch, safe='')}"


def _has_all_snapshots(metadata: TableMetadata) -> bool:
    ids = {None, *(each.snapshot_id for each in metadata.snapshots)}
    numbers = sorted(each.sequence_number for each in metadata.snapshots)
    return numbers == [*range(1, metadata.last_sequence_number + 1)] and all(
        each.parent_id in ids for each in metadata.snapshots
    )
