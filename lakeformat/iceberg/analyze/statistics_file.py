# SPDX-License-Identifier: Apache-2.0
"""Publishes a file of statistics: writes the file, then names it in the table's metadata."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from lakeformat.errors import InvalidRequestError
from lakeformat.iceberg.commit.commit import commit_metadata
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.metadata_file import metadata_directory
from lakeformat.iceberg.metadata.statistics import PartitionStatisticsFile, StatisticsFile
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.write.new_entries import delete_files
from lakeformat.tables.kept_files import kept_if_published

__all__ = ["publish_statistics"]

File = TypeVar("File", StatisticsFile, PartitionStatisticsFile)


def publish_statistics(
    handle: TableHandle, loaded: LoadedMetadata, name: str, write: Callable[[str], File]
) -> None:
    """Write the statistics file ``name`` in the metadata directory, and commit an entry for it.

    ``write`` gets the URI of the new file, writes the file and returns its entry, which names a
    snapshot. The entry replaces an earlier entry for the same snapshot. If the commit certainly
    failed, the file is deleted. Raise ``InvalidRequestError`` if the snapshot has expired
    meanwhile.
    """
    uri = f"{metadata_directory(loaded.metadata)}/{name}"
    with kept_if_published(lambda: delete_files(loaded.places, [uri])):
        file = write(uri)
        commit_metadata(handle, lambda newest: _with_file(handle, newest.metadata, file))


def _with_file(
    handle: TableHandle, metadata: TableMetadata, file: StatisticsFile | PartitionStatisticsFile
) -> TableMetadata:
    number = file.snapshot_id
    if metadata.snapshot(number) is None:
        raise InvalidRequestError(
            f"snapshot {number} of {handle.uri} expired while it was analyzed; nothing was "
            "published: analyze the table again"
        )
    if isinstance(file, StatisticsFile):
        kept = (each for each in metadata.statistics if each.snapshot_id != number)
        return replace(metadata, statistics=(*kept, file))
    others = (each for each in metadata.partition_statistics if each.snapshot_id != number)
    return replace(metadata, partition_statistics=(*others, file))
