# SPDX-License-Identifier: Apache-2.0
"""Candidates for deletion: data, changelog and index files that are perhaps not needed any more."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.files.changelog_packs import PACK_PREFIX, is_packed
from lakeformat.paimon.deletion.places import FilePlaces
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.manifest import ManifestColumns
from lakeformat.paimon.metadata.manifest_columns.columns import BytesColumn, Mask
from lakeformat.tables.removal import FileClass, Removal
from lakeformat.types.arrow_memory import numbers

__all__ = ["Candidates"]


class Candidates:
    """The files that are deleted if nothing needs them, by their key (see ``FilePlaces.keys``).

    Each file is listed once, with the reason that was given first.
    """

    def __init__(self, handle: TableHandle) -> None:
        self._places = FilePlaces(handle)
        self._files: dict[str, Removal] = {}
        self._names: set[bytes] = set()
        self._looked_for: pa.Array | None = None
        self.has_packs = False
        """True if a packed changelog is a candidate.

        The manifest entry of each bucket has its own name for a packed file, so comparing names
        does not find all entries.
        """

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
        """Add the data files and extra files of the entries ``columns``, except those with a key in
        ``but``.
        """
        for key, removal in self._places.removals(columns, kind, reason):
            if key not in but:
                known = self._files.setdefault(key, removal)
                # a later part of a packed file extends the known size
                if (known.size or 0) < (removal.size or 0):
                    self._files[key] = replace(known, size=removal.size)
        names = {name for name in columns.file_name.values() if name is not None}
        self._names |= names
        self._looked_for = None
        self.has_packs = self.has_packs or any(map(is_packed, names))

    def drop_added(self, columns: ManifestColumns) -> None:
        """Remove the candidates that the entries ``columns`` name, because they are in the table
        again.
        """
        if self._files:
            found = self.keys(columns.filter(self.may_name(columns)))
            self.drop(chain.from_iterable(found))

    def may_name(self, columns: ManifestColumns) -> Mask:
        """Return a mask of the entries that may name a candidate.

        This fast check compares only file names, so it may find too many entries: compare the
        result of ``keys`` for these entries next.
        """
        if len(columns.file_name) < len(
            self._names
        ):  # few entries: building an array of all names costs more
            return np.fromiter(map(self._may_be, columns.file_name.values()), np.bool_)
        names = columns.file_name.to_arrow()
        if self._looked_for is None:
            self._looked_for = BytesColumn.of([*self._names]).to_arrow()
        found: Mask = numbers(pc.is_in(names, self._looked_for))
        if self.has_packs:
            found |= numbers(pc.starts_with(names, PACK_PREFIX))
        return found

    def _may_be(self, name: bytes | None) -> bool:
        if name is None:
            return False
        return name in self._names or (self.has_packs and is_packed(name))

    def drop(self, keys: Iterable[str]) -> None:
        """Remove the candidates with these keys."""
        for key in keys:
            self._files.pop(key, None)

    def keys(self, columns: ManifestColumns) -> list[tuple[str, ...]]:
        """Return the keys of the files of each entry: the data file first, then its extra files."""
        return self._places.keys(columns)

    def removals(self, kinds: Collection[FileClass] = tuple(FileClass)) -> Iterator[Removal]:
        """Yield the candidates of these kinds, in the order they were added."""
        return (file for file in self._files.values() if file.kind in kinds)
