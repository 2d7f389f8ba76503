# SPDX-License-Identifier: Apache-2.0
"""Commit messages: unpublished data files of one writer, which any process can commit.

As bytes a message is an Arrow stream of manifest entries.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.tables.json_file import NO_JSON, Member, read_members, write_members
from lakeformat.tables.messages import require_bytes, require_messages, unreadable_message

__all__ = ["IcebergCommitMessage", "check_messages"]

_Bytes: TypeAlias = bytes
"""The builtin ``bytes``, whose name a property of the class hides."""

_VERSION = 1
_HEADER = b"lake.message"
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
    version: int = _VERSION

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
        """The size of the files."""
        return _sum(self.entries, "file_size_in_bytes")

    @property
    def paths(self) -> Sequence[str]:
        """The URIs of the files."""
        found: list[str] = self.entries.column("file_path").to_pylist()
        return found

    def to_bytes(self) -> _Bytes:
        """Return the message as bytes, to store it or send it to another process."""
        header = json.dumps(write_members(_MEMBERS, self)).encode()
        stream = pa.BufferOutputStream()
        named = self.entries.replace_schema_metadata({_HEADER: header})
        with pa.ipc.new_stream(stream, named.schema) as writer:
            writer.write_table(named)
        content: _Bytes = stream.getvalue().to_pybytes()
        return content

    @classmethod
    def from_bytes(cls, content: _Bytes) -> IcebergCommitMessage:
        """Return the message that ``to_bytes`` of the same version has encoded.

        Raise InvalidRequestError for anything else, including damaged bytes.
        """
        require_bytes(content, "to_bytes()")
        try:
            return cls._read(content)
        except (*NO_JSON, pa.ArrowException, KeyError, TypeError, OSError) as reason:
            raise unreadable_message(content, reason) from None

    @classmethod
    def _read(cls, content: _Bytes) -> IcebergCommitMessage:
        with pa.ipc.open_stream(content) as reader:
            entries = reader.read_all()
        entries.validate(full=True)
        metadata: Mapping[_Bytes, _Bytes] = entries.schema.metadata or {}
        header = json.loads(metadata[_HEADER])
        if not isinstance(header, dict) or header.get("version") != _VERSION:
            raise ValueError(f"it has another version than {_VERSION}")
        return cls(entries=entries.replace_schema_metadata(), **read_members(_MEMBERS, header))


def check_messages(messages: object) -> list[IcebergCommitMessage]:
    """Return the messages as a list; raise if they are not of this class."""
    return require_messages(messages, IcebergCommitMessage, _ADVICE)


def _sum(entries: pa.Table, name: str) -> int:
    return int(pc.sum(entries.column(name)).as_py() or 0)
