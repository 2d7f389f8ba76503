# SPDX-License-Identifier: Apache-2.0
"""Writes the manifests and manifest lists of one commit, for all of its attempts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass

import pyarrow as pa

from lakeformat.environment import Environment
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.manifest import read_entries
from lakeformat.iceberg.metadata.manifest_writer import ManifestWriter, encode_manifest_list
from lakeformat.iceberg.metadata.metadata_file import metadata_directory
from lakeformat.iceberg.metadata.snapshot import Snapshot
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.write.kept_entries import KeptEntries
from lakeformat.iceberg.write.new_entries import delete_files

__all__ = ["ManifestFiles"]


@dataclass(frozen=True, slots=True)
class _WrittenManifest:
    uri: str
    length: int
    entries: pa.Table
    writer: ManifestWriter


class ManifestFiles:
    """Writes the manifests ``<uuid>-m<n>.avro`` and manifest lists
    ``snap-<id>-<attempt>-<uuid>.avro`` of one commit.

    The UUID is new for each commit. ``delete_all_but`` deletes the files that no snapshot uses.
    """

    def __init__(
        self, loaded: LoadedMetadata, environment: Environment, kept: KeptEntries | None = None
    ) -> None:
        """Start without files; ``kept`` keeps entries of manifests for later commits."""
        self._kept = kept
        self._places = loaded.places
        self._directory = metadata_directory(loaded.metadata)
        self._unique = environment.new_id()
        self._manifests: dict[tuple[int, Hashable], _WrittenManifest] = {}
        self._lists: list[str] = []

    def manifest(
        self,
        key: Hashable,
        writer: ManifestWriter,
        entries: Callable[[], pa.Table],
        snapshot: Snapshot,
    ) -> pa.Table:
        """Write a manifest at the first use of ``key``; return its row for the manifest list.

        Each attempt of the commit can use the same file, because its entries inherit the sequence
        number.
        """
        named = (writer.metadata.format_version, key)
        if named not in self._manifests:
            uri = f"{self._directory}/{self._unique}-m{len(self._manifests)}.avro"
            found = entries()
            content = writer.encode(found)
            self._manifests[named] = _WrittenManifest(uri, len(content), found, writer)
            self._write(uri, content)
            if self._kept is not None:
                self._kept.keep(uri, found)
        made = self._manifests[named]
        return made.writer.describe(made.uri, made.length, made.entries, snapshot)

    def entries(
        self,
        metadata: TableMetadata,
        manifest: pa.Table,
        statistics_of: Collection[int] | None = None,
    ) -> pa.Table:
        """Return the entries of a manifest: from memory if they are kept there, else from the file.

        ``manifest`` is one row of a manifest list. ``statistics_of`` lists the ids of the columns
        whose statistics are needed, by default all.
        """
        kept = None if self._kept is None else self._kept.of(manifest)
        if kept is not None:
            return kept
        ((_, entries),) = read_entries(self._places, metadata, manifest, statistics_of).items()
        return entries

    def first_row_ids(self, uri: str) -> pa.ChunkedArray | None:
        """Return the first row ids of the entries in a manifest of this commit; None for another
        manifest.
        """
        for made in self._manifests.values():
            if made.uri == uri:
                return made.entries.column("first_row_id")
        return None

    def manifest_list(self, version: int, manifests: pa.Table, snapshot: Snapshot) -> str:
        """Write the manifest list of an attempt, and return its URI."""
        attempt = len(self._lists) + 1
        uri = f"{self._directory}/snap-{snapshot.snapshot_id}-{attempt}-{self._unique}.avro"
        self._lists.append(uri)
        if self._kept is not None:
            self._kept.keep_only(manifests.column("manifest_path").to_pylist())
        self._write(uri, encode_manifest_list(version, manifests, snapshot))
        return uri

    @property
    def written(self) -> list[str]:
        """The URIs of all files that were written."""
        return [*(each.uri for each in self._manifests.values()), *self._lists]

    def delete_all_but(self, used: Collection[str]) -> None:
        """Delete all written files except those in ``used``."""
        delete_files(self._places, [each for each in self.written if each not in used])

    def _write(self, uri: str, content: bytes) -> None:
        storage, path = self._places.place(uri)
        with storage.open_output(path) as stream:
            stream.write(content)
