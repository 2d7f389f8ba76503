# SPDX-License-Identifier: Apache-2.0
"""Entries of table metadata that name statistics files; the files themselves are not read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lakeformat.iceberg.type_json import require_list
from lakeformat.tables.json_file import Member, read_members, unknown_members, write_members

__all__ = [
    "PartitionStatisticsFile",
    "StatisticsFile",
    "partition_statistics_from_json",
    "partition_statistics_to_json",
    "statistics_from_json",
    "statistics_to_json",
]


@dataclass(frozen=True, slots=True)
class StatisticsFile:
    """An entry for a Puffin file with statistics of one snapshot."""

    snapshot_id: int
    statistics_path: str
    file_size_in_bytes: int
    file_footer_size_in_bytes: int
    blob_metadata: tuple[Mapping[str, Any], ...] = ()
    """The descriptions of the blobs in the file, including blobs of unknown types."""
    unknown: Mapping[str, Any] = field(default_factory=dict)
    """The members that this library does not know."""


@dataclass(frozen=True, slots=True)
class PartitionStatisticsFile:
    """An entry for a file with statistics about each partition at one snapshot."""

    snapshot_id: int
    statistics_path: str
    file_size_in_bytes: int
    unknown: Mapping[str, Any] = field(default_factory=dict)
    """The members that this library does not know."""


_BLOBS = "blob-metadata"
_OF_PARTITIONS = (
    Member("snapshot-id", "snapshot_id", int, required=True),
    Member("statistics-path", "statistics_path", str, required=True),
    Member("file-size-in-bytes", "file_size_in_bytes", int, required=True),
)
_OF_TABLE = (
    *_OF_PARTITIONS,
    Member("file-footer-size-in-bytes", "file_footer_size_in_bytes", int, required=True),
)


def statistics_from_json(members: Mapping[str, Any]) -> StatisticsFile:
    """Parse an entry of ``statistics``.

    Raise ``KeyError`` for a missing member and ``ValueError`` for a wrong value.
    """
    blobs = require_list(members, _BLOBS) if members.get(_BLOBS) else ()
    return StatisticsFile(
        **read_members(_OF_TABLE, members),
        blob_metadata=tuple(blobs),
        unknown=unknown_members(_OF_TABLE, members, (_BLOBS,)),
    )


def statistics_to_json(file: StatisticsFile) -> dict[str, Any]:
    """Return an entry of ``statistics`` as JSON of table metadata."""
    return {**write_members(_OF_TABLE, file), _BLOBS: [*file.blob_metadata], **file.unknown}


def partition_statistics_from_json(members: Mapping[str, Any]) -> PartitionStatisticsFile:
    """Parse an entry of ``partition-statistics``.

    Raise ``KeyError`` for a missing member and ``ValueError`` for a wrong value.
    """
    return PartitionStatisticsFile(
        **read_members(_OF_PARTITIONS, members), unknown=unknown_members(_OF_PARTITIONS, members)
    )


def partition_statistics_to_json(file: PartitionStatisticsFile) -> dict[str, Any]:
    """Return an entry of ``partition-statistics`` as JSON of table metadata."""
    return {**write_members(_OF_PARTITIONS, file), **file.unknown}
