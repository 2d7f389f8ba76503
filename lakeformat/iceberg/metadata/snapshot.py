# SPDX-License-Identifier: Apache-2.0
"""Snapshots, branches and tags, and the logs of earlier snapshots and metadata files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lakeformat.errors import CorruptTableError, UnsupportedError
from lakeformat.iceberg.type_json import require_text, texts_at
from lakeformat.tables.json_file import Member, read_members, unknown_members, write_members

__all__ = [
    "BRANCH",
    "PAIMON_IDENTITY",
    "TAG",
    "MetadataLogEntry",
    "Reference",
    "Snapshot",
    "SnapshotLogEntry",
    "metadata_log_entry_from_json",
    "metadata_log_entry_to_json",
    "reference_from_json",
    "reference_to_json",
    "snapshot_from_json",
    "snapshot_log_entry_from_json",
    "snapshot_log_entry_to_json",
    "snapshot_to_json",
]

BRANCH, TAG = "branch", "tag"
PAIMON_IDENTITY = "paimon-commit-identity"
"""The key in a snapshot summary for the identity of the Paimon snapshot that was published.

After a rollback another Paimon snapshot can have the same number, but its identity differs.
"""
_MOST_DIGITS = 19
"""The number of digits of the largest signed 64-bit number."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot of the table: the files that one manifest list names."""

    snapshot_id: int
    timestamp_ms: int
    sequence_number: int = 0
    """The sequence number; 0 in format version 1, whose snapshots have none."""
    parent_id: int | None = None
    manifest_list: str | None = None
    manifests: tuple[str, ...] = ()
    """The paths of the manifests, if a snapshot of version 1 has no manifest list."""
    summary: Mapping[str, str] = field(default_factory=dict)
    schema_id: int | None = None
    first_row_id: int | None = None
    added_rows: int | None = None
    unknown: Mapping[str, Any] = field(default_factory=dict)
    """The members that this library does not know."""

    @property
    def operation(self) -> str | None:
        """The operation of the commit: ``append``, ``replace``, ``overwrite`` or ``delete``.

        None if the writer did not store it.
        """
        return self.summary.get("operation")

    def count(self, name: str) -> int:
        """Return a count of the summary, such as ``added-records``; 0 if the summary lacks it.

        Raise ``CorruptTableError`` if it is not a whole number of at most 19 digits.
        """
        text = self.summary.get(name, "0")
        if not (text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS):
            raise CorruptTableError(
                f"the summary of snapshot {self.snapshot_id} has {name!r} = {text[:40]!r}, which "
                f"is not a whole number of at most {_MOST_DIGITS} digits, so the counts of its "
                "commit are unknown. The metadata file is damaged or forged: restore it from a "
                "backup"
            )
        return int(text)


@dataclass(frozen=True, slots=True)
class Reference:
    """A branch or a tag."""

    name: str
    snapshot_id: int
    type: str
    """``branch`` or ``tag``."""
    min_snapshots_to_keep: int | None = None
    max_snapshot_age_ms: int | None = None
    max_ref_age_ms: int | None = None
    unknown: Mapping[str, Any] = field(default_factory=dict)
    """The members that this library does not know."""


@dataclass(frozen=True, slots=True)
class SnapshotLogEntry:
    """An entry of the snapshot log: a snapshot that became the current one of the main branch."""

    timestamp_ms: int
    snapshot_id: int


@dataclass(frozen=True, slots=True)
class MetadataLogEntry:
    """An entry of the metadata log: an earlier metadata file."""

    timestamp_ms: int
    metadata_file: str


