# SPDX-License-Identifier: Apache-2.0
"""Reads the hash index files of a snapshot by partition, and writes new ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lakeformat.errors import CorruptTableError
from lakeformat.paimon.file_places import index_file_place
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.index.hash_index import names_digest, read_hash_index, write_hash_index
from lakeformat.paimon.layout import index_file_name
from lakeformat.paimon.metadata.index_manifest import HASH, IndexManifestEntry, read_index_manifest
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.partition import partition_path
from lakeformat.paimon.write.key_hashes import Hashes

__all__ = ["HashIndex", "IndexChange"]


@dataclass(frozen=True, slots=True)
class IndexChange:
    """The index files of a bucket that one writer adds, and the index files that they replace."""

    new: tuple[IndexManifestEntry, ...] = ()
    replaced: tuple[IndexManifestEntry, ...] = ()


class HashIndex:
    """Reads the hash index of the partitions to which a writer adds rows, and writes the new
    index.
    """

    def __init__(self, handle: TableHandle, snapshot: Snapshot | None) -> None:
        """Read the index manifest of ``snapshot``.

        No key is known if ``snapshot`` is None, as in an overwrite.
        """
        self._handle = handle
        self._unique = handle.environment.new_id()
        self._written: list[IndexManifestEntry] = []
        self._files: dict[bytes, dict[int, IndexManifestEntry]] = {}
        name = None if snapshot is None else snapshot.index_manifest
        if name is None:
            return
        for entry in read_index_manifest(handle.storage, handle.layout, name):
            if entry.index_type == HASH:
                self._files.setdefault(entry.partition, {})[entry.bucket] = entry

    def read(self, partition: bytes, buckets: Iterable[int]) -> dict[int, Hashes]:
        """Return the hashes of the keys in each bucket of a partition.

        ``buckets`` are the buckets that have data files. Raise CorruptTableError if such a bucket
        has no hash index file.
        """
        files = self._files.get(partition, {})
        if missing := sorted(set(buckets) - files.keys()):
            raise self._no_index(partition, missing[0])
        found = {}
        for bucket, entry in files.items():
            storage, path = index_file_place(self._handle, entry)
            found[bucket] = read_hash_index(storage, path, count=entry.row_count)
        return found

    def write(self, partition: bytes, changed: Mapping[int, Hashes]) -> dict[int, IndexChange]:
        """Write one index file per bucket; ``changed`` has all hashes of each bucket.

        Return, for each bucket, the added and the replaced index files.
        """
        files = self._files.get(partition, {})
        return {
            bucket: IndexChange(
                (self._write(partition, bucket, hashes),),
                (files[bucket],) if bucket in files else (),
            )
            for bucket, hashes in changed.items()
        }

    def digest(self, partition: bytes) -> str:
        """Return a digest of the names of the index files that a partition has in the snapshot."""
        return names_digest(entry.file_name for entry in self._files.get(partition, {}).values())

    def abort(self) -> None:
        """Remove the index files written so far."""
        for entry in self._written:
            storage, path = index_file_place(self._handle, entry)
            storage.delete(path)
        self._written = []

    def _write(self, partition: bytes, bucket: int, hashes: Hashes) -> IndexManifestEntry:
        entry = IndexManifestEntry(
            partition=partition,
            bucket=bucket,
            index_type=HASH,
            file_name=index_file_name(self._unique, len(self._written)),
            file_size=hashes.nbytes,
            row_count=len(hashes),
        )
        self._written.append(entry)
        storage, path = index_file_place(self._handle, entry)
        write_hash_index(storage, path, hashes)
        return entry

    def _no_index(self, partition: bytes, bucket: int) -> CorruptTableError:
        place = partition_path(self._handle.schema, partition)
        where = f"bucket {bucket} of partition {place}" if place else f"bucket {bucket}"
        return CorruptTableError(
            f"{where} of {self._handle.uri} has rows but no hash index. Its keys are unknown, so a "
            f"write could store a key twice: overwrite the {'partition' if place else 'table'} "
            "with its own rows, which creates a new index"
        )
