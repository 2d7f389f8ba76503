# SPDX-License-Identifier: Apache-2.0
"""Statistics files: ``statistics/stat-<uuid>-<n>``, the result of ANALYZE.

A snapshot names its statistics file. Later snapshots name the same file until the schema changes or
the table is analyzed again. So a reader must compare ``snapshot_id`` with the newest snapshot
before it trusts the counts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lakeformat.errors import CorruptTableError, NotFoundError
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.remedy import Remedy
from lakeformat.storage import Storage
from lakeformat.storage.base import LARGE_FILE
from lakeformat.tables.json_file import Member, decode_json_file, read_members, write_members

__all__ = ["ColumnStatistics", "TableStatistics", "read_statistics", "write_statistics"]

_COLUMN_MEMBERS = (
    Member("colId", "column_id", int, required=True),
    Member("distinctCount", "distinct_count", int),
    Member("min", "min", str),
    Member("max", "max", str),
    Member("nullCount", "null_count", int),
    Member("avgLen", "average_length", int),
    Member("maxLen", "max_length", int),
)
_TABLE_MEMBERS = (
    Member("snapshotId", "snapshot_id", int, required=True),
    Member("schemaId", "schema_id", int, required=True),
    Member("mergedRecordCount", "merged_record_count", int),
    Member("mergedRecordSize", "merged_record_size", int),
)


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """Statistics of one column.

    ``min`` and ``max`` are str, as Spark stores them: a DATE as a number of days since 1970, a TIME
    as milliseconds, a timestamp in UTC. They are None for columns of text or bytes, and for columns
    without a value.
    """

    column_id: int
    distinct_count: int | None = None
    min: str | None = None
    max: str | None = None
    null_count: int | None = None
    average_length: int | None = None
    max_length: int | None = None

    def members(self) -> dict[str, Any]:
        """Return the JSON object of the column in a statistics file."""
        return write_members(_COLUMN_MEMBERS, self)


@dataclass(frozen=True, slots=True)
class TableStatistics:
    """Statistics of the merged rows of one snapshot.

    The columns have the names in the snapshot's schema.
    """

    snapshot_id: int
    schema_id: int
    merged_record_count: int | None = None
    merged_record_size: int | None = None
    columns: Mapping[str, ColumnStatistics] = field(default_factory=dict)

    def to_json(self) -> bytes:
        """Return the content of the statistics file."""
        members = {**write_members(_TABLE_MEMBERS, self), "colStats": self.column_members()}
        return json.dumps(members, indent=2, ensure_ascii=False).encode()

    def column_members(self) -> dict[str, Any]:
        """Return the statistics of each column as a JSON object, by column name."""
        return {name: column.members() for name, column in self.columns.items()}

    @classmethod
    def from_json(cls, members: Mapping[str, Any]) -> TableStatistics:
        """Return the statistics of a parsed statistics file; unknown members are ignored.

        Raise KeyError, TypeError or ValueError for a damaged file.
        """
        columns = members.get("colStats")
        columns = {} if columns is None else columns
        if not isinstance(columns, dict):
            raise ValueError(f"colStats is {columns!r}, not a JSON object")
        return cls(
            **read_members(_TABLE_MEMBERS, members),
            columns={name: _column(name, found) for name, found in columns.items()},
        )


def read_statistics(storage: Storage, layout: TableLayout, name: str) -> TableStatistics:
    """Return the content of the statistics file ``statistics/<name>``.

    Raise CorruptTableError if the file is missing or damaged.
    """
    path = layout.statistics(name)
    try:
        content = storage.read(path, LARGE_FILE)
    except NotFoundError:
        raise CorruptTableError(
            f"statistics file {storage.uri(path)} is missing although a snapshot names it; "
            "restore it from a backup, or analyze the table again"
        ) from None
    return decode_json_file(
        content, storage.uri(path), TableStatistics.from_json, Remedy.STATISTICS
    )


def write_statistics(
    storage: Storage, layout: TableLayout, name: str, statistics: TableStatistics
) -> None:
    """Write statistics to the new file ``statistics/<name>``."""
    with storage.open_output(layout.statistics(name)) as stream:
        stream.write(statistics.to_json())


def _column(name: str, members: Any) -> ColumnStatistics:
    name.encode()  # half of a surrogate pair is not text
    if not isinstance(members, dict):
        raise ValueError(f"colStats of {name!r} is {members!r}, not a JSON object")
    try:
        return ColumnStatistics(**read_members(_COLUMN_MEMBERS, members))
    except KeyError as missing:
        raise ValueError(f"colStats of {name!r} lacks the member {missing}") from None
