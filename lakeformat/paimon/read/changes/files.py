# SPDX-License-Identifier: Apache-2.0
"""Finds the files with the changes of one commit: new data files of level 0, or changelog files."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.errors import CorruptTableError, NotFoundError
from lakeformat.paimon.expiry_race import explaining_expiry
from lakeformat.paimon.handle import TableHandle, require_allowed
from lakeformat.paimon.metadata.changelog_directory import changelog_ids
from lakeformat.paimon.metadata.expired_changes import has_expired_changes
from lakeformat.paimon.metadata.manifest import (
    ManifestColumns,
    ManifestEntry,
    live_rows,
    read_manifests,
)
from lakeformat.paimon.metadata.manifest_columns.columns import Mask
from lakeformat.paimon.metadata.manifest_list import ListKind, ManifestMeta, manifests_of
from lakeformat.paimon.metadata.schema_file import read_schema, require_schema_of
from lakeformat.paimon.metadata.simple_stats import may_contain_any
from lakeformat.paimon.metadata.snapshot import CommitKind, Snapshot
from lakeformat.paimon.metadata.snapshot_directory import snapshot_ids
from lakeformat.paimon.options.kinds import POSTPONE_BUCKET
from lakeformat.paimon.options.operation import Operation
from lakeformat.paimon.partition import partition_fields
from lakeformat.paimon.read.changes.column_updates import require_new_rows
from lakeformat.paimon.read.changes.overwritten import (
    overwritten_buckets,
    overwritten_rows,
    reads_overwrites,
    with_kept_files,
)
from lakeformat.paimon.read.changes.rows import ChangedRows
from lakeformat.paimon.read.data_files import DataFiles
from lakeformat.paimon.read.deletions import DeletedRows
from lakeformat.paimon.read.plan import naming_file
from lakeformat.paimon.read.pruning.entries import EntryPruner
from lakeformat.paimon.schema import TableSchema

__all__ = [
    "NO_PRODUCER",
    "ChangeFiles",
    "ChangedFiles",
    "changelog_producer",
    "with_producer_at",
]

_CARRY_CHANGELOG = (CommitKind.APPEND, CommitKind.COMPACT)

_PRODUCER = "changelog-producer"
NO_PRODUCER, _AS_WRITTEN = "none", "input"


def changelog_producer(handle: TableHandle) -> str:
    """Return the option ``changelog-producer`` in lower case; ``none`` if it is not set.

    The value may be a producer that this library cannot write.
    """
    return _producer_in(handle.options.to_dict())


def with_producer_at(handle: TableHandle, snapshot: Snapshot) -> TableHandle:
    """Return the handle with the changelog producer that reads of the snapshot must use.

    If the snapshot's schema is newer than the handle's schema, this is the producer of the
    snapshot's schema. Otherwise, or if the handle has no changelog producer, return the handle
    unchanged.
    """
    producer = _producer_at(handle, snapshot.schema_id)
    if producer == changelog_producer(handle):
        return handle
    options = {**handle.schema.options, _PRODUCER: producer}
    return replace(handle, schema=replace(handle.schema, options=options))


def _producer_at(handle: TableHandle, schema_id: int) -> str:
    """Return the changelog producer for reading snapshots that have the schema ``schema_id``.

    If the producer of the handle is ``none``, return ``none``: the rows can always be read from the
    files that each commit added. Otherwise, return the producer of the schema ``schema_id`` if that
    schema is newer than the handle's schema, else the producer of the handle.
    """
    own = changelog_producer(handle)
    if own == NO_PRODUCER or schema_id <= handle.schema.id:
        return own
    return _producer_in(read_schema(handle.storage, handle.layout, schema_id).options)


def _producer_in(options: Mapping[str, str]) -> str:
    return options.get(_PRODUCER, NO_PRODUCER).strip().lower()


@dataclass(frozen=True, slots=True)
class ChangedFiles:
    """The files with the changes of one snapshot, in the order in which their rows are read."""

    snapshot: Snapshot
    entries: tuple[ManifestEntry, ...] = ()
    is_kept: bool = True
    """True if a long-lived changelog can keep these files after the snapshot expires."""
    is_overwrite: bool = False
    """True for an overwrite of a primary-key table.

    The deleted files of a bucket must then be read together, and so must its added files.
    """

    @property
    def size_bytes(self) -> int:
        """The sum of the file sizes in bytes."""
        return sum(entry.file.file_size for entry in self.entries)

    def parts(self) -> list[ChangedFiles]:
        """Split the files into the smallest parts that can be read independently."""
        if self.is_overwrite:
            buckets = overwritten_buckets(self.entries)
            return [replace(self, entries=entries) for entries in buckets]
        return [replace(self, entries=(entry,)) for entry in self.entries]


class ChangeFiles:
    """Finds and reads the files with the changes of single snapshots of one table."""

    def __init__(self, handle: TableHandle, asked: ChangedRows) -> None:
        require_allowed(handle, Operation.CHANGES)
        self._handle = handle
        self._asked = asked
        self._schema: Callable[[int], TableSchema] = cache(
            lambda schema_id: read_schema(handle.storage, handle.layout, schema_id)
        )
        self._producer: Callable[[int], str] = cache(partial(_producer_at, handle))

    def uses_delta(self, snapshot: Snapshot) -> bool:
        """Return True if the changes of a snapshot are the rows that it added, as stored."""
        return self._producer(snapshot.schema_id) == NO_PRODUCER

    def reads_overwrite(self, snapshot: Snapshot) -> bool:
        """Return True for an OVERWRITE snapshot if its changes are read.

        Its changes are read if the option for reading overwrites is set in the handle's schema, or
        in the snapshot's schema if that is newer.
        """
        if snapshot.commit_kind is not CommitKind.OVERWRITE:
            return False
        own = self._handle.schema
        is_newer = snapshot.schema_id > own.id
        return reads_overwrites(own) or (
            is_newer and reads_overwrites(self._schema(snapshot.schema_id))
        )

    def delta(self, snapshot: Snapshot) -> ChangedFiles:
        """Return the files that an APPEND snapshot added.

        In a primary-key table, these are only the files of level 0. Rows are read as stored: they
        are not merged with rows of other commits. A COMPACT snapshot has no changes. For an
        OVERWRITE snapshot, return the same as ``overwrite`` if ``streaming-read-overwrite`` is set
        (in an append table, ``streaming-read-append-overwrite``); otherwise it has no changes.
        """
        if self.reads_overwrite(snapshot):
            return self.overwrite(snapshot)
        if snapshot.commit_kind is not CommitKind.APPEND:
            return ChangedFiles(snapshot)
        # Without a producer, a long-lived changelog keeps these files after the snapshot expires.
        is_kept = self.uses_delta(snapshot)
        with explaining_expiry(self._handle, snapshot, changes=is_kept):
            return ChangedFiles(snapshot, tuple(self._delta_files(snapshot)), is_kept)

    def changelog(self, snapshot: Snapshot) -> ChangedFiles:
        """Return the changelog files of an APPEND or COMPACT snapshot.

        An OVERWRITE snapshot is treated as in ``delta``. Return the same as ``delta`` if
        ``uses_delta`` is True for the snapshot, or if its rows were written before
        ``changelog-producer=input`` was set. Raise NotFoundError if an expiry deleted the
        changelog.
        """
        if self.reads_overwrite(snapshot):
            return self.overwrite(snapshot)
        if self.uses_delta(snapshot) or self.is_from_before(snapshot):
            return self.delta(snapshot)
        if snapshot.commit_kind not in _CARRY_CHANGELOG:
            return ChangedFiles(snapshot)
        with explaining_expiry(self._handle, snapshot, changes=True):
            return ChangedFiles(snapshot, tuple(self._entries(snapshot, ListKind.CHANGELOG)))

    def overwrite(self, snapshot: Snapshot) -> ChangedFiles:
        """Return the files that an OVERWRITE snapshot deleted and added, and the files that it
        kept in the same buckets.

        For append tables, return only the added files.
        """
        with explaining_expiry(self._handle, snapshot):
            if not self._handle.schema.primary_keys:
                return ChangedFiles(snapshot, tuple(self._delta_files(snapshot)), is_kept=False)
            changed = self._entries(snapshot, ListKind.DELTA, with_deleted=True)
            live = partial(self._live_files, snapshot)
            entries = with_kept_files(self._handle, snapshot, changed, live)
            return ChangedFiles(snapshot, tuple(entries), is_kept=False, is_overwrite=True)

    def rows(self, found: ChangedFiles) -> Iterator[pa.RecordBatch]:
        """Stream the rows of the files ``found``, each with its row kind."""
        with explaining_expiry(self._handle, found.snapshot, changes=found.is_kept):
            if found.is_overwrite:
                for part in found.parts():
                    args = self._handle, part.snapshot, part.entries, self._asked
                    yield from (batch for batch in overwritten_rows(*args) if batch.num_rows)
                return
            yield from self._rows(found.snapshot, found.entries)

    def is_from_before(self, snapshot: Snapshot) -> bool:
        """Return True if ``changelog-producer=input`` was set after the rows of the snapshot were
        written.

        Then the changes of the snapshot are only in the files that it added. Its schema can be
        newer than its rows, because each commit takes the newest schema. Return False for any other
        producer: the changelog of a later compaction may deliver the rows.
        """
        handle = self._handle
        has_changelog = snapshot.changelog_manifest_list is not None
        if has_changelog or self._producer(snapshot.schema_id) != _AS_WRITTEN:
            return False
        producer = _producer_in(self._schema(snapshot.schema_id).options)
        path = handle.layout.manifest(snapshot.delta_manifest_list)
        if producer not in (NO_PRODUCER, _AS_WRITTEN) or not handle.storage.exists(path):
            return False
        return producer == NO_PRODUCER or bool(self.delta(snapshot).entries)

    def _delta_files(self, snapshot: Snapshot) -> list[ManifestEntry]:
        """Return the files that a commit added, sorted by sequence number within each bucket.

        With a primary key, only files of level 0 are returned.
        """
        found = self._entries(snapshot, ListKind.DELTA)
        if self._handle.schema.primary_keys:
            found = [entry for entry in found if entry.file.level == 0]
        groups: dict[tuple[bytes, int], list[ManifestEntry]] = {}
        for entry in found:
            groups.setdefault((entry.partition, entry.bucket), []).append(entry)
        return [
            entry
            for group in groups.values()
            for entry in sorted(group, key=lambda entry: entry.file.min_sequence_number)
        ]

    def _rows(
        self, snapshot: Snapshot, entries: Sequence[ManifestEntry]
    ) -> Iterator[pa.RecordBatch]:
        files = DataFiles(self._handle, snapshot, DeletedRows(self._handle, ()))
        is_keyed, asked = bool(self._handle.schema.primary_keys), self._asked
        for entry in entries:
            if is_keyed:
                shaped = partial(asked.of_stored, source=f"data file {entry.file.file_name}")
                stored = map(shaped, files.key_values(entry, asked.fields))
            else:
                stored = map(asked.inserted, files.rows(entry, asked.fields))
            yield from (batch for batch in stored if batch.num_rows)

    def _manifests(self, snapshot: Snapshot, which: ListKind) -> list[ManifestMeta]:
        storage, layout = self._handle.storage, self._handle.layout
        try:
            return manifests_of(storage, layout, snapshot, which)
        except CorruptTableError:
            if which is not ListKind.CHANGELOG or not self._may_have_expired(snapshot):
                raise
        raise NotFoundError(
            f"the changes of snapshot {snapshot.id} of {self._handle.uri} have expired: a tag "
            "keeps the rows of a snapshot, not its changes. Read later changes, or start from a "
            "full scan"
        )

    def _may_have_expired(self, snapshot: Snapshot) -> bool:
        """Return True if an expiry may have deleted the changelog list of the snapshot.

        This is so if the list is missing, and the snapshot either is the oldest or has expired
        without a long-lived changelog.
        """
        storage, layout = self._handle.storage, self._handle.layout
        first = min(snapshot_ids(storage, layout), default=snapshot.id)
        if snapshot.id > first or (
            snapshot.id < first and snapshot.id in changelog_ids(storage, layout)
        ):
            return False
        return has_expired_changes(storage, layout, snapshot)

    def _has_changes(self, snapshot: Snapshot, files: ManifestColumns, which: ListKind) -> Mask:
        """Return a mask of the files whose rows are changes.

        Files of postponed rows are included only if the table has no changelog producer: otherwise
        a later changelog has their rows.
        """
        has_changes: Mask = files.bucket.numbers >= 0
        if which is ListKind.DELTA and self.uses_delta(snapshot):
            has_changes |= files.bucket.numbers == POSTPONE_BUCKET
        return has_changes

    def _entries(
        self, snapshot: Snapshot, which: ListKind, *, with_deleted: bool = False
    ) -> list[ManifestEntry]:
        """Return the ADD entries of files that may have rows meeting the condition.

        ``with_deleted`` includes the DELETE entries.
        """
        handle, pruner = self._handle, self._pruner()
        require_schema_of(handle.storage, handle.layout, snapshot, known=handle.schema.id)
        manifests = pruner.pick_manifests(self._manifests(snapshot, which))
        read = read_manifests(handle.storage, handle.layout, manifests)
        columns = read.filter(self._has_changes(snapshot, read, which))
        if not with_deleted:
            columns = columns.filter(~np.asarray(columns.is_delete))
        with naming_file(handle, snapshot, columns, "_PARTITION", pruner.by_place):
            columns = columns.filter(pruner.by_place(columns))
        require_new_rows(handle, snapshot, columns)
        with naming_file(handle, snapshot, columns, "the statistics", pruner.by_statistics):
            return columns.filter(pruner.by_statistics(columns)).entries()

    def _live_files(self, snapshot: Snapshot, partitions: Collection[bytes]) -> list[ManifestEntry]:
        """Return the live files in ``partitions`` that may have rows meeting the condition."""
        if not partitions:
            return []
        handle, pruner = self._handle, self._pruner()
        types = [field.type for field in partition_fields(handle.schema)]
        manifests = [
            each
            for each in pruner.pick_manifests(manifests_of(handle.storage, handle.layout, snapshot))
            if may_contain_any(each.partition_stats, partitions, types)
        ]
        read = read_manifests(handle.storage, handle.layout, manifests)
        wanted = pa.array(partitions, pa.large_binary())
        is_there = pc.is_in(read.partition.to_arrow(), wanted).to_numpy(zero_copy_only=False)
        found = read.filter(is_there & self._has_changes(snapshot, read, ListKind.DELTA))
        live = found.take(live_rows(found, f"snapshot {snapshot.id} of {handle.uri}"))
        return live.filter(pruner.by_place(live) & pruner.by_statistics(live)).entries()

    def _pruner(self) -> EntryPruner:
        where = self._asked.where
        conditions = () if where is None else where.conditions()
        return EntryPruner(self._handle.schema, conditions, None, self._schema)
