# SPDX-License-Identifier: Apache-2.0
"""Snapshot files: ``snapshot/snapshot-<n>``, one per published commit, never changed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Any

from lakeformat.paimon.layout import TableLayout
from lakeformat.storage import Storage
from lakeformat.tables.json_file import Member, newer_version, read_members, write_members
from lakeformat.tables.position import MAIN_BRANCH, Position

__all__ = [
    "COMPACTION_MARK",
    "READ_SNAPSHOT",
    "CommitKind",
    "Snapshot",
    "is_foreign_compaction",
    "marked",
    "snapshot_reader",
]

CURRENT_VERSION = 3
READ_SNAPSHOT = "lake.read-snapshot"
"""A property of snapshots: the number of the snapshot that a job read to compute its commit.

Only commits with ``conflict="transaction-order"`` set this property.
"""


class CommitKind(StrEnum):
    """The kind of a commit, as snapshot files state it."""

    APPEND = "APPEND"
    COMPACT = "COMPACT"
    OVERWRITE = "OVERWRITE"
    ANALYZE = "ANALYZE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One snapshot of the table, as its file has it.

    Members that older writers omit have their defaults.
    """

    id: int
    schema_id: int
    base_manifest_list: str
    delta_manifest_list: str
    commit_user: str
    commit_identifier: int
    commit_kind: CommitKind
    time_millis: int
    version: int = CURRENT_VERSION
    uuid: str | None = None
    base_manifest_list_size: int | None = None
    delta_manifest_list_size: int | None = None
    changelog_manifest_list: str | None = None
    changelog_manifest_list_size: int | None = None
    index_manifest: str | None = None
    writer_version: str | None = None
    total_record_count: int = 0
    delta_record_count: int = 0
    changelog_record_count: int | None = None
    watermark: int | None = None
    statistics: str | None = None
    properties: Mapping[str, str] | None = None
    next_row_id: int | None = None
    operation: str | None = None
    branch: str = field(default=MAIN_BRANCH, compare=False, repr=False)
    """The branch from which the snapshot was read; the file does not contain it."""
    table: str | None = field(default=None, compare=False, repr=False)
    """The URI of the table from which the snapshot was read; the file does not contain it."""

    @property
    def position(self) -> Position:
        """The position of a reader that has read all commits up to this snapshot."""
        return Position((self.id,), self.branch, self.identity, self.table)

    @property
    def identity(self) -> str:
        """Text that no other snapshot has, not even one that gets the same id after a rollback.

        The text is the uuid. For snapshots without a uuid, it consists of other members.
        """
        if self.uuid is not None:
            return self.uuid
        return f"{self.id}:{self.time_millis}:{self.delta_manifest_list}"

    def to_json(self) -> bytes:
        """Return the content of the snapshot file; absent members are left out."""
        return json.dumps(self.members(), indent=2, ensure_ascii=False).encode()

    def members(self) -> dict[str, Any]:
        """Return the members of the snapshot file by their names in JSON.

        A tag file has these members and those of the tag.
        """
        return write_members(_MEMBERS, self)

    def to_dict(self) -> dict[str, Any]:
        """Return every member by its Python name; ``commit_kind`` is a str."""
        values = {member.name: getattr(self, member.name) for member in _MEMBERS}
        return {**values, "commit_kind": str(self.commit_kind)}

    @classmethod
    def from_json(
        cls, members: Mapping[str, Any], *, branch: str = MAIN_BRANCH, table: str | None = None
    ) -> Snapshot:
        """Return the snapshot of a parsed snapshot file; unknown members are ignored.

        Raise KeyError, TypeError or ValueError for a damaged file, and UnsupportedError for a newer
        version.
        """
        known = read_members(_MEMBERS, members)
        known["commit_kind"] = CommitKind(known["commit_kind"])
        # Java reads a missing number as 0, except in the nullable members.
        known = {"version": 0, "schema_id": 0, "commit_identifier": 0, "time_millis": 0, **known}
        if known["version"] > CURRENT_VERSION:
            raise newer_version("snapshot", known["version"], CURRENT_VERSION)
        if "properties" in known:
            known["properties"] = _properties(known["properties"])
        return cls(**known, branch=branch, table=table)


def snapshot_reader(
    storage: Storage, layout: TableLayout
) -> Callable[[Mapping[str, Any]], Snapshot]:
    """Return ``Snapshot.from_json`` with the branch and the table of ``layout`` filled in."""
    return partial(Snapshot.from_json, branch=layout.branch, table=storage.uri(layout.root))


def _properties(members: Mapping[str, Any]) -> dict[str, str]:
    """Return the properties of a snapshot as str; numbers and booleans of other engines become
    text.

    Raise ValueError for a list, an object or invalid text.
    """
    for key, value in members.items():
        if isinstance(value, dict | list):
            raise ValueError(f"property {key!r} is {value!r}, not text")
        f"{key}{value}".encode()  # half of a surrogate pair is not text
    return {
        key: value if isinstance(value, str) else json.dumps(value)
        for key, value in members.items()
        if value is not None
    }


_MEMBERS = (
    Member("version", "version", int),
    Member("uuid", "uuid", str),
    Member("id", "id", int, required=True),
    Member("schemaId", "schema_id", int),
    Member("baseManifestList", "base_manifest_list", str, required=True),
    Member("baseManifestListSize", "base_manifest_list_size", int),
    Member("deltaManifestList", "delta_manifest_list", str, required=True),
    Member("deltaManifestListSize", "delta_manifest_list_size", int),
    Member("changelogManifestList", "changelog_manifest_list", str),
    Member("changelogManifestListSize", "changelog_manifest_list_size", int),
    Member("indexManifest", "index_manifest", str),
    Member("commitUser", "commit_user", str, required=True),
    Member("commitIdentifier", "commit_identifier", int),
    Member("commitKind", "commit_kind", str, required=True),
    Member("timeMillis", "time_millis", int),
    Member("totalRecordCount", "total_record_count", int),
    Member("deltaRecordCount", "delta_record_count", int),
    Member("changelogRecordCount", "changelog_record_count", int),
    Member("watermark", "watermark", int),
    Member("statistics", "statistics", str),
    Member("properties", "properties", dict),
    Member("nextRowId", "next_row_id", int),
    Member("operation", "operation", str),
    Member("writerVersion", "writer_version", str),
)


COMPACTION_MARK = "lake.compaction"
_MADE_BY = "lakeformat"


def marked(kind: CommitKind, properties: Mapping[str, str]) -> Mapping[str, str]:
    """Return ``properties``; for a COMPACT snapshot, with ``COMPACTION_MARK`` added."""
    if kind is not CommitKind.COMPACT:
        return properties
    return {**properties, COMPACTION_MARK: _MADE_BY}


def is_foreign_compaction(snapshot: Snapshot) -> bool:
    """Return True for a COMPACT snapshot of another program: it lacks ``COMPACTION_MARK``."""
    if snapshot.commit_kind is not CommitKind.COMPACT:
        return False
    return COMPACTION_MARK not in (snapshot.properties or {})
