# SPDX-License-Identifier: Apache-2.0
"""Paths and unique keys of the files that manifest entries name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache

import numpy as np

from lakeformat.files.changelog_packs import is_packed, packed_address, packed_part
from lakeformat.paimon.file_places import data_file_place, index_file_place
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.layout import plain_name
from lakeformat.paimon.metadata.index_manifest import IndexManifestEntry
from lakeformat.paimon.metadata.manifest import ManifestColumns
from lakeformat.paimon.partition import partition_path
from lakeformat.storage import Storage
from lakeformat.storage.location import one_spelling
from lakeformat.tables.removal import FileClass, Removal

__all__ = ["FilePlaces"]


class FilePlaces:
    """Finds the paths of a table's data and index files, inside and outside of its directory."""

    def __init__(self, handle: TableHandle) -> None:
        self._handle = handle
        self._directory: Callable[[bytes], str] = cache(
            lambda partition: partition_path(handle.schema, partition)
        )

    def keys(self, columns: ManifestColumns) -> list[tuple[str, ...]]:
        """Return unique keys for the files of each entry: of the data file first, then of its extra
        files.

        The key is the path in the storage, or the address of an external file. All entries that
        name a file give it the same key, even if their levels and extra files differ.
        """
        layout = self._handle.layout
        partitions = [self._directory(each or b"") for each in columns.partition.values()]
        rows = zip(
            columns.external_path.texts(),
            columns.bucket.numbers.tolist(),
            columns.file_name.texts(),
            partitions,
            strict=True,
        )
        own = [
            layout.data_file(bucket, name or "", partition)
            if external is None
            else one_spelling(packed_address(external))
            for external, bucket, name, partition in rows
        ]
        if not columns.extra_files.counts.any():
            return [(key,) for key in own]
        extras = zip(own, columns.extra_files.texts(), strict=True)
        return [(key, *self._beside(key, names or ())) for key, names in extras]

    def removals(
        self, columns: ManifestColumns, kind: FileClass, reason: str
    ) -> Iterator[tuple[str, Removal]]:
        """Yield the key and the removal of every file of each entry.

        Raise InvalidRequestError for an external file whose address breaks a rule in the docstring
        of ``paimon/file_places.py``.
        """
        sizes = self._sizes(columns)
        external = columns.external_path.present
        is_external = np.ones(len(columns), np.bool_) if external is None else external
        found = zip(self.keys(columns), sizes, is_external.tolist(), strict=True)
        for row, (keys, size, elsewhere) in enumerate(found):
            outside = self._outside(columns, row, keys) if elsewhere else None
            for position, key in enumerate(keys):
                storage, path = (self._handle.storage, key) if outside is None else next(outside)
                yield key, Removal(storage, path, kind, reason, None if position else size)

    def _outside(
        self, columns: ManifestColumns, row: int, keys: Sequence[str]
    ) -> Iterator[tuple[Storage, str]]:
        """Yield storage and path of the external file in ``row``, then those of its extra files.

        ``keys`` are the keys of these files. Raise InvalidRequestError if the address breaks a rule
        in the docstring of ``paimon/file_places.py``.
        """
        [entry] = columns.entries(np.array([row]))
        directory = self._directory(entry.partition)
        storage, path = data_file_place(self._handle, entry.bucket, entry.file, directory)
        yield storage, path
        for key in keys[1:]:
            yield storage, f"{path.rpartition('/')[0]}/{key.rpartition('/')[2]}"

    def _sizes(self, columns: ManifestColumns) -> list[int]:
        """Return the size in bytes of each entry's data file.

        For a part of a packed changelog this is the end of the part in its file.
        """
        sizes: list[int] = columns.file_size.numbers.tolist()
        for row, name in enumerate(columns.file_name.values()):
            if name is not None and is_packed(name):
                part = packed_part(name.decode(errors="surrogateescape"))
                sizes[row] = sizes[row] if part is None else part.end
        return sizes

    def index_file(self, entry: IndexManifestEntry, reason: str) -> Removal:
        """Return the removal of an index file for ``reason``."""
        storage, path = index_file_place(self._handle, entry)
        return Removal(storage, path, FileClass.INDEX, reason, entry.file_size)

    def index_key(self, entry: IndexManifestEntry) -> str:
        """Return the unique key of an index file: its path, or the address of an external file."""
        if entry.external_path is not None:
            return one_spelling(entry.external_path)
        return index_file_place(self._handle, entry)[1]

    def _beside(self, own: str, names: tuple[str, ...]) -> Iterator[str]:
        directory = own.rpartition("/")[0]
        for name in names:
            yield f"{directory}/{plain_name(name)}"
