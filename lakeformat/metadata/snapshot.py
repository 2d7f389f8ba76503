"""Snapshot files: ``snapshot/snapshot-<n>``, one per published commit, never changed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

__all__ = ["CommitKind", "Snapshot"]

CURRENT_VERSION = 3


class CommitKind(StrEnum):
    """What a commit did to the table."""

    APPEND = "APPEND"
    COMPACT = "COMPACT"
    OVERWRITE = "OVERWRITE"
    ANALYZE = "ANALYZE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One published state of the table; members that older writers lack are None."""

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

    def to_json(self) -> bytes:
        """The content of the snapshot file; absent members are left out."""
        members = {member.key: getattr(self, member.name) for member in _MEMBERS}
        present = {key: value for key, value in members.items() if value is not None}
        return json.dumps(present, indent=2, ensure_ascii=False).encode()

    def to_dict(self) -> dict[str, Any]:
        """Every member by its Python name, for programs."""
        values = {member.name: getattr(self, member.name) for member in _MEMBERS}
        return {**values, "commit_kind": str(self.commit_kind)}

    @classmethod
    def from_json(cls, members: Mapping[str, Any]) -> Snapshot:
        """Read the members of a snapshot file; unknown ones are ignored."""
        known = {
            member.name: member.checked(members[member.key])
            for member in _MEMBERS
            if member.required or members.get(member.key) is not None
        }
        known["commit_kind"] = CommitKind(known["commit_kind"])
        known.setdefault("version", 0)
        return cls(**known)


@dataclass(frozen=True, slots=True)
class _Member:
    """One member of the file: its key there, its name here, and what it may hold."""

    key: str
    name: str
    type: type
    required: bool = False

    def checked(self, value: Any) -> Any:
        if not isinstance(value, self.type) or isinstance(value, bool):
            raise ValueError(f"{self.key} is {value!r}, not {self.type.__name__}")
        return value


_MEMBERS = (
    _Member("version", "version", int),
    _Member("uuid", "uuid", str),
    _Member("id", "id", int, required=True),
    _Member("schemaId", "schema_id", int, required=True),
    _Member("baseManifestList", "base_manifest_list", str, required=True),
    _Member("baseManifestListSize", "base_manifest_list_size", int),
    _Member("deltaManifestList", "delta_manifest_list", str, required=True),
    _Member("deltaManifestListSize", "delta_manifest_list_size", int),
    _Member("changelogManifestList", "changelog_manifest_list", str),
    _Member("changelogManifestListSize", "changelog_manifest_list_size", int),
    _Member("indexManifest", "index_manifest", str),
    _Member("commitUser", "commit_user", str, required=True),
    _Member("commitIdentifier", "commit_identifier", int, required=True),
    _Member("commitKind", "commit_kind", str, required=True),
    _Member("timeMillis", "time_millis", int, required=True),
    _Member("totalRecordCount", "total_record_count", int),
    _Member("deltaRecordCount", "delta_record_count", int),
    _Member("changelogRecordCount", "changelog_record_count", int),
    _Member("watermark", "watermark", int),
    _Member("statistics", "statistics", str),
    _Member("properties", "properties", dict),
    _Member("nextRowId", "next_row_id", int),
    _Member("operation", "operation", str),
    _Member("writerVersion", "writer_version", str),
)
