# SPDX-License-Identifier: Apache-2.0
"""Finds the files that belong to a publication: those in its own directory.

Another program may have changed the metadata, so that it names files of the Paimon table or of
another table. Such files are not read, deleted or published.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa

from lakeformat.errors import CorruptTableError
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.manifest import read_each
from lakeformat.iceberg.metadata.metadata_file import METADATA, metadata_directory
from lakeformat.iceberg.metadata.table_metadata import TableMetadata

__all__ = ["has_intact_manifests", "names_own_files", "own_files", "reads_manifests"]


def own_files(metadata: TableMetadata, addresses: Iterable[str]) -> list[str]:
    """Return the URIs of ``addresses`` that are directly in the metadata directory of the table.

    A publication writes all of its files to this directory.
    """
    directory = f"{_directory(metadata)}/"
    return [
        each
        for each in addresses
        if each.startswith(directory) and "/" not in each.removeprefix(directory)
    ]


def names_own_files(metadata: TableMetadata) -> bool:
    """Return True if all manifest lists are in the metadata directory of the table, and no property
    names another directory for new manifests.

    Return False for metadata with statistics files, which a publication never writes.
    """
    lists = [each.manifest_list for each in metadata.snapshots]
    known = [each for each in lists if each is not None]
    return (
        len(own_files(metadata, known)) == len(lists)
        and not metadata.statistics
        and not metadata.partition_statistics
        and metadata_directory(metadata) == _directory(metadata)
    )


def has_intact_manifests(
    base: LoadedMetadata, manifests: pa.Table, sizes: Mapping[str, int] | None
) -> bool:
    """Return True if all manifests of a manifest list exist and are files of a publication.

    ``sizes`` are the sizes of the files in the metadata directory, by name. With None, only the
    addresses of the manifests are checked. If a size is missing or differs from the manifest list,
    all manifests are read, because a manifest may be newer than the listing of the directory.
    """
    columns = ("manifest_path", "manifest_length")
    addresses, lengths = (manifests.column(name).to_pylist() for name in columns)
    if len(own_files(base.metadata, addresses)) != len(addresses):
        return False
    if sizes is None or lengths == [sizes.get(each.rpartition("/")[2]) for each in addresses]:
        return True
    return reads_manifests(base, manifests)


def reads_manifests(base: LoadedMetadata, manifests: pa.Table) -> bool:
    """Return True if all manifests of a manifest list can be read; read each of them."""
    try:
        for _ in read_each(base.places, base.metadata, manifests):
            pass
    except CorruptTableError:
        return False
    return True


def _directory(metadata: TableMetadata) -> str:
    return f"{metadata.location.rstrip('/')}/{METADATA}"
