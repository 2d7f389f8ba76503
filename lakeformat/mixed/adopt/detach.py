# SPDX-License-Identifier: Apache-2.0
"""Makes the base store of a Mixed table an ordinary Iceberg table, in one commit of its metadata.

The change store is marked first. Writers check the mark in their commits, so no new change can be
lost when the change store is dropped.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lakeformat.errors import CommitConflictError, InvalidRequestError
from lakeformat.iceberg.alter.alter import with_columns
from lakeformat.iceberg.commit.commit import commit_metadata
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.statistics import StatisticsFile
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.metadata.updates import remove_properties, set_properties
from lakeformat.iceberg.properties import bool_property
from lakeformat.iceberg.reachable_files import live_files, manifests_of
from lakeformat.iceberg.read.plan import plan_files
from lakeformat.iceberg.write.new_entries import delete_files
from lakeformat.mixed.batch.open_batches import oldest_open_batch
from lakeformat.mixed.read.state import MixedState
from lakeformat.mixed.read.store_files import StoreFile, change_files
from lakeformat.mixed.stores.alter_record import ALTERED
from lakeformat.mixed.stores.detaching import DETACHING
from lakeformat.mixed.stores.optimized_sequences import SEQUENCES, TIMES
from lakeformat.mixed.stores.pair_properties import OF_PAIRS
from lakeformat.mixed.stores.properties import (
    KEPT_UPSERT,
    OPTIONAL_KEYS,
    RENAMED_TO,
    UPSERT,
)
from lakeformat.mixed.stores.store_pair import LoadedPair, StorePair
from lakeformat.mixed.table.consumers import consumers_of_pair
from lakeformat.mixed.table.newest_runs import newest_state
from lakeformat.mixed.write.write_changes import change_handle
from lakeformat.storage.location import one_spelling
from lakeformat.tables.report import Report
from lakeformat.types.byte_size import size
from lakeformat.types.count_text import counted

__all__ = [
    "DetachReport",
    "Detachment",
    "mark_change_store",
    "plan_detachment",
    "release_base",
    "require_no_rename",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class DetachReport(Report):
    """The result of detaching a table from its change store, or of its dry run."""

    table: str
    change_store: str
    """The name of the change store, which is dropped."""
    merged: bool = False
    """True if this call first merged changes into the base store, or in a dry run would merge them.
    """
    abandoned: bool = False
    """True if the change store did not exist, so that changes that were not merged are lost."""
    files: int
    """The number of files that are deleted with the change store."""
    bytes: int
    """The total size, in bytes, of the files that are deleted with the change store; a file of
    unknown size counts as 0.
    """
    outside: int = 0
    """The number of files of the change store that are kept, because they are outside of its
    directory, for example below its ``write.data.path``."""
    dry_run: bool = False

    @property
    def sentence(self) -> str:
        """The result in one sentence."""
        verb, would = ("is now", "") if not self.dry_run else ("would be", "would ")
        deleted, held = ("delete", "keep") if self.dry_run else ("deleted", "kept")
        if self.abandoned:
            return (
                f"{self.table} {verb} an ordinary Iceberg table with the rows of its base store; "
                f"changes that were only in its missing change store {self.change_store} "
                f"{'would be' if self.dry_run else 'are'} lost"
            )
        kept = ""
        if self.outside:
            kept = (
                f"; {would}{held} {counted(self.outside, 'file')} of the change store outside of "
                "its directory (delete by hand)"
            )
        merged = ", after a merge of its changes" if self.merged else ""
        return (
            f"{self.table} {verb} an ordinary Iceberg table{merged}; {would}{deleted} "
            f"{counted(self.files, 'file')} ({size(self.bytes)}) of its change store "
            f"{self.change_store}{kept}; no row changed"
        )


@dataclass(frozen=True, slots=True)
class Detachment:
    """A Mixed table that was checked and can be detached from its change store."""

    pair: StorePair
    loaded: LoadedPair
    """The metadata for which everything was checked."""
    waiting: int
    """The number of files with changes that are not in the base store yet."""


def plan_detachment(pair: StorePair, name: str, *, may_merge: bool = False) -> Detachment:
    """Check that a table can be detached from its change store, and return what was checked.

    Raise ``InvalidRequestError``, which names the next step, if the table or one of its readers
    still needs the change store. With ``may_merge`` the change store may have changes that are not
    merged yet. ``name`` is the name of the table.
    """
    loaded, state, _ = newest_state(pair)
    require_no_rename(loaded.base.metadata, name)
    _require_no_batch(pair, state, name)
    _require_no_consumers(pair, name)
    waiting = _waiting(state)
    if waiting and not may_merge:
        raise _not_merged(waiting, name, loaded.base)
    _require_own_files(loaded, name)
    return Detachment(pair, loaded, len(waiting))


def mark_change_store(planned: Detachment, name: str) -> None:
    """Mark the change store of the table ``name``, so that writers refuse new changes.

    Raise ``CommitConflictError`` if the rows or columns of the change store have changed since the
    check.
    """
    checked = planned.loaded.change.metadata

    def change(found: LoadedMetadata) -> TableMetadata | None:
        _require_unchanged(checked, found.metadata, name)
        if found.metadata.properties.get(DETACHING) == name:
            return None
        return set_properties(found.metadata, {DETACHING: name})

    commit_metadata(change_handle(planned.pair), change, planned=planned.loaded.change)


def release_base(base: TableHandle, checked: LoadedMetadata, name: str) -> None:
    """Make the base store an ordinary Iceberg table, and delete its records of merged changes.

    Properties that only Mixed tables have are removed, and key columns that were optional before
    the adoption are optional again. ``name`` is the name of the table in error messages. Raise
    ``CommitConflictError`` if the rows or columns of the base store have changed since ``checked``
    was loaded.
    """

    def change(found: LoadedMetadata) -> TableMetadata:
        _require_unchanged(checked.metadata, found.metadata, name)
        return _plain(found.metadata)

    commit_metadata(base, change, planned=checked)
    records = [each.statistics_path for each in checked.metadata.statistics if _is_record(each)]
    delete_files(checked.places, records)


def require_no_rename(base: TableMetadata, name: str) -> None:
    """Raise ``InvalidRequestError`` if a rename of the table was interrupted.

    A table that already has the new name is accepted: only the record of the rename is left.
    """
    if (renamed := base.properties.get(RENAMED_TO)) not in (None, name):
        raise InvalidRequestError(
            f"{name} is not detached, because a rename to {renamed!r} was interrupted: repeat the "
            "rename first, with rename_table"
        )


def _plain(metadata: TableMetadata) -> TableMetadata:
    properties = metadata.properties
    # An adoption keeps this property if it exists. Writers of Iceberg have false by default.
    is_true = bool_property(properties, UPSERT, default=True)
    is_kept = not is_true or properties.get(KEPT_UPSERT) == "true"
    removed = [*OF_PAIRS, *([] if is_kept else [UPSERT])]
    kept = tuple(each for each in metadata.statistics if not _is_record(each))
    changed = replace(remove_properties(metadata, removed), statistics=kept)
    optional = {each for each in properties.get(OPTIONAL_KEYS, "").split(",") if each}
    columns = tuple(
        replace(each, required=False) if str(each.id) in optional else each
        for each in metadata.schema.fields
    )
    return with_columns(changed, columns, metadata.last_column_id)


def _is_record(file: StatisticsFile) -> bool:
    """Return True for a record of merged changes, which some readers of Iceberg refuse."""
    return any(blob.get("type") in (SEQUENCES, TIMES) for blob in file.blob_metadata)


def _require_no_batch(pair: StorePair, state: MixedState, name: str) -> None:
    if (batch := oldest_open_batch(state, pair.base.environment.now_millis())) is not None:
        raise InvalidRequestError(
            f"{name} is not detached, because a batch may still commit ({batch}): commit it or "
            "abort it first. If its process died, wait a minute, then run `lake --format iceberg "
            f"compact {name}{state.base.places.warehouse_option}`, which ends the batch. A batch "
            "of Amoro counts as ended when it is older than 'change.data.ttl.minutes'"
        )


def _require_no_consumers(pair: StorePair, name: str) -> None:
    found = sorted(each.id for each in consumers_of_pair(pair).list())
    if found:
        several = f"{len(found)} consumers, such as {found[0]!r}, read"
        readers = several if found[1:] else f"the consumer {found[0]!r} reads"
        warehouse = pair.base.load().places.warehouse_option
        raise InvalidRequestError(
            f"{name} is not detached, because {readers} its changes: let all readers read the rest "
            f"and stop them, then delete each consumer with `lake --format iceberg consumer reset "
            f"{name} {shlex.quote(found[0])}{warehouse}`. A consumer of stream_batch is "
            "deleted when its batch ends"
        )


def _waiting(state: MixedState) -> list[StoreFile]:
    return [
        each
        for each in change_files(state.change, plan_files(state.change))
        if each.sequence > state.merged.sequence(each.partition)
    ]


def _not_merged(
    waiting: Sequence[StoreFile], name: str, base: LoadedMetadata
) -> InvalidRequestError:
    partitions = len({each.values for each in waiting})
    remedy = (
        f"run `lake --format iceberg compact {name} --strategy full{base.places.warehouse_option}` "
        "first, or pass merge=True (--merge), which does that"
    )
    if (version := base.metadata.format_version) != 2:
        remedy = (
            f"this library merges changes only into version 2 of the Iceberg format, and the table "
            f"has version {version}: run Amoro's optimizer first"
        )
    return InvalidRequestError(
        f"{name} is not detached, because its change store has "
        f"{counted(len(waiting), 'file')} with unmerged changes of "
        f"{counted(partitions, 'partition')}: {remedy}"
    )


def _require_own_files(pair: LoadedPair, name: str) -> None:
    """Raise ``InvalidRequestError`` if a snapshot of the base store names a file of the change
    store.

    The file would be dropped with the change store.
    """
    base, change = (
        live_files(each, manifests_of(each, each.metadata.snapshots).values())
        for each in (pair.base, pair.change)
    )
    inside = f"{one_spelling(pair.change.metadata.location)}/"
    shared = [each for each in base if each in change or each.startswith(inside)]
    if shared:
        warehouse = pair.base.places.warehouse_option
        raise InvalidRequestError(
            f"{name} is not detached, because snapshots of its base store refer to "
            f"{counted(len(shared), 'file')} of the change store, such as "
            f"{base[shared[0]].address}: run `lake --format iceberg compact {name} "
            f"--strategy full{warehouse}`. Then run `lake --format iceberg expire {name}"
            f"{warehouse}` until no snapshot needs these files. An expiry keeps "
            "snapshots for 'snapshot.keep.duration', unless --older-than gives a shorter time"
        )


def _require_unchanged(checked: TableMetadata, now: TableMetadata, name: str) -> None:
    states = [
        (each.current_snapshot_id, each.current_schema_id, each.properties.get(ALTERED))
        for each in (checked, now)
    ]
    if states[0] != states[1]:
        raise CommitConflictError(
            f"{name} is not detached, because another program has changed {now.location} since it "
            "was checked: stop its writers, then repeat the call"
        )
