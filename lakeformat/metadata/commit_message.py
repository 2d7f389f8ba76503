"""What a writer hands to the commit: files of one bucket that are written, but not published.

Messages travel between processes as bytes: an Avro file with one record.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lakeformat.errors import CorruptTableError, InvalidRequestError
from lakeformat.metadata.avro_file import decode_avro_file, encode_avro_file
from lakeformat.metadata.data_file_meta import DATA_FILE_FIELDS, DataFileMeta
from lakeformat.metadata.simple_stats import EMPTY_ROW

__all__ = ["CommitMessage"]

MESSAGE_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitMessage:
    """The new files of one bucket."""

    bucket: int
    total_buckets: int
    new_files: tuple[DataFileMeta, ...]
    partition: bytes = EMPTY_ROW

    def to_bytes(self) -> bytes:
        """A form for queues, files and other processes."""
        record = {
            "version": MESSAGE_VERSION,
            "partition": self.partition,
            "bucket": self.bucket,
            "totalBuckets": self.total_buckets,
            "newFiles": [file.to_record() for file in self.new_files],
        }
        return encode_avro_file(_SCHEMA, [record], compression="null", zstd_level=1)

    @classmethod
    def from_bytes(cls, content: bytes) -> CommitMessage:
        """Read what ``to_bytes`` made, in the same version of the library."""
        try:
            [record] = decode_avro_file(content, "commit message")
            if record["version"] != MESSAGE_VERSION:
                raise ValueError(f"its version is {record['version']}, not {MESSAGE_VERSION}")
            return cls(
                partition=record["partition"],
                bucket=record["bucket"],
                total_buckets=record["totalBuckets"],
                new_files=tuple(DataFileMeta.from_record(file) for file in record["newFiles"]),
            )
        except (CorruptTableError, ValueError, KeyError, TypeError) as reason:
            raise InvalidRequestError(
                f"these {len(content)} bytes are no commit message of this version: {reason}; "
                "prepare and commit with the same version of the library"
            ) from None


_SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "commit_message",
    "fields": [
        {"name": "version", "type": "int"},
        {"name": "partition", "type": "bytes"},
        {"name": "bucket", "type": "int"},
        {"name": "totalBuckets", "type": "int"},
        {
            "name": "newFiles",
            "type": {
                "type": "array",
                "items": {"type": "record", "name": "record__FILE", "fields": DATA_FILE_FIELDS},
            },
        },
    ],
}
