# SPDX-License-Identifier: Apache-2.0
"""Overwrites partitions of the base store, in the order of transactions.

The commit records the changes of these partitions, up to the transaction of the batch, as merged.
So readers skip these changes. Newer changes remain, even if they were committed before the
overwrite.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.errors import (
    CommitConflictError,
    InvalidRequestError,
    SnapshotExpiredError,
    UnsupportedError,
)
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.snapshot import Snapshot
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.read.entry_columns import spec_of
from lakeformat.iceberg.read.plan import TableState, plan_files
from lakeformat.iceberg.read.where import row_filter
from lakeformat.iceberg.write.append import checked_properties, earlier_commit
from lakeformat.iceberg.write.file_changes import ChangedFiles
from lakeformat.iceberg.write.file_choice import FilesOfPartitions, FilesWhere, files_where
from lakeformat.iceberg.write.new_entries import delete_files
from lakeformat.iceberg.write.overwrite import check_overwritten, replacement
from lakeformat.iceberg.write.publish import (
    Base,
    FileChange,
    Produce,
    PublishedChange,
    publish_change,
)
from lakeformat.mixed.batch.base_writer import BaseWriter
from lakeformat.mixed.batch.begin import BegunBatch
from lakeformat.mixed.batch.open_batches import (
    CHANGE_LIFETIME,
    MINUTE_MILLIS,
    TRANSACTION,
    change_data_millis,
)
from lakeformat.mixed.batch.renamed_partitions import refuse_renamed_partitions
from lakeformat.mixed.read.store_files import StoreFile, change_files
from lakeformat.mixed.stores.log_store import require_no_log_store
from lakeformat.mixed.stores.optimized_sequences import OptimizedSequences, optimized_sequences
from lakeformat.mixed.stores.partition_path import partition_paths, partition_values
from lakeformat.mixed.stores.record_file import (
    RECORD_MARKS,
    delete_unused_records,
    record_uri,
    write_record,
)
from lakeformat.rows.batches import to_batches
from lakeformat.rows.conditions.filter import Where
from lakeformat.tables.arguments import Overwritten, PartitionSpec, partitions_to_drop
from lakeformat.tables.commit_id import CommitId
from lakeformat.tables.kept_files import kept_if_published
from lakeformat.types.type_rules import is_list

__all__ = [
    "OverwriteChange",
    "Replaced",
    "overwrite_base",
    "publish_overwrite",
    "refuse_kinds",
]

_NO_ENTRIES = pa.table({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Replaced:
    """The rows that an overwrite replaces: those of whole partitions."""

    partitions: Overwritten | Sequence[PartitionSpec] | None = None
    where: Where | None = None
    """A condition on partition columns, instead of ``partitions``."""

    def require_valid(self, metadata: TableMetadata) -> None:
        """Raise an error if the replaced rows are not those of whole partitions.

        Raise ``InvalidRequestError`` for missing or contradictory arguments, and
        ``UnsupportedError`` for a condition that partition values do not decide.
        """
        if (self.partitions is None) == (self.where is None):
            given = "neither" if self.where is None else "both"
            raise InvalidRequestError(
                f"an overwrite of {metadata.location} needs one of two arguments: 'partitions', "
                "such as 'table' or {'dt': '2024-01-01'}, or 'where', a condition on partition "
                f"columns. Got {given}"
            )
        if self.partitions is not None and not is_list(self.partitions):
            check_overwritten(metadata, self.partitions)
        choice, specs = self.files(metadata, _NO_ENTRIES).choice, metadata.partition_specs
        if isinstance(choice, FilesWhere) and not all(
            choice.is_decided_by(metadata, each) for each in specs
        ):
            named = " and ".join(sorted(choice.condition.columns))
            raise UnsupportedError(
                f"an overwrite of {metadata.location} replaces whole partitions, but partition "
                f"values do not decide a condition on {named}: a partition can have both rows that "
                "meet it and rows that do not. Delete the old rows with delete(where), and write "
                "the new ones. In a table with partitions you can also pass 'partitions' instead "
                "of the condition: then all partitions that have new rows are replaced"
            )

    def files(self, metadata: TableMetadata, entries: pa.Table) -> ChangedFiles:
        """Return the files to add and to remove; ``entries`` are the manifest entries of new files.

        Raise ``InvalidRequestError`` if a new row is outside of the replaced partitions.
        """
        if self.where is not None:
            choice = files_where(metadata, self.where)
        elif is_list(self.partitions):
            listed = partitions_to_drop(self.partitions)
            condition = row_filter(metadata, metadata.schema, None, listed)
            assert condition is not None
            choice = FilesWhere(condition)
        else:
            whole: Any = self.partitions
            return replace(replacement(metadata, whole, entries), is_recorded=True)
        given = self.partitions if self.where is None else choice.condition.to_text()
        _require_inside(metadata, choice, entries, given)
        return ChangedFiles([entries], choice, is_recorded=True)


def overwrite_base(
    batch: BegunBatch,
    data: Any,
    replaced: Replaced,
    *,
    commit: CommitId | None = None,
    properties: Mapping[str, str] | None = None,
) -> PublishedChange:
    """Replace the rows of partitions in one commit of the base store.

    A repeated call with the same ``commit`` publishes nothing again. After
    ``CommitOutcomeUnknownError`` the files are kept, because the commit may be published. After any
    other error nothing is published, and no file is left.
    """
    handle, given = batch.pair.base, checked_properties(properties)
    pair = batch.pair.load()
    loaded = pair.base
    if (earlier := earlier_commit(handle, loaded, commit)) is not None:
        return earlier
    require_no_log_store(pair)
    batch.require_columns(loaded.metadata.schema)
    replaced.require_valid(loaded.metadata)
    writer = BaseWriter(loaded, handle.environment, batch.state.key, batch.transaction)
    try:
        for each in to_batches(data):
            writer.write(each)
        entries = writer.finish()
    except BaseException:
        writer.discard()
        raise
    paths = entries.column("file_path").to_pylist()
    with kept_if_published(lambda: delete_files(loaded.places, paths)):
        published = publish_overwrite(
            OverwriteChange(batch, replaced, entries), loaded, commit=commit, properties=given
        )
    if published.is_replayed:  # another process with the same identity published it meanwhile
        delete_files(loaded.places, paths)
    return published


def publish_overwrite(
    change: OverwriteChange,
    loaded: LoadedMetadata,
    *,
    commit: CommitId | None,
    properties: Mapping[str, str],
    guarded: Callable[[Produce], Produce] = lambda change: change,
) -> PublishedChange:
    """Publish an overwrite whose files were written for the metadata ``loaded`` of the base store.

    ``guarded`` adds checks to ``change``. After an error the files are kept.
    """
    handle = change.batch.pair.base

    def discard() -> None:
        delete_files(loaded.places, change.records)

    with kept_if_published(discard):
        published = publish_change(
            handle, guarded(change), commit=commit, properties=properties, planned=loaded
        )
    if published.is_replayed:
        discard()
    else:
        delete_unused_records(handle, change.records, published.snapshot)
    return published


@dataclass(slots=True)
class OverwriteChange:
    """Makes the snapshot of the base store with the new rows and the record of merged changes."""

    batch: BegunBatch
    replaced: Replaced
    entries: pa.Table
    records: list[str] = field(default_factory=list)
    """The URIs of the files with the record of merged changes, from all attempts to commit."""

    def __call__(self, base: Base) -> FileChange:
        change = self.batch.pair.change.load()
        self.batch.require_open(change)
        self._require_no_other_overwrite(base)
        metadata = base.loaded.metadata
        files = self.replaced.files(metadata, self.entries)
        made = files(base)
        assert made is not None
        changes, others = self._changes(change, files)
        touched = _partitions(metadata, (*made.removed_files, self.entries), changes)
        for each in others:
            if each.partition in touched:  # the record would take its changes as merged
                raise _two_partitions(metadata, each.partition)
        known = optimized_sequences(base.loaded, base.parent)
        if isinstance(files.choice, FilesOfPartitions):
            waiting = (each for each in others if each.sequence > known.sequence(each.partition))
            refuse_renamed_partitions(base, waiting, {*_values(self.entries)}, touched)
        self._require_changes(change, known, touched, changes)
        now, transaction = base.snapshot.timestamp_ms, self.batch.transaction
        record = OptimizedSequences(
            {**known.sequences, **dict.fromkeys(sorted(touched), transaction)},
            {**known.times, **dict.fromkeys(sorted(touched), now)},
        )
        uri = record_uri(base.loaded, base.snapshot, self.batch.pair.base.environment)
        self.records.append(uri)
        return replace(
            made,
            operation="overwrite",
            more={TRANSACTION: str(transaction), **RECORD_MARKS},
            statistics=write_record(base.loaded, base.snapshot, record, uri),
        )

    def _changes(
        self, change: LoadedMetadata, files: ChangedFiles
    ) -> tuple[list[StoreFile], list[StoreFile]]:
        """Return the live files of the change store: those in replaced partitions, and the rest."""
        metadata = change.metadata
        state = TableState(change.places, metadata, metadata.current_snapshot, metadata.schema)
        plan = plan_files(state)
        chosen: set[str] = set()
        added = {*_paths(self.batch.state.base.metadata, self.entries)}
        for entries in plan.entries:
            if isinstance(files.choice, FilesOfPartitions):
                found = [each in added for each in partition_paths(metadata, entries)]
            else:
                assert files.choice is not None
                found = files.choice.mask(metadata, spec_of(metadata, entries), entries).to_pylist()
            paths = entries.column("file_path").to_pylist()
            chosen.update(path for path, is_chosen in zip(paths, found, strict=True) if is_chosen)
        stored = [*change_files(state, plan)]
        replaced = [each for each in stored if each.path in chosen]
        return replaced, [each for each in stored if each.path not in chosen]

    def _require_no_other_overwrite(self, base: Base) -> None:
        """Raise ``CommitConflictError`` if another batch may have overwritten the base store.

        Only overwrites since this batch began count. This batch must not replace the rows of the
        other batch.
        """
        head = None if base.parent is None else base.parent.snapshot_id
        if not self.batch.require_no_other_overwrite(base.loaded, head):
            raise CommitConflictError(
                f"{self.batch} was not published: base snapshots since its start have expired or "
                "were rolled back, so a later batch may have overwritten the same rows. Begin a "
                "new batch, and keep snapshots longer than batches run ('snapshot.keep.duration')"
            )

    def _require_changes(
        self,
        change: LoadedMetadata,
        known: OptimizedSequences,
        touched: set[str],
        changes: list[StoreFile],
    ) -> None:
        """Check that the changes to the ``touched`` partitions since the batch began still exist.

        They must be merged again after the overwrite. Raise ``SnapshotExpiredError`` if some were
        deleted, and ``CommitConflictError`` if an older batch has changed the partitions meanwhile.
        """
        transaction = self.batch.transaction
        for each in changes:
            if each.transaction < transaction < each.sequence:
                raise CommitConflictError(
                    f"{self.batch} was not published: the older batch with transaction "
                    f"{each.transaction} has changed the same partitions meanwhile. Begin a new "
                    "batch"
                )
        merged = sorted(each for each in touched if known.sequence(each) > transaction)
        if not merged:
            return
        where = f" in partition {merged[0]!r}" if merged[0] else ""
        for newer in self.batch.require_history(change):
            if newer.summary.get("deleted-data-files", "0") != "0":
                raise self._changes_expired(change, known.sequence(merged[0]), where, newer)

    def _changes_expired(
        self, change: LoadedMetadata, merged: int, where: str, by: Snapshot
    ) -> SnapshotExpiredError:
        base = self.batch.pair.base.load()
        minutes = change_data_millis(base.metadata.properties) // MINUTE_MILLIS
        return SnapshotExpiredError(
            f"{self.batch} was not published: changes that are newer than the batch, up to "
            f"sequence number {merged}, are already merged{where}, and must be merged again after "
            f"the overwrite. But snapshot {by.snapshot_id} has deleted files from the change store "
            f"{change.places.uri}, so some of these changes may be lost. Begin a new batch with "
            "table.begin(). Keep changes longer than batches run: the property "
            f"{CHANGE_LIFETIME!r} is {minutes}, so run `lake set-option "
            f"{base.places.argument} {CHANGE_LIFETIME}={2 * minutes}`"
        )


def refuse_kinds(kinds: Any) -> None:
    """Raise ``InvalidRequestError`` if the rows of an overwrite have kinds."""
    if kinds is not None:
        raise InvalidRequestError(
            "an overwrite stores every row, so it takes no kinds: leave them out, or leave out "
            "overwrite to write changes"
        )


def _partitions(
    base: TableMetadata, entries: tuple[pa.Table, ...], changes: list[StoreFile]
) -> set[str]:
    """Return the paths of the partitions of manifest entries and of changes.

    Raise ``UnsupportedError`` if two partitions have the same path. The record of merged changes
    would have only one entry for both.
    """
    found = {each.partition: {each.values} for each in changes}
    for each in changes:
        found[each.partition].add(each.values)
    for table in entries:
        for path, values in zip(_paths(base, table), _values(table), strict=True):
            found.setdefault(path, set()).add(values)
    for path, several in found.items():
        if len(several) > 1:
            raise _two_partitions(base, path)
    return {*found}


def _two_partitions(base: TableMetadata, path: str) -> UnsupportedError:
    return UnsupportedError(
        f"{base.location} has two partitions {path!r}, one with a null and one with a value whose "
        "text is 'null'. Amoro records the merged changes of both under this name, so they cannot "
        "be overwritten: pass the changed rows to write() without overwrite"
    )


def _require_inside(
    metadata: TableMetadata, choice: FilesWhere, entries: pa.Table, given: object
) -> None:
    if not len(entries):
        return
    inside = choice.mask(metadata, spec_of(metadata, entries), entries)
    if not pc.all(inside).as_py():
        outside = entries.filter(pc.invert(inside))
        raise InvalidRequestError(
            f"some rows belong to the partition {partition_paths(metadata, outside)[0]!r}, which "
            f"is not one of the partitions to overwrite, {given}: leave them out, or overwrite "
            "that partition, too"
        )


def _paths(metadata: TableMetadata, entries: pa.Table) -> list[str]:
    return partition_paths(metadata, entries) if len(entries) else []


def _values(entries: pa.Table) -> list[str]:
    return partition_values(entries) if len(entries) else []
