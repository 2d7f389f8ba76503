"""Where the files are that manifests speak of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import numpy as np

from lakeformat.clean.removal import FileClass, Removal
from lakeformat.handle import TableHandle
from lakeformat.metadata.index_manifest import IndexManifestEntry
from lakeformat.metadata.manifest import ManifestColumns
from lakeformat.partition import partition_path
from lakeformat.storage import Storage, resolve

__all__ = ["FilePlaces"]


class FilePlaces:
    """The paths of a table's data and index files."""

    def __init__(self, handle: TableHandle) -> None:
        self._handle = handle
        self._directory: Callable[[bytes], str] = cache(
            lambda partition: partition_path(handle.schema, partition)
        )

    def keys(self, columns: ManifestColumns) -> list[tuple[str, ...]]:
        """What tells the files of each entry from all others: its own first, those beside it then.

        The level does not count. A file keeps its name while those beside it are replaced.
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
            layout.data_file(bucket, name or "", partition) if external is None else external
            for external, bucket, name, partition in rows
        ]
        if not columns.extra_files.counts.any():
            return [(key,) for key in own]
        extras = zip(own, columns.extra_files.texts(), strict=True)
        return [(key, *self._beside(key, names or ())) for key, names in extras]

    def removals(
        self, columns: ManifestColumns, kind: FileClass, reason: str
    ) -> Iterator[tuple[str, Removal]]:
        """Every file of each entry, with its key."""
        sizes = columns.file_size.numbers.tolist()
        external = columns.external_path.present
        is_external = np.ones(len(columns), np.bool_) if external is None else external
        for keys, size, elsewhere in zip(
            self.keys(columns), sizes, is_external.tolist(), strict=True
        ):
            for position, key in enumerate(keys):
                storage, path = self._resolved(key) if elsewhere else (self._handle.storage, key)
                yield key, Removal(storage, path, kind, reason, None if position else size)

    def index_file(self, entry: IndexManifestEntry, reason: str) -> Removal:
        """The index file of an entry."""
        storage, path = self._index_place(entry)
        return Removal(storage, path, FileClass.INDEX, reason, entry.file_size)

    def index_key(self, entry: IndexManifestEntry) -> str:
        """What tells an index file from all others."""
        return entry.external_path or self._index_place(entry)[1]

    def _index_place(self, entry: IndexManifestEntry) -> tuple[Storage, str]:
        handle = self._handle
        if entry.external_path is not None:
            return self._resolved(entry.external_path)
        if handle.options.index_file_in_data_file_dir:
            directory = self._directory(entry.partition)
            return handle.storage, handle.layout.data_file(entry.bucket, entry.file_name, directory)
        return handle.storage, handle.layout.index_file(entry.file_name)

    def _beside(self, own: str, names: tuple[str, ...]) -> Iterator[str]:
        directory = own.rpartition("/")[0]
        for name in names:
            inside = self._handle.layout.data_file(0, name).rpartition("/")[2]  # refuses a way out
            yield f"{directory}/{inside}"

    def _resolved(self, address: str) -> tuple[Storage, str]:
        return resolve(address, self._handle.storage)
