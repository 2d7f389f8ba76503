# SPDX-License-Identifier: Apache-2.0
"""Commit messages: the unpublished files of one bucket, from a writer or a compaction.

Messages travel between processes as bytes: an Avro file with one record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from fastavro import parse_schema
from fastavro.validation import validate

from lakeformat.errors import LakeError
from lakeformat.files.avro.avro_container import SYNC_SIZE
from lakeformat.paimon.layout import MAIN_BRANCH
from lakeformat.paimon.metadata.data_file_meta import DATA_FILE_FIELDS, DataFileMeta
from lakeformat.paimon.metadata.index_manifest import (
    INDEX_ENTRY_FIELDS,
    IndexManifestEntry,
    index_entry_from_record,
    index_entry_record,
)
from lakeformat.paimon.metadata.record_file import (
    RESTORE,
    decode_avro_file,
    encode_avro_file,
    optional_field,
)
from lakeformat.paimon.metadata.simple_stats import EMPTY_ROW
from lakeformat.tables.messages import require_bytes, require_messages, unreadable_message

__all__ = ["CommitMessage", "check_messages"]

MESSAGE_VERSION = 4
_ADVICE = (
    "pass a list of the CommitMessages that writers prepared, as in commit(writer.prepare()); "
    "convert bytes with CommitMessage.from_bytes"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitMessage:
    """The changes of one bucket: an append increment and a compact increment.

    If both are present, each becomes its own snapshot.
    """

    bucket: int
    total_buckets: int | None = None
    """The bucket count of the partition; None means the count in the table's options."""
    partition: bytes = EMPTY_ROW
    base_snapshot: int | None = None
    """The newest snapshot when the writer began: 0 if there was none, None if unknown."""
    base_identity: str | None = None
    """The identity of ``base_snapshot``, which detects a reused number; None if unknown."""
    branch: str = MAIN_BRANCH
    """The branch for which the files were written; ``base_snapshot`` is one of its snapshots."""
    table: str | None = None
    """The table's URI when the writer began, for errors. The table may have another name now."""
    new_files: tuple[DataFileMeta, ...] = ()
    deleted_files: tuple[DataFileMeta, ...] = ()
    changelog_files: tuple[DataFileMeta, ...] = ()
    compact_before: tuple[DataFileMeta, ...] = ()
    compact_after: tuple[DataFileMeta, ...] = ()
    compact_changelog_files: tuple[DataFileMeta, ...] = ()
    new_index_files: tuple[IndexManifestEntry, ...] = ()
    deleted_index_files: tuple[IndexManifestEntry, ...] = ()
    compact_new_index_files: tuple[IndexManifestEntry, ...] = ()
    compact_deleted_index_files: tuple[IndexManifestEntry, ...] = ()
    assigned_by: str | None = None
    """A text by which a commit checks that no key gets into two buckets or two partitions.

    It is a digest of the names of the hash index files that the writer read for the partition. If
    keys may move between partitions, it is a generated name of the writer: a commit accepts only
    messages of one writer. It is None if the writer assigned no dynamic buckets.
    """

    def written_files(self) -> Iterator[DataFileMeta]:
        """Yield the data and changelog files that were written for this message.

        Files that a compaction only moved to another level are left out.
        """
        # these files only moved to another level
        kept = {file.file_name for file in self.compact_before}
        yield from self.new_files
        yield from self.changelog_files
        yield from (file for file in self.compact_after if file.file_name not in kept)
        yield from self.compact_changelog_files

    def append_alone(self) -> CommitMessage:
        """Return this message without the files of its compact increment."""
        return replace(
            self,
            compact_before=(),
            compact_after=(),
            compact_changelog_files=(),
            compact_new_index_files=(),
            compact_deleted_index_files=(),
        )

    def compaction_alone(self) -> CommitMessage:
        """Return this message without the files of its append increment."""
        return replace(
            self,
            new_files=(),
            deleted_files=(),
            changelog_files=(),
            new_index_files=(),
            deleted_index_files=(),
        )

    def written_index_files(self) -> Iterator[IndexManifestEntry]:
        """Yield the index files that were written for this message."""
        yield from self.new_index_files
        yield from self.compact_new_index_files

    def to_bytes(self) -> bytes:
        """Return the message as bytes, which ``from_bytes`` reads in any process."""
        record: dict[str, Any] = {
            "version": MESSAGE_VERSION,
            "partition": self.partition,
            "bucket": self.bucket,
            "totalBuckets": self.total_buckets,
            "baseSnapshot": self.base_snapshot,
            "baseIdentity": self.base_identity,
            "branch": self.branch,
            "table": self.table,
            "assignedBy": self.assigned_by,
        }
        for avro, name in _FILES.items():
            record[avro] = [file.to_record() for file in getattr(self, name)]
        for avro, name in _INDEX_FILES.items():
            record[avro] = [index_entry_record(entry) for entry in getattr(self, name)]
        return encode_avro_file(_SCHEMA, [record], compression="null", zstd_level=1)

    @classmethod
    def from_bytes(cls, content: bytes) -> CommitMessage:
        """Return the message that ``to_bytes`` has encoded as ``content``.

        Raise InvalidRequestError if ``content`` is damaged, is not a message, or has another format
        version.
        """
        require_bytes(content, "CommitMessage.to_bytes()")
        try:
            return cls._from_record(_record_of(bytes(content)))
        except Exception as reason:  # noqa: BLE001 - broken bytes lead to any of them
            said = str(reason) if isinstance(reason, LakeError | ValueError) else repr(reason)
            raise unreadable_message(content, said.removesuffix(f"; {RESTORE}")) from None

    @classmethod
    def _from_record(cls, record: dict[str, Any]) -> CommitMessage:
        files: dict[str, Any] = {
            name: tuple(DataFileMeta.from_record(file) for file in record[avro])
            for avro, name in _FILES.items()
        }
        index_files: dict[str, Any] = {
            name: tuple(index_entry_from_record(entry) for entry in record[avro])
            for avro, name in _INDEX_FILES.items()
        }
        return cls(
            partition=record["partition"],
            bucket=record["bucket"],
            total_buckets=record["totalBuckets"],
            base_snapshot=record["baseSnapshot"],
            base_identity=record.get("baseIdentity"),  # earlier versions do not write it
            branch=record["branch"],
            table=record["table"],
            assigned_by=record["assignedBy"],
            **files,
            **index_files,
        )


