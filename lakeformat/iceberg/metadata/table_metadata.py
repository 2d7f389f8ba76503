# SPDX-License-Identifier: Apache-2.0
"""Table metadata: the content of one JSON metadata file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from lakeformat.errors import CorruptTableError, UnsupportedError
from lakeformat.iceberg.metadata.snapshot import (
    PAIMON_IDENTITY,
    MetadataLogEntry,
    Reference,
    Snapshot,
    SnapshotLogEntry,
    metadata_log_entry_from_json,
    reference_from_json,
    snapshot_from_json,
    snapshot_log_entry_from_json,
)
from lakeformat.iceberg.metadata.statistics import (
    PartitionStatisticsFile,
    StatisticsFile,
    partition_statistics_from_json,
    statistics_from_json,
)
from lakeformat.iceberg.partition_spec import PartitionSpec, spec_from_json
from lakeformat.iceberg.schema import Schema, schema_from_json
from lakeformat.iceberg.sort_order import SortOrder, order_from_json
from lakeformat.iceberg.type_json import require_int, require_list, texts_at
from lakeformat.tables.json_file import Member, newer_version, read_members
from lakeformat.tables.position import MAIN_BRANCH

__all__ = ["NEWEST_VERSION", "NO_SNAPSHOT", "TableMetadata", "metadata_from_json"]

NEWEST_VERSION = 3
"""The newest format version that this library reads."""
NO_SNAPSHOT = -1
"""The id that versions 1 and 2 use for the current snapshot of a table without snapshots."""
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class TableMetadata:
    """The state and the history of a table: the content of one metadata file."""

    format_version: int
    location: str
    last_updated_ms: int
    last_column_id: int
    schemas: tuple[Schema, ...]
    current_schema_id: int
    partition_specs: tuple[PartitionSpec, ...]
    default_spec_id: int
    table_uuid: str | None = None
    """The UUID of the table; None in some tables of format version 1."""
    last_sequence_number: int = 0
    last_partition_id: int | None = None
    sort_orders: tuple[SortOrder, ...] = (SortOrder(0),)
    default_sort_order_id: int = 0
    properties: Mapping[str, str] = field(default_factory=dict)
    current_snapshot_id: int | None = None
    snapshots: tuple[Snapshot, ...] = ()
    references: Mapping[str, Reference] = field(default_factory=dict)
    """Branches and tags by name; ``main`` is among them as soon as it has a snapshot."""
    snapshot_log: tuple[SnapshotLogEntry, ...] = ()
    metadata_log: tuple[MetadataLogEntry, ...] = ()
    statistics: tuple[StatisticsFile, ...] = ()
    partition_statistics: tuple[PartitionStatisticsFile, ...] = ()
    next_row_id: int | None = None
    unknown: Mapping[str, Any] = field(default_factory=dict)
    """The members that this library does not know."""

    @property
    def schema(self) -> Schema:
        """The current schema."""
        return self.schema_of(self.current_schema_id)

    @property
    def sort_order(self) -> SortOrder:
        """The default sort order of the table; it has no fields if writers do not sort."""
        orders = {each.order_id: each for each in self.sort_orders}
        return orders.get(self.default_sort_order_id, SortOrder(0))

    def schema_of(self, schema_id: int) -> Schema:
        """Return the schema with an id; raise ``CorruptTableError`` if it does not exist."""
        return self._named("schema", schema_id, {each.schema_id: each for each in self.schemas})

    def schema_at(self, snapshot: Snapshot) -> Schema:
        """Return the schema with which a snapshot was written.

        Return the current schema if the snapshot does not name its schema. Raise
        ``CorruptTableError`` if the schema does not exist.
        """
        if snapshot.schema_id is None:
            return self.schema
        try:
            return self.schema_of(snapshot.schema_id)
        except CorruptTableError as reason:
            raise CorruptTableError(
                f"snapshot {snapshot.snapshot_id} cannot be read: {reason}; choose another "
                "snapshot, or restore the metadata file from a backup"
            ) from None

    def spec_of(self, spec_id: int) -> PartitionSpec:
        """Return the partition spec with an id; raise ``CorruptTableError`` if it does not
        exist.
        """
        specs = {each.spec_id: each for each in self.partition_specs}
        return self._named("partition spec", spec_id, specs)

    @property
    def current_snapshot(self) -> Snapshot | None:
        """The newest snapshot of the main branch; None if the branch has none."""
        if self.current_snapshot_id is None:
            return None
        return self.snapshot(self.current_snapshot_id)

    def snapshot(self, snapshot_id: int) -> Snapshot | None:
        """Return the snapshot with an id; None if it does not exist, for example after expiry."""
        return next((each for each in self.snapshots if each.snapshot_id == snapshot_id), None)

    def ancestry(self, snapshot_id: int | None) -> Iterator[Snapshot]:
        """Yield a snapshot and its ancestors, newest first, as far as they have not expired.

        Yield nothing if ``snapshot_id`` is None. Raise ``CorruptTableError`` if a snapshot is its
        own ancestor.
        """
        by_id = {each.snapshot_id: each for each in self.snapshots}
        seen: set[int] = set()
        while snapshot_id in by_id:
            if snapshot_id in seen:
                raise CorruptTableError(
                    f"snapshot {snapshot_id} of {self.location} is among its own ancestors; "
                    "restore the metadata file from a backup"
                )
            seen.add(snapshot_id)
            snapshot = by_id[snapshot_id]
            yield snapshot
            snapshot_id = snapshot.parent_id

    def current_id_at(self, millis: int) -> int | None:
        """Return the id of the snapshot that was the newest of main at a time, by the snapshot log.

        Return None if the log has no entry of this time or before.
        """
        for entry in reversed(self.snapshot_log):
            if entry.timestamp_ms <= millis:
                return entry.snapshot_id
        return None

    def refuse_published(self) -> None:
        """Raise ``UnsupportedError`` if the metadata is published for a Paimon table.

        A change would not reach the Paimon table, and deleted files would be missing there.
        """
        if any(PAIMON_IDENTITY in each.summary for each in self.snapshots):
            raise UnsupportedError(
                f"{self.location} is published for a Paimon table, so as an Iceberg table it is "
                "read-only; nothing was written or deleted. Change, maintain or drop the Paimon "
                "table instead. If no Paimon table is published here any more, delete only the "
                "directory "
                f"{self.location.rstrip('/')}/metadata"
            )

    def _named(self, kind: str, wanted: int, known: Mapping[int, _T]) -> _T:
        if wanted not in known:
            raise CorruptTableError(
                f"the table {self.location} has no {kind} {wanted}, only "
                f"{', '.join(map(str, sorted(known))) or 'none'}"
            )
        return known[wanted]


_MEMBERS = (
    Member("location", "location", str, required=True),
    Member("last-updated-ms", "last_updated_ms", int, required=True),
    Member("last-column-id", "last_column_id", int, required=True),
    Member("table-uuid", "table_uuid", str),
    Member("last-sequence-number", "last_sequence_number", int),
    Member("last-partition-id", "last_partition_id", int),
    Member("next-row-id", "next_row_id", int),
    Member("default-sort-order-id", "default_sort_order_id", int),
)
_CURRENT = Member("current-snapshot-id", "current", int)
_REQUIRED_SINCE_2 = (
    "table-uuid",
    "last-sequence-number",
    "schemas",
    "current-schema-id",
    "partition-specs",
    "default-spec-id",
    "last-partition-id",
    "sort-orders",
    "default-sort-order-id",
)
_REQUIRED_SINCE_3 = ("next-row-id",)
_LISTS = (
    "schemas",
    "partition-specs",
    "sort-orders",
    "snapshots",
    "snapshot-log",
    "metadata-log",
    "statistics",
    "partition-statistics",
)
_KNOWN = frozenset(
    {
        *(member.key for member in _MEMBERS),
        *_LISTS,
        "format-version",
        "schema",
        "current-schema-id",
        "partition-spec",
        "default-spec-id",
        "properties",
        "current-snapshot-id",
        "refs",
        "encryption-keys",
    }
)


def metadata_from_json(
    members: Mapping[str, Any],
    parse_snapshot: Callable[[Mapping[str, Any]], Snapshot] = snapshot_from_json,
) -> TableMetadata:
    """Parse the metadata of any format version that this library reads.

    ``parse_snapshot`` may return a snapshot that it parsed before from equal JSON. Raise
    ``KeyError`` for a missing member and ``ValueError`` for a wrong value. Raise
    ``UnsupportedError`` for a newer format version, an unknown type or an encrypted table.
    """
    version = _version(members)
    snapshots = _listed(members, "snapshots", parse_snapshot)
    current = _current_snapshot_id(members, snapshots)
    metadata = TableMetadata(
        format_version=version,
        **read_members(_MEMBERS, members),
        **_schemas(members),
        **_specs(members),
        **_orders(members),
        properties=texts_at(members, "properties"),
        current_snapshot_id=current,
        snapshots=snapshots,
        references=_references(members, snapshots, current),
        snapshot_log=_listed(members, "snapshot-log", snapshot_log_entry_from_json),
        metadata_log=_listed(members, "metadata-log", metadata_log_entry_from_json),
        statistics=_listed(members, "statistics", statistics_from_json),
        partition_statistics=_listed(
            members, "partition-statistics", partition_statistics_from_json
        ),
        unknown={key: value for key, value in members.items() if key not in _KNOWN},
    )
    _require_once("schema-id", [each.schema_id for each in metadata.schemas])
    _require_once("spec-id", [each.spec_id for each in metadata.partition_specs])
    _require_once("snapshot-id", [each.snapshot_id for each in snapshots])
    try:
        metadata.schema_of(metadata.current_schema_id)
        metadata.spec_of(metadata.default_spec_id)
    except CorruptTableError as reason:
        raise ValueError(reason) from None  # the caller adds the name of the file
    return metadata


def _require_once(key: str, given: Sequence[int]) -> None:
    if repeated := [each for each, times in Counter(given).items() if times > 1]:
        raise ValueError(f"the {key} {repeated[0]} is given more than once")


def _version(members: Mapping[str, Any]) -> int:
    """Return the format version, and check that the members that it requires are present.

    Raise ``UnsupportedError`` for a newer version, and for an encrypted table.
    """
    version = require_int(members, "format-version")
    if version > NEWEST_VERSION:
        raise newer_version("format", version, NEWEST_VERSION)
    if version < 1:
        raise ValueError(f"format-version is {version}, but the lowest version is 1")
    required = (_REQUIRED_SINCE_2 if version > 1 else ()) + (
        _REQUIRED_SINCE_3 if version > 2 else ()
    )
    for key in required:
        members[key]  # raises a KeyError that names the member
    if members.get("encryption-keys"):
        raise UnsupportedError(
            "the table is encrypted (encryption-keys), and this version reads no encrypted tables: "
            "use the engine that has the keys"
        )
    return version


def _schemas(members: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members for schemas; version 1 may have ``schema`` instead of ``schemas``."""
    schemas = _listed(members, "schemas", schema_from_json)
    if not schemas:
        only = schema_from_json(members["schema"])
        return {"schemas": (only,), "current_schema_id": only.schema_id}
    return {"schemas": schemas, "current_schema_id": require_int(members, "current-schema-id")}


