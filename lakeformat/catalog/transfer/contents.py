# SPDX-License-Identifier: Apache-2.0
"""Collects the files that a clone copies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from lakeformat.errors import UnsupportedError
from lakeformat.paimon.deletion.changelog_ownership import ChangelogOwnership
from lakeformat.paimon.deletion.places import FilePlaces
from lakeformat.paimon.deletion.protection import lists_of_changelog
from lakeformat.paimon.deletion.reachable_files import manifest_batches, metadata_of
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.layout import MAIN_BRANCH, TableLayout
from lakeformat.paimon.metadata.branch_directory import branches
from lakeformat.paimon.metadata.changelog_directory import changelog_ids, read_changelog
from lakeformat.paimon.metadata.data_file_meta import FileSource
from lakeformat.paimon.metadata.expired_changes import without_expired_changes
from lakeformat.paimon.metadata.manifest import ManifestColumns, live_rows, read_manifests
from lakeformat.paimon.metadata.manifest_list import ListKind, manifests_of
from lakeformat.paimon.metadata.schema_file import schema_ids
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot_if_present, snapshot_ids
from lakeformat.paimon.metadata.tag import read_tags
from lakeformat.tables.removal import FileClass

__all__ = ["Contents", "contents_of_snapshot", "contents_of_table"]

_EXTERNAL_PATHS = "data-file.external-paths"


@dataclass(slots=True)
class Contents:
    """The files that a clone copies, by path relative to the table."""

    files: dict[str, int | None] = field(default_factory=dict)
    """The size in bytes of each data file, index file and metadata file; None if the size is
    unknown.
    """
    names: dict[str, bytes] = field(default_factory=dict)
    """The content of each snapshot, tag and changelog file, and of each schema of a branch.

    They are written after ``files``, to which they refer.
    """
    schemas: dict[int, bytes] = field(default_factory=dict)
    """The content of each schema of the clone's main branch, by schema id.

    Schemas are written last, the newest first, because any schema makes the copy a table.
    """
    snapshot_ids: dict[str, list[int]] = field(default_factory=dict)
    """The ids of the copied snapshots by branch, ascending."""

    @property
    def bytes(self) -> int:
        """The total size of ``files`` in bytes; a file of unknown size counts as 0."""
        return sum(size or 0 for size in self.files.values())


def contents_of_snapshot(
    handle: TableHandle, snapshot: Snapshot | None, *, all_schemas: bool
) -> Contents:
    """Return the files of one snapshot, without files that only tags need.

    With ``snapshot=None``, for a table without snapshots, the result has only schemas.
    ``all_schemas`` also includes schemas that are newer than the snapshot's schema.
    ``UnsupportedError`` is raised for files outside of the directory of the table.
    """
    reader = _BranchFiles(handle, handle.layout, Contents())
    if snapshot is not None:
        storage, layout = handle.storage, handle.layout
        there = read_snapshot_if_present(storage, layout, snapshot.id)
        is_there = there is not None and there.uuid == snapshot.uuid
        begun = snapshot
        if not is_there or snapshot.id == min(snapshot_ids(storage, layout)):
            begun = without_expired_changes(storage, layout, snapshot)
        reader.add_live(snapshot)
        reader.add_metadata(begun, tuple(ListKind))
        reader.add_changelog_files(begun)
        content = storage.read(layout.snapshot(snapshot.id)) if is_there else snapshot.to_json()
        main = layout.on_branch(MAIN_BRANCH)
        reader.found.names[_below(main, main.snapshot(snapshot.id))] = content
        reader.found.snapshot_ids[MAIN_BRANCH] = [snapshot.id]
    newest = None if all_schemas or snapshot is None else snapshot.schema_id
    reader.add_schemas(newest)
    return reader.found


def contents_of_table(handle: TableHandle) -> Contents:
    """Return the files of all snapshots, tags, branches and changelogs, without the progress of
    consumers.

    ``UnsupportedError`` is raised for files outside of the directory of the table.
    """
    found = Contents()
    main = handle.layout.on_branch(MAIN_BRANCH)
    for name in [MAIN_BRANCH, *(branch.name for branch in branches(handle.storage, main))]:
        layout = main.on_branch(name)
        reader = _BranchFiles(replace(handle, layout=layout), layout, found)
        reader.add_everything()
        if name == MAIN_BRANCH:
            reader.add_schemas(None)
        else:
            reader.add_schema_files()
    return found


@dataclass(slots=True)
class _BranchFiles:
    handle: TableHandle
    layout: TableLayout
    found: Contents
    _places: FilePlaces = field(init=False)

    def __post_init__(self) -> None:
        self._places = FilePlaces(self.handle)
        if self.handle.options.data_file_external_paths:
            raise _elsewhere(self.handle, f"its option {_EXTERNAL_PATHS!r}")

    def add_everything(self) -> None:
        storage, layout = self.handle.storage, self.layout
        ids = snapshot_ids(storage, layout)
        each = (read_snapshot_if_present(storage, layout, number) for number in ids)
        snapshots = [snapshot for snapshot in each if snapshot is not None]
        tags = read_tags(storage, layout)
        for state in [*snapshots[:1], *(tag.snapshot for tag in tags)]:
            self.add_live(state)
        for before, snapshot in pairwise(snapshots):
            if snapshot.position.before == before.position:
                self._add_entries(self._added(snapshot, ListKind.DELTA))
            else:  # an interrupted rollback to a tag
                self.add_live(snapshot)
        named = [*snapshots[:1], *(tag.snapshot for tag in tags)]
        begun = [without_expired_changes(storage, layout, each) for each in named]
        for snapshot in [*begun, *snapshots[1:]]:
            self.add_metadata(snapshot, tuple(ListKind))
            self.add_changelog_files(snapshot)
        ownership = ChangelogOwnership(storage, layout)
        for number in changelog_ids(storage, layout):
            changelog = read_changelog(storage, layout, number)
            if ownership.needs_files(changelog):
                self._add_changelog(changelog)
            self._add_name(layout.changelog(number))
        for snapshot in snapshots:
            self._add_name(layout.snapshot(snapshot.id))
        for tag in tags:
            self._add_name(layout.tag(tag.name))
        self.found.snapshot_ids[layout.branch] = [snapshot.id for snapshot in snapshots]

    def add_live(self, snapshot: Snapshot) -> None:
        """Add the data files that are live in a snapshot, and their extra files such as file
        indexes.
        """
        storage = self.handle.storage
        manifests = manifests_of(storage, self.layout, snapshot)
        columns = read_manifests(storage, self.layout, manifests)
        where = f"snapshot {snapshot.id} of {self.handle.uri}"
        self._add_entries([columns.take(live_rows(columns, where))])

    def add_changelog_files(self, snapshot: Snapshot) -> None:
        self._add_entries(self._added(snapshot, ListKind.CHANGELOG))

    def add_metadata(self, snapshot: Snapshot, lists: Sequence[ListKind]) -> None:
        """Add the manifest lists ``lists`` of a snapshot with their manifests, and the snapshot's
        index files and statistics.
        """
        files, layout = metadata_of(self.handle, snapshot, lists), self.layout
        for name, size in (files.lists | files.manifests).items():
            self._add(layout.manifest(name), size)
        for name in files.index_manifests:
            self._add(layout.manifest(name), None)
        for name in files.statistics:
            self._add(layout.statistics(name), None)
        for entry in files.index_files.values():
            if entry.external_path is not None:
                raise _elsewhere(self.handle, entry.external_path)
            self._add(self._places.index_file(entry, "").path, entry.file_size)

    def add_schemas(self, newest: int | None) -> None:
        """Add the schemas with ids up to ``newest`` to the clone's main branch; None adds all."""
        storage, layout = self.handle.storage, self.layout
        for number in schema_ids(storage, layout):
            if newest is None or number <= newest:
                self.found.schemas[number] = storage.read(layout.schema(number))

    def add_schema_files(self) -> None:
        """Add the schema files of this branch to the same branch of the clone.

        For the main branch, call ``add_schemas`` instead.
        """
        for number in schema_ids(self.handle.storage, self.layout):
            self._add_name(self.layout.schema(number))

    def _add_changelog(self, changelog: Snapshot) -> None:
        """Add the files of a changelog whose snapshot has expired.

        If the changelog has a changelog list, add its changelog files. Otherwise the changes are in
        the data files that the snapshot added: add these files, except those that a compaction
        wrote. Data files of earlier snapshots are left out, because they may have expired.
        """
        kinds = lists_of_changelog(self.handle, changelog)
        for kind in kinds:
            added = self._added(changelog, kind)
            if kind is ListKind.CHANGELOG:
                self._add_entries(added)
            elif kind is ListKind.DELTA:
                self._add_entries(map(_written, added))
        files = metadata_of(self.handle, changelog, kinds, with_index=False)
        for name, size in (files.lists | files.manifests).items():
            self._add(self.layout.manifest(name), size)

    def _added(self, snapshot: Snapshot, kind: ListKind) -> Iterator[ManifestColumns]:
        manifests = manifests_of(self.handle.storage, self.layout, snapshot, kind)
        for columns in manifest_batches(self.handle, manifests):
            yield columns.take(np.flatnonzero(~columns.is_delete))

    def _add_entries(self, batches: Iterable[ManifestColumns]) -> None:
        for columns in filter(len, batches):
            addresses = columns.external_path
            if addresses.present is None or addresses.present.any():
                raise _elsewhere(self.handle, next(filter(None, addresses.texts()), "a data file"))
            for _, file in self._places.removals(columns, FileClass.DATA, ""):
                self._add(file.path, file.size)

    def _add(self, path: str, size: int | None) -> None:
        """Add a file. If the file was added before, keep the larger of the two sizes.

        A packed changelog file has a part for each of several buckets, and is added once for each
        part. ``size`` is then the end of the part, so only the last part has the full
        size.
        """
        known = self.found.files.setdefault(_below(self.layout, path), size)
        if size is not None and known is not None and size > known:
            self.found.files[_below(self.layout, path)] = size

    def _add_name(self, path: str) -> None:
        self.found.names[_below(self.layout, path)] = self.handle.storage.read(path)


def _written(columns: ManifestColumns) -> ManifestColumns:
    return columns.filter(columns.file_source.numbers != FileSource.COMPACT)


def _below(layout: TableLayout, path: str) -> str:
    return path.removeprefix(f"{layout.root}/") if layout.root else path


def _elsewhere(handle: TableHandle, what: str) -> UnsupportedError:
    return UnsupportedError(
        f"cannot clone {handle.uri}: it has files outside of its directory ({what}), and its "
        "manifests name them by full address, so the clone would share them. Create a new table "
        "and write the rows into it: new.write(old.scan().to_batches())"
    )
