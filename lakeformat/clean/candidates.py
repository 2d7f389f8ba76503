"""Data files that may go, and what lies beside them: each on its own."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import chain

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
        self._files: dict[str, Removal] = {}
        self._names: set[bytes] = set()

    def __len__(self) -> int:
        return len(self._files)

    def __contains__(self, key: str) -> bool:
        return key in self._files

    def add(
        self,
        columns: ManifestColumns,
        kind: FileClass,
        reason: str,
        but: Collection[str] = (),
    ) -> None:
        """The files of some entries, with what accompanies them; none of those in ``but``."""
        for key, removal in self._places.removals(columns, kind, reason):
            if key not in but:
                self._files.setdefault(key, removal)
        self._names.update(name for name in columns.file_name.values() if name is not None)

    def drop_added(self, columns: ManifestColumns) -> None:
        """Entries that add files: those among the candidates are needed again."""
        if self._files:
            names = self._names
            again = [name in names for name in columns.file_name.values()]
            found = self.keys(columns.filter(np.array(again, np.bool_)))
            self.drop(chain.from_iterable(found))

    def drop(self, keys: Iterable[str]) -> None:
        """Files that have to stay after all."""
        for key in keys:
            self._files.pop(key, None)

    def keys(self, columns: ManifestColumns) -> list[tuple[str, ...]]:
        """How the files of each entry are told apart here: by where they are."""
        return self._places.keys(columns)

    @property
    def names(self) -> pa.Array:
        """The names of the data files: a fast first look for their entries in manifests."""
        return pa.array(self._names, pa.large_binary())

    def removals(self, kinds: Collection[FileClass] = tuple(FileClass)) -> Iterator[Removal]:
        """Every file, in the order it was added."""
        return (file for file in self._files.values() if file.kind in kinds)
