# SPDX-License-Identifier: Apache-2.0
"""Commit messages: unpublished data files of one writer, which any process can commit.

``to_bytes`` returns an Arrow stream of manifest entries. In an upsert, the schema metadata of this
stream also contains the deleted keys, as a second Arrow stream.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.errors import InvalidRequestError
from lakeformat.tables.json_file import NO_JSON, Member, read_members, write_members
from lakeformat.tables.messages import require_bytes, require_messages, unreadable_message

__all__ = ["IcebergCommitMessage", "check_messages", "key_of_messages", "with_keys"]

_Bytes: TypeAlias = bytes
"""The builtin ``bytes``, whose name a property of the class hides."""

_VERSION = 1
_VERSION_WITH_KEYS = 2
"""The version of messages of an upsert. Earlier releases refuse these messages, because they cannot
read the keys.
"""
_HEADER = b"lake.message"
_KEYS = b"lake.deleted-keys"
_ADVICE = (
    "pass a list of the messages that writers of an Iceberg table prepared, as in "
    "commit(writer.prepare()); convert bytes with table.read_message"
)
_MEMBERS = (
    Member("version", "version", int, required=True),
    Member("table", "table", str, required=True),
    Member("table-uuid", "table_uuid", str, required=True),
    Member("base-snapshot", "base_snapshot", int, required=True),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergCommitMessage:
    """New data files of one partition spec that are not published yet."""

    table: str
    """The URI of the table."""
    table_uuid: str
    base_snapshot: int
    """The id of the newest snapshot of the branch when the writer began; 0 if there was none."""
    entries: pa.Table
    """The manifest entries of the files."""
    deleted_keys: pa.Table | None = None
    """The keys whose stored rows an upsert deletes, as a table with the columns of the key.

    The table may be empty, because an upsert also replaces the stored rows that have the same keys
    as its new rows. None if the commit only adds rows.
    """
    version: int = _VERSION
    _members: ClassVar[Sequence[Member]] = _MEMBERS

    @property
    def upsert_by(self) -> list[str] | None:
        """The columns of the key by which rows replace stored rows; None if rows are only added."""
        return None if self.deleted_keys is None else self.deleted_keys.column_names

    @property
    def rows(self) -> int:
        """The number of rows in the files."""
        return _sum(self.entries, "record_count")

    @property
    def files(self) -> int:
        """The number of files."""
        return len(self.entries)

    @property
    def bytes(self) -> int:
        """The size of the files, in bytes."""
        return _sum(self.entries, "file_size_in_bytes")

    @property
    def paths(self) -> Sequence[str]:
        """The URIs of the files."""
        found: list[str] = self.entries.column("file_path").to_pylist()
        return found

    def to_bytes(self) -> _Bytes:
        """Return the message as bytes, to store it or send it to another process."""
        header = json.dumps(write_members(self._members, self)).encode()
        metadata = {_HEADER: header}
        if self.deleted_keys is not None:
            metadata[_KEYS] = _stream_of(self.deleted_keys)
        return _stream_of(self.entries.replace_schema_metadata(metadata))

    @classmethod
    def from_bytes(cls, content: _Bytes) -> Self:
        """Return the message whose ``to_bytes`` returned ``content``.

        Raise ``InvalidRequestError`` if ``content`` is not such a message, is damaged, or has a
        version that this release cannot read.
        """
        require_bytes(content, "to_bytes()")
        try:
            return cls._read(content)
        except (*NO_JSON, pa.ArrowException, KeyError, TypeError, OSError) as reason:
            raise unreadable_message(content, reason) from None

    @classmethod
    def _read(cls, content: _Bytes) -> Self:
        with pa.ipc.open_stream(content) as reader:
            entries = reader.read_all()
        entries.validate(full=True)
        metadata: Mapping[_Bytes, _Bytes] = entries.schema.metadata or {}
        header = json.loads(metadata[_HEADER])
        version = _VERSION_WITH_KEYS if _KEYS in metadata else _VERSION
        if not isinstance(header, dict) or header.get("version") != version:
            raise ValueError(f"the message does not have format {version}")
        keys = None
        if _KEYS in metadata:
            with pa.ipc.open_stream(metadata[_KEYS]) as reader:
                keys = reader.read_all()
            keys.validate(full=True)
        return cls(
            entries=entries.replace_schema_metadata(),
            deleted_keys=keys,
            **read_members(cls._members, header),
        )


def with_keys(message: IcebergCommitMessage, keys: pa.Table) -> IcebergCommitMessage:
    """Return ``message`` as a message of an upsert, which also deletes stored rows by ``keys``.

    Rows in the files of the message replace the stored rows with the same key.
    """
    return replace(message, deleted_keys=keys, version=_VERSION_WITH_KEYS)


def key_of_messages(messages: Sequence[IcebergCommitMessage]) -> list[str] | None:
    """Return the columns of the key by which messages change rows; None if they only add rows.

    Raise ``InvalidRequestError`` if the messages have different keys.
    """
    found = {None if each.upsert_by is None else tuple(each.upsert_by) for each in messages}
    if len(found) > 1:
        shown = sorted("no key" if each is None else ", ".join(each) for each in found)
        raise InvalidRequestError(
            f"these {len(messages)} messages cannot be in one commit, because their writers had "
            f"different keys: {'; '.join(shown)}. Nothing was published: commit the messages of "
            "each key alone"
        )
    key = next(iter(found), None)
    return None if key is None else [*key]


def check_messages(messages: object) -> list[IcebergCommitMessage]:
    """Return the messages as a list; raise ``InvalidRequestError`` for an object of another
    class.
    """
    return require_messages(messages, IcebergCommitMessage, _ADVICE)


def _stream_of(rows: pa.Table) -> bytes:
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, rows.schema) as writer:
        writer.write_table(rows)
    content: bytes = stream.getvalue().to_pybytes()
    return content


def _sum(entries: pa.Table, name: str) -> int:
    return int(pc.sum(entries.column(name)).as_py() or 0)