def check_messages(messages: Iterable[CommitMessage]) -> list[CommitMessage]:
    """Return the messages as a list; raise InvalidRequestError if one is not a CommitMessage."""
    return require_messages(messages, CommitMessage, _ADVICE)


def _record_of(content: bytes) -> dict[str, Any]:
    """Return the Avro record of a message.

    Raise ValueError for another version of the message. Raise fastavro's ValidationError for a
    member whose type differs from ``_SCHEMA``.
    """
    [record] = decode_avro_file(content, "commit message")
    if record["version"] != MESSAGE_VERSION:
        raise ValueError(f"its version is {record['version']}, not {MESSAGE_VERSION}")
    if not content.startswith(_header()):  # written with another schema
        validate(record, parse_schema(_SCHEMA))
    return record


@cache
def _header() -> bytes:
    """Return the first bytes of every message of this version, before the Avro sync marker."""
    return encode_avro_file(_SCHEMA, [], compression="null", zstd_level=1)[:-SYNC_SIZE]


_FILES = {
    "newFiles": "new_files",
    "deletedFiles": "deleted_files",
    "changelogFiles": "changelog_files",
    "compactBefore": "compact_before",
    "compactAfter": "compact_after",
    "compactChangelogFiles": "compact_changelog_files",
}
_INDEX_FILES = {
    "newIndexFiles": "new_index_files",
    "deletedIndexFiles": "deleted_index_files",
    "compactNewIndexFiles": "compact_new_index_files",
    "compactDeletedIndexFiles": "compact_deleted_index_files",
}


def _schema() -> dict[str, Any]:
    """Return the Avro schema of a commit message.

    A record type is defined where it is used first; later uses refer to its name.
    """
    items: dict[str, Any] = {"type": "record", "name": "record__FILE", "fields": DATA_FILE_FIELDS}
    index: dict[str, Any] = {"type": "record", "name": "index__FILE", "fields": INDEX_ENTRY_FIELDS}
    fields: list[dict[str, Any]] = [
        {"name": "version", "type": "int"},
        {"name": "partition", "type": "bytes"},
        {"name": "bucket", "type": "int"},
        {"name": "totalBuckets", "type": ["null", "int"]},
        {"name": "baseSnapshot", "type": ["null", "long"]},
        optional_field("baseIdentity", "string"),
        {"name": "branch", "type": "string"},
        {"name": "table", "type": ["null", "string"]},
        {"name": "assignedBy", "type": ["null", "string"]},
    ]
    for names, record in ((_FILES, items), (_INDEX_FILES, index)):
        first, *others = names
        fields.append({"name": first, "type": {"type": "array", "items": record}})
        fields += [
            {"name": name, "type": {"type": "array", "items": record["name"]}} for name in others
        ]
    return {"type": "record", "name": "commit_message", "fields": fields}


_SCHEMA = _schema()
