# SPDX-License-Identifier: Apache-2.0
"""Makes an Iceberg table the base store of a Mixed table, in one commit of its metadata.

The commit sets the properties of a base store. It also adds a snapshot without new files, which
records that no changes are merged yet. Without this record, readers would refuse a table with
expired snapshots, because one of these snapshots could have had a record.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from lakeformat.errors import CommitConflictError, InvalidRequestError, UnsupportedError
from lakeformat.iceberg.alter.alter import with_columns
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.partition_terms import partition_terms
from lakeformat.iceberg.metadata.snapshot import BRANCH
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.metadata.updates import remove_properties, set_properties
from lakeformat.iceberg.partition_spec import PartitionSpec
from lakeformat.iceberg.read.entry_columns import spec_of
from lakeformat.iceberg.read.plan import FilePlan, TableState, plan_files
from lakeformat.iceberg.table.consumers import consumers_of_branches
from lakeformat.iceberg.types import Field
from lakeformat.iceberg.write.file_changes import ChangedFiles
from lakeformat.iceberg.write.new_entries import delete_files
from lakeformat.iceberg.write.publish import Base, FileChange, publish_change
from lakeformat.mixed.adopt.change_store import first_free_number, with_required
from lakeformat.mixed.adopt.existing_keys import check_existing_keys
from lakeformat.mixed.key_hash import require_hashable
from lakeformat.mixed.read.state import MixedState
from lakeformat.mixed.stores.key_types import require_one_key_type
from lakeformat.mixed.stores.log_store import refuse_log_store
from lakeformat.mixed.stores.mixed_hive import refuse_store_of_mixed_hive
from lakeformat.mixed.stores.optimized_sequences import NOTHING_MERGED
from lakeformat.mixed.stores.pair_properties import OF_PAIRS
from lakeformat.mixed.stores.properties import (
    BASE,
    CHANGE_IDENTIFIER,
    FORMAT_MARK,
    KEPT_UPSERT,
    OPTIONAL_KEYS,
    PRIMARY_KEY,
    TABLE_STORE,
    UPSERT,
)
from lakeformat.mixed.stores.record_file import (
    RECORD_MARKS,
    delete_unused_records,
    record_uri,
    write_record,
)
from lakeformat.mixed.stores.version_field import new_version_properties
from lakeformat.mixed.table_properties import require_valid_properties
from lakeformat.tables.kept_files import kept_if_published
from lakeformat.tables.position import MAIN_BRANCH, Position
from lakeformat.tables.report import Report
from lakeformat.types.count_text import counted

__all__ = ["AdoptReport", "Adoption", "plan_adoption", "publish_adoption"]

_VERSION = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptReport(Report):
    """The result of an adoption, or of its dry run."""

    table: str
    change_store: str
    """The name of the change store."""
    primary_key: tuple[str, ...]
    rows: int | None
    """The number of rows whose keys were checked; None if the table was a Mixed table already."""
    made_required: tuple[str, ...] = ()
    """The key columns that were optional before."""
    dry_run: bool = False

    @property
    def sentence(self) -> str:
        """The result in one sentence."""
        key = ", ".join(self.primary_key)
        if self.rows is None:
            return f"{self.table} is already a Mixed table with the key {key}"
        verb = "would become" if self.dry_run else "is now"
        required = ""
        if self.made_required:
            became = "are now" if len(self.made_required) > 1 and not self.dry_run else verb
            required = f"; {', '.join(self.made_required)} {became} required"
        return (
            f"{self.table} {verb} a Mixed table with the key {key} and the change store "
            f"{self.change_store}; {counted(self.rows, 'row')} checked{required}; no data file "
            "changed"
        )


@dataclass(frozen=True, slots=True)
class Adoption:
    """An Iceberg table that was checked, and can become the base store of a Mixed table."""

    handle: TableHandle
    loaded: LoadedMetadata
    """The metadata for which everything was checked."""
    key: tuple[Field, ...]
    number: int
    """The sequence numbers of the change store begin after this number."""
    rows: int
    more: Mapping[str, str]
    """The properties that both stores get because the table names a version field."""

    @property
    def names(self) -> list[str]:
        """The names of the key columns."""
        return [each.name for each in self.key]

    @property
    def made_required(self) -> tuple[str, ...]:
        """The names of the key columns that are optional before the commit."""
        return tuple(each.name for each in self.key if not each.required)


def plan_adoption(handle: TableHandle, loaded: LoadedMetadata, key: Sequence[str]) -> Adoption:
    """Check that a table can be adopted with a key; the key columns of all rows are read.

    Raise ``InvalidRequestError`` or ``UnsupportedError`` if it cannot be a Mixed table with this
    key.
    """
    metadata = loaded.metadata
    refuse_store_of_mixed_hive(metadata.properties, handle.uri)
    _require_plain_version(metadata)
    _require_no_branch(metadata)
    _require_no_consumers(handle, loaded.places.argument)
    require_valid_properties(metadata.properties)
    by_name = {each.name: each for each in metadata.schema.fields}
    fields = tuple(by_name[name] for name in key)
    require_hashable(fields)
    require_one_key_type([metadata], fields, "an adoption")
    refuse_log_store(metadata.properties)
    more = new_version_properties(metadata.properties, metadata.schema, key)
    state = _adopted_state(loaded, fields)
    plan = plan_files(state.base)
    _require_current_spec(metadata, plan)
    rows = check_existing_keys(state)
    return Adoption(handle, loaded, fields, first_free_number(loaded, plan), rows, more)


def publish_adoption(adoption: Adoption, change_identifier: str) -> None:
    """Make the table the base store of the change store with the name ``change_identifier``.

    Raise ``CommitConflictError`` if the table has changed since the check.
    """
    handle, made = adoption.handle, _Adopt(adoption, change_identifier)

    def discard() -> None:
        delete_files(adoption.loaded.places, made.records)

    with kept_if_published(discard):
        published = publish_change(handle, made, commit=None, planned=adoption.loaded)
    delete_unused_records(handle, made.records, published.snapshot)


@dataclass(slots=True)
class _Adopt:
    """Builds the commit that makes an Iceberg table the base store of a Mixed table.

    The commit adds the record of merged changes, which is empty, and changes table properties.
    """

    adoption: Adoption
    change_identifier: str
    records: list[str] = field(default_factory=list)
    """The URIs of the records that the attempts have written."""

    def __call__(self, base: Base) -> FileChange:
        _require_unchanged(self.adoption.loaded.metadata, base.loaded.metadata)
        made = ChangedFiles(is_recorded=True)(base)
        assert made is not None
        uri = record_uri(base.loaded, base.snapshot, self.adoption.handle.environment)
        self.records.append(uri)
        return replace(
            made,
            operation="append",
            more=RECORD_MARKS,
            statistics=write_record(base.loaded, base.snapshot, NOTHING_MERGED, uri),
            alter=self._altered,
        )

    def _altered(self, metadata: TableMetadata) -> TableMetadata:
        optional = [str(each.id) for each in self.adoption.key if not each.required]
        changed = set_properties(
            remove_properties(metadata, OF_PAIRS),
            {
                **({KEPT_UPSERT: "true"} if UPSERT in metadata.properties else {UPSERT: "true"}),
                **({OPTIONAL_KEYS: ",".join(optional)} if optional else {}),
                **self.adoption.more,
                **FORMAT_MARK,
                TABLE_STORE: BASE,
                PRIMARY_KEY: ",".join(self.adoption.names),
                CHANGE_IDENTIFIER: self.change_identifier,
            },
        )
        columns = with_required(metadata.schema.fields, self.adoption.names)
        return with_columns(changed, columns, metadata.last_column_id)


def _adopted_state(loaded: LoadedMetadata, key: tuple[Field, ...]) -> MixedState:
    """Return the state that the Mixed table will have: all rows in the base store, no changes."""
    metadata, snapshot = loaded.metadata, loaded.metadata.current_snapshot
    base = TableState(loaded.places, metadata, snapshot, metadata.schema)
    position = Position((0, 0), MAIN_BRANCH, "-", loaded.places.uri)
    return MixedState(base, replace(base, snapshot=None), key, NOTHING_MERGED, position)


def _require_plain_version(metadata: TableMetadata) -> None:
    if metadata.format_version == _VERSION:
        return
    reason, way = (
        "its files have no sequence numbers",
        ("upgrade it with ALTER TABLE … SET TBLPROPERTIES ('format-version' = '2') in Spark"),
    )
    if metadata.format_version > _VERSION:
        reason = "optimizing merges changes only into tables of version 2"
        way = "write its rows to a new Mixed table"
    raise UnsupportedError(
        f"{metadata.location} has version {metadata.format_version} of the Iceberg format and "
        f"cannot be adopted, because {reason}: {way}"
    )


def _require_no_branch(metadata: TableMetadata) -> None:
    others = [
        each.name
        for each in metadata.references.values()
        if each.type == BRANCH and each.name != MAIN_BRANCH
    ]
    if others:
        raise InvalidRequestError(
            f"{metadata.location} has the branch {others[0]!r} and cannot be adopted, because a "
            "Mixed table has no branches: delete it with table.branches.delete("
            f"{others[0]!r}). To keep its commits, first call table.branches.fast_forward("
            f"{others[0]!r})"
        )


def _require_no_consumers(handle: TableHandle, argument: str) -> None:
    """Raise ``InvalidRequestError`` if the table has consumers.

    A Mixed table cannot read their positions, so every expiry would fail.
    """
    found = sorted(each.id for each in consumers_of_branches(handle).list())
    if found:
        raise InvalidRequestError(
            f"{handle.uri} cannot be adopted, because the consumer {found[0]!r} follows its "
            "commits, which have other positions in a Mixed table: let it read the rest and stop "
            f"it, then delete it with `lake consumer reset {argument} {shlex.quote(found[0])}`. "
            "Consumers of the Mixed table begin with all of its rows"
        )


def _require_current_spec(metadata: TableMetadata, plan: FilePlan) -> None:
    """Raise ``InvalidRequestError`` if a live file has another partition spec than the current one.

    A delete applies only to its own partition, so it would miss rows in such files. A spec in which
    only the name of a field differs is refused, too: its partitions could not be optimized.
    """
    current = _named_terms(metadata.spec_of(metadata.default_spec_id))
    for entries in plan.entries:
        if _named_terms(spec_of(metadata, entries)) != current:
            terms = ", ".join(partition_terms(metadata)) or "nothing"
            raise InvalidRequestError(
                f"{metadata.location} cannot be adopted: it is partitioned by {terms}, but "
                f"{len(entries):,} of its live files {'has' if len(entries) == 1 else 'have'} "
                "another partition spec, or a spec with other names of fields. All files of a "
                "Mixed table must have the current spec. First rewrite all files with "
                "table.compact(rewrite_all=True)"
            )


def _named_terms(spec: PartitionSpec) -> list[tuple[object, ...]]:
    return [(each.source_ids, each.transform, each.name) for each in spec.fields]


def _require_unchanged(checked: TableMetadata, now: TableMetadata) -> None:
    def state(metadata: TableMetadata) -> tuple[object, ...]:
        branches = {e.name for e in metadata.references.values() if e.type == BRANCH}
        return (
            metadata.current_snapshot_id,
            metadata.current_schema_id,
            metadata.default_spec_id,
            metadata.format_version,
            branches,
            metadata.properties,
        )

    if state(checked) != state(now):
        raise CommitConflictError(
            f"{now.location} was not adopted, because another program has changed it since its "
            "keys were checked. Stop its other writers, then repeat the call"
        )
