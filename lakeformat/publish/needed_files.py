# SPDX-License-Identifier: Apache-2.0
"""Finds the files in the metadata directory that Iceberg readers need."""

from __future__ import annotations

from collections.abc import Iterator

from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.manifest import DATA
from lakeformat.iceberg.metadata.metadata_file import HINT, METADATA, is_metadata_file, version_of
from lakeformat.iceberg.reachable_files import live_files, manifests_of
from lakeformat.paimon.handle import TableHandle
from lakeformat.publish.place import versions_of
from lakeformat.publish.targets.wanted import wanted_catalogs
from lakeformat.publish.versions import PublishedVersions
from lakeformat.tables.commit_observer import ObservedFiles

__all__ = ["needed_files"]


def needed_files(handle: TableHandle) -> ObservedFiles:
    """Return the metadata directory and the names of the files in it that Iceberg readers need.

    All other files in the directory are orphan files. Earlier metadata files are needed as long as
    the log of the newest metadata names them, because slow readers may still read them.
    """
    versions = versions_of(handle)
    newest = versions.newest()
    addresses = [] if newest is None else [*_addresses(newest)]
    names = frozenset([HINT, *(each.rpartition("/")[2] for each in addresses)])
    if wanted_catalogs(handle):
        names |= _files_of_catalogs(versions)
    return ObservedFiles(versions.storage, f"{versions.root}/{METADATA}", names)


def _files_of_catalogs(versions: PublishedVersions) -> frozenset[str]:
    """Return the names of metadata files that a REST service wrote to the metadata directory.

    The service itself deletes the files that it no longer needs.
    """
    found = versions.storage.list(f"{versions.root}/{METADATA}")
    names = (each.name for each in found)
    return frozenset(each for each in names if is_metadata_file(each) and version_of(each) is None)


def _addresses(newest: LoadedMetadata) -> Iterator[str]:
    metadata = newest.metadata
    yield newest.path
    yield from (each.metadata_file for each in metadata.metadata_log)
    yield from (each.manifest_list for each in metadata.snapshots if each.manifest_list)
    manifests = manifests_of(newest, metadata.snapshots)
    yield from manifests
    of_deletes = [each for each in manifests.values() if each.column("content")[0].as_py() != DATA]
    yield from live_files(newest, of_deletes)
