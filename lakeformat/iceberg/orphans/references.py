# SPDX-License-Identifier: Apache-2.0
"""Finds the files that a table needs, because its current or earlier metadata files refer to them.

Earlier metadata files count because another program may make one of them current again. Files of a
staged result are needed until the result is published or discarded, even if they are old. The
directory may also hold metadata files and staged results of another table, for example after a
rename. The files of that table are needed, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lakeformat.errors import CorruptTableError, InvalidRequestError
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.metadata_file import HINT, METADATA
from lakeformat.iceberg.metadata.snapshot import Snapshot
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.orphans.earlier_metadata import EarlierMetadata
from lakeformat.iceberg.orphans.snapshot_files import SnapshotFiles
from lakeformat.iceberg.reachable_files import statistics_sizes
from lakeformat.iceberg.staged.staged_results import all_staged_results
from lakeformat.storage import Storage
from lakeformat.storage.location import location_of
from lakeformat.types.count_text import counted

__all__ = ["References"]

_AT_A_TIME = 16
"""The number of manifest lists that are in memory at the same time."""


@dataclass(slots=True)
class References:
    """The files that metadata and staged results refer to.

    ``catch_up`` adds those of later commits.
    """

    handle: TableHandle
    current: LoadedMetadata
    _paths: set[str] = field(default_factory=set)
    _outside: dict[str, list[tuple[str, ...]]] = field(default_factory=dict)
    """The path segments of referenced files outside of the table's directory, by the name of the
    file.
    """
    _files: set[str] = field(default_factory=set)
    _snapshots: set[tuple[int, str | None]] = field(default_factory=set)
    _incomplete: set[tuple[int, str | None]] = field(default_factory=set)
    """Expired snapshots of which some files are deleted."""
    _manifests: set[str] = field(default_factory=set)
    _staged: set[str] = field(default_factory=set)
    other_tables: set[str] = field(default_factory=set)
    """The UUIDs of other tables that have metadata files in the directory."""

    @classmethod
    def of(cls, handle: TableHandle) -> References:
        """Collect the files that the table needs, from its metadata and its staged results.

        These are the files to which the current metadata, the metadata files in its log and staged
        results refer. Raise ``CorruptTableError`` if one of these metadata files, or a manifest
        list or manifest of the current metadata, is damaged.
        """
        found = cls(handle, handle.load())
        found._add_staged()
        # If a result is published meanwhile, it is in the staged results or in this metadata.
        found.current = handle.load()
        places = found.current.places
        found._paths.add(_plain(f"{places.root}/{METADATA}/{HINT}"))
        found._add_current()
        return found

    def __str__(self) -> str:
        return (
            f"{counted(len(self._files), 'metadata file')}, "
            f"{counted(len(self._snapshots), 'snapshot')} and "
            f"{counted(len(self._manifests), 'manifest')}"
        )

    def catch_up(self) -> None:
        """Add the files of commits and staged results since the last call."""
        self._add_staged()
        newest = self.handle.load()
        if newest.path != self.current.path:
            self.current = newest
            self._add_current()

    def has(self, path: str) -> bool:
        """Return True if the file at this path of the table's storage is referenced."""
        return _plain(path) in self._paths

    def has_outside(self, address: str) -> bool:
        """Return True if metadata refers to ``address``, the URI of a file outside of the table."""
        segments = location_of(address, is_literal=False).segments
        return segments in self._outside.get(segments[-1], ())

    def keep_metadata_files(self, may_become_current: Mapping[str, bool]) -> None:
        """Add metadata files that are needed, and the files to which they refer.

        ``may_become_current`` has the paths of metadata files. The value is True if the file may
        become the current one of the table; such a file is needed. A file with the value False is
        needed only if it belongs to another table in the same directory. If a file with the value
        True cannot be read, only its path is added.
        """
        storage = self.current.places.storage
        paths = [*may_become_current]
        read = EarlierMetadata().read([(storage, path) for path in paths])
        for path, found in zip(paths, read, strict=True):
            if isinstance(found, TableMetadata):
                self._keep(path, found, may_become_current=may_become_current[path])
            elif may_become_current[path]:
                self._paths.add(_plain(path))

    def _keep(self, path: str, metadata: TableMetadata, *, may_become_current: bool) -> None:
        mine, theirs = self.current.metadata.table_uuid, metadata.table_uuid
        is_other = None not in (mine, theirs) and mine != theirs
        if is_other:
            self.other_tables.add(str(theirs))
        if is_other or may_become_current:
            self._add(LoadedMetadata(self.current.places, metadata, path), is_current=False)

    def require_no_mismatch(self, paths: Iterable[str]) -> None:
        """Raise ``InvalidRequestError`` if metadata may refer to one of the files by an old path.

        After a table is moved or copied, its metadata may still name the old directory. So a file
        may be needed if metadata names a path outside of the table that ends with the file's path
        in the table.
        """
        root = _plain(self.current.places.root)
        for path in paths:
            below = tuple(_plain(path).removeprefix(root).strip("/").split("/"))
            for named in self._outside.get(below[-1], ()):
                if named[-len(below) :] == below:
                    raise InvalidRequestError(
                        f"the metadata of {self.handle.uri} names the file /{'/'.join(named)} "
                        f"outside of the table, and the table has the file {'/'.join(below)}: both "
                        "may be the same file, so it was not deleted. If the table was copied or "
                        "moved, write its metadata for the new place first, with Spark's procedure "
                        "rewrite_table_path"
                    )

    def _add_staged(self) -> None:
        for results in all_staged_results(self.handle):
            for name in results.names():
                if (address := results.address(name)) in self._staged:
                    continue
                found = results.read_if_present(name)
                for message in () if found is None else found.messages:
                    for path in message.paths:
                        self._name(path)
                self._staged.add(address)

    def _add_current(self) -> None:
        self._add(self.current, is_current=True)
        places = self.current.places
        logged: dict[str, tuple[Storage, str]] = {}
        for entry in self.current.metadata.metadata_log:
            self._name(entry.metadata_file)
            storage, path = places.place(entry.metadata_file)
            logged[storage.uri(path)] = storage, path
        files = [file for uri, file in logged.items() if uri not in self._files]
        for (_, path), found in zip(files, EarlierMetadata().read(files), strict=True):
            if isinstance(found, TableMetadata):
                self._add(LoadedMetadata(places, found, path), is_current=False)
            elif isinstance(found, CorruptTableError):
                raise found

    def _add(self, loaded: LoadedMetadata, *, is_current: bool) -> None:
        self._files.add(loaded.places.storage.uri(loaded.path))
        self._paths.add(_plain(loaded.path))
        for address in statistics_sizes(loaded.metadata):
            self._name(address)
        known = self._snapshots if is_current else self._snapshots | self._incomplete
        new = [each for each in loaded.metadata.snapshots if _key(each) not in known]
        for start in range(0, len(new), _AT_A_TIME):
            self._add_snapshots(loaded, new[start : start + _AT_A_TIME], is_current=is_current)

    def _add_snapshots(
        self, loaded: LoadedMetadata, snapshots: Sequence[Snapshot], *, is_current: bool
    ) -> None:
        found = SnapshotFiles.of(loaded, snapshots, self._manifests)
        for snapshot in snapshots:
            try:
                self._add_snapshot(snapshot, found)
            except CorruptTableError:
                if is_current:
                    raise
                # An expired snapshot, of which some files are deleted.
                self._incomplete.add(_key(snapshot))
                continue
            self._snapshots.add(_key(snapshot))

    def _add_snapshot(self, snapshot: Snapshot, found: SnapshotFiles) -> None:
        if snapshot.manifest_list is not None:
            self._name(snapshot.manifest_list)
        for spelled, manifest in found.manifests(snapshot).items():
            if spelled in self._manifests:
                continue
            self._name(manifest.column("manifest_path")[0].as_py())
            for file in found.live(spelled):
                self._name(file)
            self._manifests.add(spelled)

    def _name(self, address: str) -> None:
        """Record that a file is referenced.

        A file in the table's directory is recorded by its path, and any other file in ``_outside``.
        """
        places = self.current.places
        if (path := places.path_below(address)) is not None:
            self._paths.add(_plain(path))
            return
        found, here = location_of(address), places.location.real()
        real = found.real()
        if here.holds(real):
            below = real.segments[len(here.segments) :]
            self._paths.add(_plain("/".join((places.root, *below))))
        elif found.segments:
            self._outside.setdefault(found.segments[-1], []).append(found.segments)


def _key(snapshot: Snapshot) -> tuple[int, str | None]:
    return snapshot.snapshot_id, snapshot.manifest_list


def _plain(path: str) -> str:
    """Return a path without empty parts: metadata may have ``a//b``, but a listing has ``a/b``."""
    return "/".join(name for name in path.split("/") if name)
