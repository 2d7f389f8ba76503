# SPDX-License-Identifier: Apache-2.0
"""Metadata of one data file in a manifest, and its Avro record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from typing import Any

from lakeformat.paimon.metadata.record_file import optional_field
from lakeformat.paimon.metadata.simple_stats import (
    EMPTY_ROW,
    EMPTY_STATS,
    SIMPLE_STATS_FIELDS,
    SimpleStats,
)

__all__ = ["DATA_FILE_FIELDS", "DataFileMeta", "FileSource", "local_wall_clock", "written_millis"]


class FileSource(IntEnum):
    """The kind of work that wrote a data file: a write or a compaction."""

    APPEND = 0
    COMPACT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFileMeta:
    """The metadata of one data file.

    Members that an older writer did not write have their defaults.
    """

    file_name: str
    file_size: int
    row_count: int
    min_sequence_number: int
    max_sequence_number: int
    schema_id: int
    min_key: bytes = EMPTY_ROW
    max_key: bytes = EMPTY_ROW
    key_stats: SimpleStats = EMPTY_STATS
    value_stats: SimpleStats = EMPTY_STATS
    level: int = 0
    extra_files: tuple[str, ...] = ()
    creation_time: datetime | None = None
    """The local time of the writer, without a time zone; manifests store it as if it were UTC."""
    delete_row_count: int | None = None
    embedded_file_index: bytes | None = None
    file_source: int | None = None
    value_stats_cols: tuple[str, ...] | None = None
    """The columns that ``value_stats`` covers: None for every column, empty for none."""
    external_path: str | None = None
    first_row_id: int | None = None
    write_cols: tuple[str, ...] | None = None
    write_cols_sequences: tuple[int, ...] | None = None

    def to_record(self) -> dict[str, Any]:
        """Return the file as the Avro record ``_FILE`` of a manifest entry."""
        record = {avro: getattr(self, name) for avro, name in _PLAIN.items()}
        record["_KEY_STATS"] = self.key_stats.to_record()
        record["_VALUE_STATS"] = self.value_stats.to_record()
        for avro, name in _LISTS.items():
            values = getattr(self, name)
            record[avro] = None if values is None else list(values)
        created = self.creation_time
        record["_CREATION_TIME"] = None if created is None else created.replace(tzinfo=UTC)
        return record

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> DataFileMeta:
        """Return the file of a ``_FILE`` record.

        Fields that an older writer did not write get their defaults. Raise KeyError, TypeError,
        ValueError or AttributeError for a damaged record.
        """
        known = {name: record[avro] for avro, name in _PLAIN.items() if avro in record}
        for avro, name in _LISTS.items():
            values = record.get(avro)
            known[name] = None if values is None else tuple(values)
        known["extra_files"] = known["extra_files"] or ()
        created = record.get("_CREATION_TIME")
        return cls(
            **known,
            key_stats=SimpleStats.from_record(record["_KEY_STATS"]),
            value_stats=SimpleStats.from_record(record["_VALUE_STATS"]),
            creation_time=created.replace(tzinfo=None) if created else None,
        )


def local_wall_clock(epoch_millis: int) -> datetime:
    """Return an instant as local time of this machine, as ``creation_time`` stores it."""
    return datetime.fromtimestamp(epoch_millis / 1000)  # noqa: DTZ006 - the format wants it


def written_millis(file: DataFileMeta) -> int | None:
    """Return the time when a file was written, in epoch milliseconds; None if it is not recorded.

    The time is right only if the writer had the time zone of this machine.
    """
    created = file.creation_time
    return None if created is None else (created.astimezone(UTC) - _EPOCH) // _MILLI


_EPOCH, _MILLI = datetime(1970, 1, 1, tzinfo=UTC), timedelta(milliseconds=1)
_PLAIN = {
    "_FILE_NAME": "file_name",
    "_FILE_SIZE": "file_size",
    "_ROW_COUNT": "row_count",
    "_MIN_KEY": "min_key",
    "_MAX_KEY": "max_key",
    "_MIN_SEQUENCE_NUMBER": "min_sequence_number",
    "_MAX_SEQUENCE_NUMBER": "max_sequence_number",
    "_SCHEMA_ID": "schema_id",
    "_LEVEL": "level",
    "_DELETE_ROW_COUNT": "delete_row_count",
    "_EMBEDDED_FILE_INDEX": "embedded_file_index",
    "_FILE_SOURCE": "file_source",
    "_EXTERNAL_PATH": "external_path",
    "_FIRST_ROW_ID": "first_row_id",
}
_LISTS = {
    "_EXTRA_FILES": "extra_files",
    "_VALUE_STATS_COLS": "value_stats_cols",
    "_WRITE_COLS": "write_cols",
    "_WRITE_COLS_SEQUENCES": "write_cols_sequences",
}


def _array(items: str) -> dict[str, str]:
    return {"type": "array", "items": items}


def _stats(name: str) -> dict[str, Any]:
    record = {"type": "record", "name": f"record__FILE_{name}", "fields": SIMPLE_STATS_FIELDS}
    return {"name": name, "type": record}


DATA_FILE_FIELDS: list[dict[str, Any]] = [
    {"name": "_FILE_NAME", "type": "string"},
    {"name": "_FILE_SIZE", "type": "long"},
    {"name": "_ROW_COUNT", "type": "long"},
    {"name": "_MIN_KEY", "type": "bytes"},
    {"name": "_MAX_KEY", "type": "bytes"},
    _stats("_KEY_STATS"),
    _stats("_VALUE_STATS"),
    {"name": "_MIN_SEQUENCE_NUMBER", "type": "long"},
    {"name": "_MAX_SEQUENCE_NUMBER", "type": "long"},
    {"name": "_SCHEMA_ID", "type": "long"},
    {"name": "_LEVEL", "type": "int"},
    {"name": "_EXTRA_FILES", "type": _array("string")},
    optional_field("_CREATION_TIME", {"type": "long", "logicalType": "timestamp-millis"}),
    optional_field("_DELETE_ROW_COUNT", "long"),
    optional_field("_EMBEDDED_FILE_INDEX", "bytes"),
    optional_field("_FILE_SOURCE", "int"),
    optional_field("_VALUE_STATS_COLS", _array("string")),
    optional_field("_EXTERNAL_PATH", "string"),
    optional_field("_FIRST_ROW_ID", "long"),
    optional_field("_WRITE_COLS", _array("string")),
    optional_field("_WRITE_COLS_SEQUENCES", _array("long")),
]
"""The Avro fields of a data file; the format fixes their order and which of them may be null.

New fields are only added at the end.
"""
