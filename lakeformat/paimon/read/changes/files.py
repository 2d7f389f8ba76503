"""What one commit changed, as its files say: rows added at level 0, or a changelog."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pyarrow as pa

from lakeformat.errors import CorruptTableError, NotFoundError
from lakeformat.paimon.expiry_race import telling_of_expiry
from lakeformat.paimon.handle import TableHandle, require_allowed
from lakeformat.paimon.layout import POSTPONE_BUCKET
from lakeformat.paimon.metadata.changelog_directory import changelog_ids
from lakeformat.paimon.metadata.expired_changes import has_expired_changes
from lakeformat.paimon.metadata.manifest import (
    ManifestColumns,
    ManifestEntry,
    read_manifests,
)
from lakeformat.paimon.metadata.manifest_columns.columns import Mask
from lakeformat.paimon.metadata.manifest_list import ListKind, ManifestMeta, manifests_of
from lakeformat.paimon.metadata.schema_file import read_schema, require_schema_of
from lakeformat.paimon.metadata.snapshot import CommitKind, Snapshot
from lakeformat.paimon.metadata.snapshot_directory import snapshot_ids
from lakeformat.paimon.options.operation import Operation
from lakeformat.paimon.read.changes.column_updates import require_new_rows
from lakeformat.paimon.read.changes.overwritten import (
    overwritten_buckets,
    overwritten_rows,
    reads_overwrites,
)
from lakeformat.paimon.read.changes.rows import ChangedRows
from lakeformat.paimon.read.data_files import DataFiles
from lakeformat.paimon.read.deletions import DeletedRows
from lakeformat.paimon.read.plan import naming_file
from lakeformat.paimon.read.pruning.entries import EntryPruner
from lakeformat.paimon.schema import TableSchema

__all__ = ["NO_PRODUCER", "ChangeFiles", "ChangedFiles", "changelog_producer"]

_CARRY_CHANGELOG = (CommitKind.APPEND, CommitKind.COMPACT)

NO_PRODUCER, _AS_WRITTEN = "none", "input"


def changelog_producer(handle: TableHandle) -> str:
    """What writes changelog files of a table; this version need not be able to do so itself."""
    return _producer_in(handle.options.to_dict())


def _producer_in(options: Mapping[str, str]) -> str:
    return options.get("changelog-producer", NO_PRODUCER).strip().lower()


@dataclass(frozen=True, slots=True)
class ChangedFiles:
    """The files that tell what a snapshot changed, in the order of their rows."""

    snapshot: Snapshot
    entries: tuple[ManifestEntry, ...] = ()
    is_kept: bool = True
    """Whether a changelog that outlives the snapshot keeps them."""
    is_overwrite: bool = False
    """True if the files of each bucket say together what an overwrite of a keyed table did."""

    @property
    def size_bytes(self) -> int:
        """How large they are."""
        return sum(entry.file.file_size for entry in self.entries)

    def parts(self) -> list[ChangedFiles]:
        """The same files in the smallest parts that can be read one by one."""
        if self.is_overwrite:
            buckets = overwritten_buckets(self.entries)
            return [replace(self, entries=entries) for entries in buckets]
        return [replace(self, entries=(entry,)) for entry in self.entries]


class ChangeFiles:
    """Reads the changes of snapshots of one table, each snapshot on its own."""

    def __init__(self, handle: TableHandle, asked: ChangedRows) -> None:
        require_allowed(handle, Operation.CHANGES)
        self._handle = handle
        self._asked = asked
        self.reads_overwrite = reads_overwrites(handle)
        self._schema: Callable[[int], TableSchema] = cache(
            lambda schema_id: read_schema(handle.storage, handle.layout, schema_id)
        )

    def delta(self, snapshot: Snapshot) -> ChangedFiles:
        """What was written, with the kinds of rows; compactions have none, nor do overwrites
        unless an option asks for them.

        Rows are as they were stored: nobody has merged them with rows of other commits.
        """
        if self.reads_overwrite(snapshot):
            return self.overwrite(snapshot)
        if snapshot.commit_kind is not CommitKind.APPEND:
            return ChangedFiles(snapshot)
        # A changelog that outlives its snapshot keeps these if it has no files of its own.
        is_kept = changelog_producer(self._handle) == NO_PRODUCER
        with telling_of_expiry(self._handle, snapshot, changes=is_kept):
            return ChangedFiles(snapshot, tuple(self._delta_files(snapshot)), is_kept)

    def changelog(self, snapshot: Snapshot) -> ChangedFiles:
        """Its changelog files, if it has any; else those of before there was one."""
        if self.reads_overwrite(snapshot):
            return self.overwrite(snapshot)
        if self._is_from_before(snapshot):
            return self.delta(snapshot)
        if snapshot.commit_kind not in _CARRY_CHANGELOG:
            return ChangedFiles(snapshot)
        with telling_of_expiry(self._handle, snapshot, changes=True):
            return ChangedFiles(snapshot, tuple(self._entries(snapshot, ListKind.CHANGELOG)))

    def overwrite(self, snapshot: Snapshot) -> ChangedFiles:
        """The rows an overwrite took out and put in; of an append table only those it put in."""
        with telling_of_expiry(self._handle, snapshot):
            if not self._handle.schema.primary_keys:
                return ChangedFiles(snapshot, tuple(self._delta_files(snapshot)), is_kept=False)
            entries = self._entries(snapshot, ListKind.DELTA, with_deleted=True)
            return ChangedFiles(snapshot, tuple(entries), is_kept=False, is_overwrite=True)

    def rows(self, found: ChangedFiles) -> Iterator[pa.RecordBatch]:
        """Stream the rows of some files."""
        with telling_of_expiry(self._handle, found.snapshot, changes=found.is_kept):
            if found.is_overwrite:
                for part in found.parts():
                    args = self._handle, part.snapshot, part.entries, self._asked
                    yield from (batch for batch in overwritten_rows(*args) if batch.num_rows)
                return
            yield from self._rows(found.snapshot, found.entries)

    def _is_from_before(self, snapshot: Snapshot) -> bool:
        """Whether nothing tells of its rows but what it added: it had no producer, input is one.

        Other producers may tell of the rows later, in the compaction that finds them at level 0.
        """
        handle = self._handle
        is_untold = snapshot.changelog_manifest_list is None
        if not is_untold or changelog_producer(handle) != _AS_WRITTEN:
            return False
        producer = _producer_in(self._schema(snapshot.schema_id).options)
        path = handle.layout.manifest(snapshot.delta_manifest_list)
        return producer == NO_PRODUCER and handle.storage.exists(path)

    def _delta_files(self, snapshot: Snapshot) -> list[ManifestEntry]:
        """The files a commit added at level 0, those of a bucket in the order of their rows."""
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
                stored = map(asked.of_stored, files.key_values(entry, asked.fields))
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
            f"the changes of snapshot {snapshot.id} of {self._handle.uri} have expired: the tag "
            "that kept it keeps rows alone. Read the changes after it, or begin with all rows"
        )

    def _may_have_expired(self, snapshot: Snapshot) -> bool:
        """Whether it is the first of its branch, or has gone itself, and its list is not there."""
        storage, layout = self._handle.storage, self._handle.layout
        first = min(snapshot_ids(storage, layout), default=snapshot.id)
        if snapshot.id > first or (
            snapshot.id < first and snapshot.id in changelog_ids(storage, layout)
        ):
            return False
        return has_expired_changes(storage, layout, snapshot)

    def _is_told(self, files: ManifestColumns, which: ListKind) -> Mask:
        """Rows that wait for a bucket are told of as written, unless a changelog will tell."""
        is_told: Mask = files.bucket.numbers >= 0
        if which is ListKind.DELTA and changelog_producer(self._handle) == NO_PRODUCER:
            is_told |= files.bucket.numbers == POSTPONE_BUCKET
        return is_told

    def _entries(
        self, snapshot: Snapshot, which: ListKind, *, with_deleted: bool = False
    ) -> list[ManifestEntry]:
        """The files of one list that are added, or also deleted, and may hold rows asked for."""
        handle, where = self._handle, self._asked.where
        require_schema_of(handle.storage, handle.layout, snapshot, known=handle.schema.id)
        conditions = () if where is None else where.conditions()
        pruner = EntryPruner(handle.schema, conditions, None, self._schema)
        manifests = pruner.pick_manifests(self._manifests(snapshot, which))
        read = read_manifests(handle.storage, handle.layout, manifests)
        columns = read.filter(self._is_told(read, which))
        if not with_deleted:
            columns = columns.filter(~np.asarray(columns.is_delete))
        with naming_file(handle, snapshot, columns, "_PARTITION", pruner.by_place):
            columns = columns.filter(pruner.by_place(columns))
        require_new_rows(handle, snapshot, columns)
        with naming_file(handle, snapshot, columns, "the statistics", pruner.by_statistics):
            return columns.filter(pruner.by_statistics(columns)).entries()