def _specs(members: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members for partition specs; version 1 may have only the fields of one spec."""
    specs = _listed(members, "partition-specs", spec_from_json)
    if not specs:
        only = spec_from_json({"spec-id": 0, "fields": members["partition-spec"]})
        return {"partition_specs": (only,), "default_spec_id": 0}
    return {"partition_specs": specs, "default_spec_id": require_int(members, "default-spec-id")}


def _orders(members: Mapping[str, Any]) -> dict[str, Any]:
    orders = _listed(members, "sort-orders", order_from_json)
    return {"sort_orders": orders} if orders else {}


def _current_snapshot_id(members: Mapping[str, Any], snapshots: tuple[Snapshot, ...]) -> int | None:
    current: int | None = read_members((_CURRENT,), members).get("current")
    if current is None or current == NO_SNAPSHOT:
        return None
    _require_kept(_CURRENT.key, current, snapshots)
    return current


def _references(
    members: Mapping[str, Any], snapshots: tuple[Snapshot, ...], current: int | None
) -> dict[str, Reference]:
    """Return branches and tags; if ``main`` is missing, the current snapshot becomes ``main``."""
    written = members.get("refs") or {}
    if not isinstance(written, Mapping):
        raise ValueError(f"refs is {written!r}, not an object")
    found = {name: reference_from_json(name, each) for name, each in written.items()}
    for each in found.values():
        _require_kept(f"the {each.type} {each.name!r}", each.snapshot_id, snapshots)
    main = found.get(MAIN_BRANCH)
    if current is not None and main is None:
        found[MAIN_BRANCH] = Reference(MAIN_BRANCH, current, "branch")
    elif main is not None and main.snapshot_id != current:
        raise ValueError(
            f"current-snapshot-id is {current}, but branch 'main' is at {main.snapshot_id}"
        )
    return found


def _require_kept(what: str, snapshot_id: int, snapshots: tuple[Snapshot, ...]) -> None:
    if all(each.snapshot_id != snapshot_id for each in snapshots):
        raise ValueError(f"{what} names snapshot {snapshot_id}, which is not among the snapshots")


def _listed(
    members: Mapping[str, Any], key: str, build: Callable[[Mapping[str, Any]], _T]
) -> tuple[_T, ...]:
    if members.get(key) is None:
        return ()
    return tuple(build(each) for each in require_list(members, key))