_SNAPSHOT = (
    Member("snapshot-id", "snapshot_id", int, required=True),
    Member("timestamp-ms", "timestamp_ms", int, required=True),
    Member("sequence-number", "sequence_number", int),
    Member("parent-snapshot-id", "parent_id", int),
    Member("manifest-list", "manifest_list", str),
    Member("schema-id", "schema_id", int),
    Member("first-row-id", "first_row_id", int),
    Member("added-rows", "added_rows", int),
)
_OTHER_MEMBERS = ("manifests", "summary", "key-id")
_LOGGED = (_SNAPSHOT[1], _SNAPSHOT[0])
_METADATA_FILE = (
    _SNAPSHOT[1],
    Member("metadata-file", "metadata_file", str, required=True),
)
_REFERENCE = (
    Member("snapshot-id", "snapshot_id", int, required=True),
    Member("type", "type", str, required=True),
    Member("min-snapshots-to-keep", "min_snapshots_to_keep", int),
    Member("max-snapshot-age-ms", "max_snapshot_age_ms", int),
    Member("max-ref-age-ms", "max_ref_age_ms", int),
)


def snapshot_from_json(members: Mapping[str, Any]) -> Snapshot:
    """Parse a snapshot.

    Raise ``KeyError`` for a missing member and ``ValueError`` for a wrong value. Raise
    ``UnsupportedError`` if the manifest list is encrypted.
    """
    values = read_members(_SNAPSHOT, members)
    if members.get("key-id") is not None:
        raise UnsupportedError(
            f"the manifest list of snapshot {values['snapshot_id']} is encrypted (key-id "
            f"{members['key-id']!r}), and this version reads no encrypted tables: use the engine "
            "that has the keys"
        )
    if "manifest_list" not in values:
        values["manifests"] = _paths(members["manifests"])
    unknown = unknown_members(_SNAPSHOT, members, _OTHER_MEMBERS)
    return Snapshot(**values, summary=texts_at(members, "summary"), unknown=unknown)


def snapshot_to_json(snapshot: Snapshot) -> dict[str, Any]:
    """Return the snapshot as JSON of table metadata; version 1 has no sequence number."""
    written = write_members(_SNAPSHOT, snapshot)
    if not snapshot.sequence_number:
        del written["sequence-number"]
    if snapshot.manifest_list is None:
        written["manifests"] = [*snapshot.manifests]
    if snapshot.summary:
        written["summary"] = dict(snapshot.summary)
    return {**written, **snapshot.unknown}


def reference_from_json(name: str, members: Mapping[str, Any]) -> Reference:
    """Parse a branch or tag.

    Raise ``KeyError`` for a missing member and ``ValueError`` for a wrong value.
    """
    unknown = unknown_members(_REFERENCE, members)
    found = Reference(name, **read_members(_REFERENCE, members), unknown=unknown)
    if found.type not in (BRANCH, TAG):
        raise ValueError(f"the reference {name!r} has the type {found.type!r}, not branch or tag")
    return found


def reference_to_json(reference: Reference) -> dict[str, Any]:
    """Return a branch or tag as JSON of table metadata, without its name."""
    return {**write_members(_REFERENCE, reference), **reference.unknown}


def snapshot_log_entry_from_json(members: Mapping[str, Any]) -> SnapshotLogEntry:
    """Parse an entry of the snapshot log.

    Raise ``KeyError`` for a missing member and ``ValueError`` for a wrong value.
    """
    return SnapshotLogEntry(**read_members(_LOGGED, members))


def snapshot_log_entry_to_json(entry: SnapshotLogEntry) -> dict[str, Any]:
    """Return an entry of the snapshot log as JSON of table metadata."""
    return write_members(_LOGGED, entry)


def metadata_log_entry_from_json(members: Mapping[str, Any]) -> MetadataLogEntry:
    """Parse an entry of the metadata log.

    Raise ``KeyError`` for a missing member and ``ValueError`` for a wrong value.
    """
    return MetadataLogEntry(**read_members(_METADATA_FILE, members))


def metadata_log_entry_to_json(entry: MetadataLogEntry) -> dict[str, Any]:
    """Return an entry of the metadata log as JSON of table metadata."""
    return write_members(_METADATA_FILE, entry)


def _paths(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError(f"manifests is {value!r}, not a list of paths")
    return tuple(require_text({"manifests": each}, "manifests") for each in value)
