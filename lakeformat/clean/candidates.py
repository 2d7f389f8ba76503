"""Data files that may go: nothing that becomes unreachable leads to them any more."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import numpy as np
import pyarrow as pa

from lakeformat.clean.places import FilePlaces
from lakeformat.clean.removal import FileClass, Removal
from lakeformat.handle import TableHandle
from lakeformat.metadata.manifest import ManifestColumns

__all__ = ["Candidates"]


class Candidates:
    """Files by where they are; each is there once, with the first reason that was given."""

    def __init__(self, handle: TableHandle) -> None:
        self._places = FilePlaces(handle)
        self._files: dict[str, tuple[Removal, ...]] = {}
        self._names: set[bytes] = set()

    def __len__(self) -> int:
        return len(self._files)

    def __contains__(self, key: str) -> bool:
        return key in self._files

    def add(self, columns: ManifestColumns, kind: FileClass, reason: str) -> None:
        """The files of some entries, with what accompanies them."""
        for key, removals in self._places.removals(columns, kind, reason):
            self._files.setdefault(key, removals)
        self._names.update(name for name in columns.file_name.values() if name is not None)

    def drop_added(self, columns: ManifestColumns) -> None:
        """Entries that add files: those among the candidates are needed again."""
        if self._files:
            names = self._names
            again = [name in names for name in columns.file_name.values()]
            self.drop(self.keys(columns.filter(np.array(again, np.bool_))))

    def drop(self, keys: Iterable[str]) -> None:
        """Files that have to stay after all."""
        for key in keys:
            self._files.pop(key, None)

    def keys(self, columns: ManifestColumns) -> list[str]:
        """How entries are told apart here: by where their files are."""
        return self._places.keys(columns)

    @property
    def names(self) -> pa.Array:
        """The names of the files: a fast first look for their entries in manifests."""
        return pa.array(self._names, pa.large_binary())

    def removals(self, kinds: Collection[FileClass] = tuple(FileClass)) -> Iterator[Removal]:
        """Every file, in the order it was added."""
        for files in self._files.values():
            for file in files:
                if file.kind in kinds:
                    yield file
