"""The metadata files of one commit: their names, and their removal after a lost attempt."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from lakeformat.errors import LakeError
from lakeformat.paimon.commit.manifest_merge import partition_types
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.layout import index_manifest_name, manifest_list_name, manifest_name
from lakeformat.paimon.metadata.index_manifest import IndexManifestEntry, write_index_manifest
from lakeformat.paimon.metadata.manifest import ManifestColumns, write_columns
from lakeformat.paimon.metadata.manifest_list import (
    ManifestMeta,
    summarise_columns,
    write_manifest_list,
)

__all__ = ["AttemptFiles", "WrittenList"]


@dataclass(frozen=True, slots=True)
class WrittenList:
    """A manifest list with its size, as a snapshot refers to it."""

    name: str
    size: int


@dataclass(slots=True)
class AttemptFiles:
    """Writes metadata files under unique names, and records each name before writing."""

    handle: TableHandle
    _unique: str = ""
    _lists: int = 0
    _manifests: int = 0
    _index_manifests: int = 0
    _written: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._unique = self.handle.environment.new_id()

    @property
    def mark(self) -> int:
        """Number of names used so far; the names of an attempt are those after its mark."""
        return len(self._written)

    def since(self, mark: int) -> list[str]:
        """Return the names used after a mark."""
        return self._written[mark:]

    def new_manifest(self) -> str:
        """Return a new name for a manifest."""
        name = manifest_name(self._unique, self._manifests)
        self._manifests += 1
        self._written.append(name)
        return name

    def write_entries(self, columns: ManifestColumns) -> WrittenList:
        """Write a manifest with the entries, if any, and a list that names it."""
        if not len(columns):
            return self.write_list([])
        handle, name = self.handle, self.new_manifest()
        size = write_columns(handle.storage, handle.layout, name, columns, handle.options)
        return self.write_list([summarise_columns(name, size, columns, partition_types(handle))])

    def write_list(self, manifests: Sequence[ManifestMeta]) -> WrittenList:
        """Write a manifest list."""
        handle = self.handle
        name = manifest_list_name(self._unique, self._lists)
        self._lists += 1
        self._written.append(name)
        size = write_manifest_list(handle.storage, handle.layout, name, manifests, handle.options)
        return WrittenList(name, size)

    def write_index_manifest(self, entries: Sequence[IndexManifestEntry]) -> str:
        """Write an index manifest with all index files."""
        handle = self.handle
        name = index_manifest_name(self._unique, self._index_manifests)
        self._index_manifests += 1
        self._written.append(name)
        write_index_manifest(handle.storage, handle.layout, name, entries, handle.options)
        return name

    def delete(self, names: Iterable[str]) -> None:
        """Remove files that no snapshot refers to."""
        for name in names:
            with contextlib.suppress(LakeError):  # a file left behind is a harmless orphan
                self.handle.storage.delete(self.handle.layout.manifest(name))

    def delete_all(self) -> None:
        """Remove every file of every attempt."""
        self.delete(self._written)
