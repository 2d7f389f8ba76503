# SPDX-License-Identifier: Apache-2.0
"""Publishes the snapshots of a Paimon table as Iceberg metadata, up to the newest snapshot.

Each change is a metadata file with the next number, and only one publication can create it. So a
repeated call publishes nothing twice, and calls at the same time continue each other's work. If the
published history differs from the history of the table, the table is published from scratch:
the newest snapshot, and as many older ones as ``iceberg.publish-history`` allows.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from functools import partial

import pyarrow as pa

from lakeformat.errors import CommitConflictError, CorruptTableError
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.manifest_list import read_manifest_list
from lakeformat.iceberg.metadata.partition_type import partition_type
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.metadata.updates import following
from lakeformat.iceberg.partition_spec import FIRST_FIELD_ID
from lakeformat.iceberg.write.kept_entries import KeptEntries
from lakeformat.iceberg.write.manifest_files import ManifestFiles
from lakeformat.iceberg.write.new_entries import delete_files
from lakeformat.paimon.handle import TableHandle, with_newest_schema
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import (
    latest_snapshot,
    read_snapshot_if_present,
)
from lakeformat.paimon.read.plan import naming_partition
from lakeformat.paimon.table import Table
from lakeformat.publish.deleted_rows import DeletedRows
from lakeformat.publish.entries import FileEntries
from lakeformat.publish.format_version import HAS_ROW_IDS, refuse_downgrade, upgraded
from lakeformat.publish.history import kept_history
from lakeformat.publish.kept_snapshots import names_in, unneeded_files, with_kept_snapshots
from lakeformat.publish.next_state import NextState
from lakeformat.publish.own_files import has_intact_manifests, names_own_files, reads_manifests
from lakeformat.publish.place import location_of_table, versions_of
from lakeformat.publish.properties import PROPERTIES, protected
from lakeformat.publish.published_deletes import PublishedDeletes
from lakeformat.publish.published_schemas import PublishedSchemas
from lakeformat.publish.published_table import require_published_table
from lakeformat.publish.rebuild import Rebuild, with_log_of
from lakeformat.publish.report import PublishReport
from lakeformat.publish.requirements import require_publishable
from lakeformat.publish.returned_state import is_rolled_back, published_snapshot, returned_to
from lakeformat.publish.schemas import iceberg_spec
from lakeformat.publish.targets.entry import Targets
from lakeformat.publish.targets.followers import Followers, entries_of, targets_of
from lakeformat.publish.versions import Newest
from lakeformat.publish.visible_files import shows_such_files
from lakeformat.storage.creation_proof import ProvesCreation
from lakeformat.tables.kept_files import kept_if_published
from lakeformat.tables.table import offering_arguments
from lakeformat.types.count_text import counted

__all__ = ["publish_head", "publish_table"]

_log = logging.getLogger(__name__)
_MOST_LOST = 20
"""After more lost attempts than this, ``CommitConflictError`` is raised.

An attempt is lost if another publication creates the next metadata file first.
"""


@offering_arguments
def publish_table(table: Table) -> PublishReport:
    """Publish the snapshots of a Paimon table as Iceberg metadata, up to the newest snapshot.

    The table must have the option ``metadata.iceberg.storage``, such as ``table-location``. Each
    commit of this library publishes by itself, unless ``iceberg.publish-mode`` is ``async``. Call
    this function after other commits, or after a warning that a publication failed. You can repeat
    it, and run it several times at once. Raise ``InvalidRequestError`` if the table does not have
    the option, and ``UnsupportedError`` if it cannot be published.
    """
    handle = require_published_table(table)
    return publish_head(handle, targets_of(handle), follows_upkeep=True)


def publish_head(
    handle: TableHandle, targets: Targets | None, *, follows_upkeep: bool
) -> PublishReport:
    """Publish the snapshots of a table or branch up to its newest one, and update its catalogs.

    With ``follows_upkeep`` also publish a change of tags or an expiry of snapshots. Raise
    ``UnsupportedError`` if the table cannot be published, and ``CommitConflictError`` if other
    publications were first in too many attempts.
    """
    return _Publication(with_newest_schema(handle), targets, follows_upkeep=follows_upkeep).run()


class _Publication:
    def __init__(
        self, handle: TableHandle, targets: Targets | None, *, follows_upkeep: bool
    ) -> None:
        self._take(handle)
        self._follows_upkeep = follows_upkeep
        self._versions = versions_of(handle)
        entries = entries_of(handle, targets)
        self._followers = Followers(entries, self._versions, handle.environment, handle.argument)
        self._memory = KeptEntries()
        self._published: list[int] = []
        self._rebuilt = False
        self._updated = False
        self._upgraded = False

    def _take(self, handle: TableHandle) -> None:
        if handle.options.publishes_iceberg:
            require_publishable(handle.schema)
        self._handle = handle
        self._version = handle.options.iceberg_format_version
        self._schemas = PublishedSchemas(handle, self._version)

    def _take_schema_of(self, snapshot: Snapshot) -> None:
        if snapshot.schema_id > self._handle.schema.id:  # the schema has changed meanwhile
            self._take(with_newest_schema(self._handle))

    def run(self) -> PublishReport:
        handle = self._handle
        if isinstance(self._versions.storage, ProvesCreation):
            self._versions.storage.prove_creation(self._versions.path(1))
        lost, known = 0, None
        while (head := latest_snapshot(handle.storage, handle.layout)) is not None:
            self._take_schema_of(head)
            if not self._handle.options.publishes_iceberg:  # switched off meanwhile
                break
            found = known or self._versions.look()
            if found.loaded is not None:
                refuse_downgrade(found.loaded.metadata, self._handle)
            base = self._base(found, head)
            if base is not None and _number(base) == head.id:
                kept = self._kept(base) if self._follows_upkeep else base.metadata
                if kept is base.metadata:
                    self._versions.point_to(base, None, must=self._follows_upkeep)
                    self._follow(base)
                    return self._report(base)
                made = self._with_upkeep(base, kept, found, head)
            else:
                made = self._publish(found, base, head)
            known = None if made is None else Newest(made, found.next_number + 1)
            lost += made is None
            if lost > _MOST_LOST:
                raise CommitConflictError(
                    f"this publication of {handle.uri} failed, because in {lost} attempts another "
                    f"publication of the table was faster; run `lake publish {handle.argument}` "
                    "again"
                )
        return self._report(None)

    def _follow(self, newest: LoadedMetadata) -> None:
        """Point the catalogs to ``newest``, then delete metadata files older than those in its log.

        Do nothing without catalogs, because then ``point_to`` has already deleted such files.
        """
        if self._followers:
            self._followers.show()
            self._versions.delete_unlisted(newest)

    def _base(self, found: Newest, head: Snapshot) -> LoadedMetadata | None:
        """Return the found metadata if later snapshots can be published on it, else None.

        The metadata must be of this table and name only files of its publication. If the table was
        rolled back to ``head``, the metadata must have ``head``. Otherwise the table must still
        have the newest snapshot of the metadata. The setting of deletion vectors must be unchanged.
        If ``head`` is the newest published snapshot, the metadata must have the highest file
        number, so that readers find it.
        """
        newest = found.loaded
        if newest is None or newest.metadata.location.rstrip("/") != self._versions.location:
            return None
        if not names_own_files(newest.metadata) or is_rolled_back(newest.metadata):
            self._warn_of(newest)
            return None
        handle, number = self._handle, min(_number(newest), head.id)
        ours = read_snapshot_if_present(handle.storage, handle.layout, number)
        shown = None if ours is None else published_snapshot(newest.metadata, ours)
        if shown is None or not shows_such_files(shown.summary, handle.schema):
            return None
        if _number(newest) == head.id and found.is_behind_another:
            return None
        is_read_later = _number(newest) != head.id or not self._follows_upkeep
        return newest if is_read_later or self._manifests(found) is not None else None

    def _manifests(self, found: Newest) -> pa.Table | None:
        """Return the manifest list of the found metadata.

        Log a warning and return None if the list is damaged, or if it names a manifest that no
        publication wrote or that cannot be read.
        """
        base = found.loaded
        assert base is not None  # ``_base`` found it, with its snapshot
        shown = base.metadata.current_snapshot
        assert shown is not None
        with suppress(CorruptTableError):
            manifests = read_manifest_list(base.places, shown)
            if has_intact_manifests(base, manifests, found.sizes):
                return manifests
        self._warn_of(base)
        return None

    def _warn_of(self, found: LoadedMetadata) -> None:
        _log.warning(
            "%s is damaged, lacks a manifest, was rolled back by another program, or names files "
            "that no publication wrote, so %s is published from scratch",
            *(found.metadata_file, self._handle.uri),
        )

    def _publish(
        self, found: Newest, base: LoadedMetadata | None, head: Snapshot
    ) -> LoadedMetadata | None:
        """Publish the snapshot after ``base``; publish from scratch if ``base`` is None, or if this
        snapshot cannot follow it.

        If ``base`` has a later snapshot than ``head``, publish the rollback to ``head``. Return
        None if another publication was first.
        """
        handle, snapshot = self._handle, None
        if base is not None and _number(base) > head.id:
            return self._return_to(base, head, found.next_number)
        if base is not None:
            snapshot = read_snapshot_if_present(handle.storage, handle.layout, _number(base) + 1)
            self._take_schema_of(snapshot or head)
        if base is None or snapshot is None or self._schemas.are_redefined(base.metadata, snapshot):
            return self._rebuild(found, head)
        if (manifests := self._manifests(found)) is None:
            return self._rebuild(found, head)
        before = protected(upgraded(base.metadata, self._version))
        metadata = self._schemas.added_to(before, snapshot)
        started = LoadedMetadata(base.places, metadata, base.path)
        kept = self._memory if self._memory or snapshot.id < head.id else None
        state = self._state(started, snapshot, kept)
        try:
            with kept_if_published(state.discard):
                with naming_partition(handle, snapshot):
                    after = state.after_base(manifests)
                made = self._versions.create(found.next_number, after)
        except CorruptTableError:
            if reads_manifests(base, manifests):  # a file of the Paimon table is damaged
                raise
            self._warn_of(base)
            return self._rebuild(found, head)
        if made is None:
            state.discard()
            return None
        self._published.append(snapshot.id)
        self._versions.point_to(made, None if self._followers else base)
        return made

    def _return_to(
        self, base: LoadedMetadata, head: Snapshot, number: int
    ) -> LoadedMetadata | None:
        """Publish the rollback of the table to ``head``; None if another publication was first."""
        shown = published_snapshot(base.metadata, head)
        assert shown is not None  # as ``_base`` found it
        returned = returned_to(base.metadata, shown, self._handle.schema.id)
        made = self._changed(base, returned, number)
        self._updated |= made is not None
        return made

    def _changed(
        self, base: LoadedMetadata, metadata: TableMetadata, number: int, *, must: bool = False
    ) -> LoadedMetadata | None:
        """Publish changed metadata without a new snapshot; None if another change was first."""
        now = self._handle.environment.now_millis()
        changed = following(metadata, base.metadata, base.metadata_file, now)
        made = self._versions.create(number, changed)
        if made is not None:
            self._versions.point_to(made, None if self._followers else base, must=must)
        return made

    def _rebuild(self, found: Newest, head: Snapshot) -> LoadedMetadata | None:
        """Publish from scratch: the newest snapshot, and older ones that the table still has.

        Return None if another publication was first.
        """
        versions, before = self._versions, found.loaded
        versions.storage.make_directory(versions.path(1).rpartition("/")[0])
        first = self._schemas.added_to(self._first(before, head), head, before)
        state = partial(self._state, kept=self._memory)
        every = Rebuild(LoadedMetadata(versions.places, first, versions.path(0)), state)
        history = kept_history(self._handle, head, lambda number: self._schemas.of(number)[0])
        with kept_if_published(every.discard):
            metadata = with_kept_snapshots(every.metadata(history), self._handle)
            if before is not None and before.metadata.location.rstrip("/") == versions.location:
                metadata = with_log_of(before, metadata)
            made = versions.create(found.next_number, metadata)
        if made is None:
            every.discard()
            return None
        self._published += [each.snapshot_id for each in metadata.snapshots]
        self._rebuilt = True
        self._follows_upkeep = True  # an expiry may have begun since the history was read
        versions.point_to(made, None)
        return made

    def _kept(self, current: LoadedMetadata) -> TableMetadata:
        """Return the current metadata with the tags, snapshots, properties and format version of
        the table; the same object if nothing differs.
        """
        metadata = protected(upgraded(current.metadata, self._version))
        return with_kept_snapshots(metadata, self._handle)

    def _with_upkeep(
        self, current: LoadedMetadata, kept: TableMetadata, found: Newest, head: Snapshot
    ) -> LoadedMetadata | None:
        """Publish a change of tags, an expiry or a format version; None if another publication
        was first.

        After the publication, delete the files that no snapshot needs any more. Publish from
        scratch if a manifest of a kept snapshot is damaged.
        """
        self._followers.show()  # a catalog that does not answer keeps the files it needs
        try:
            unneeded = unneeded_files(current, kept)
        except CorruptTableError:
            self._warn_of(current)
            return self._rebuild(found, head)
        made = self._changed(current, kept, found.next_number, must=True)
        if made is None:
            return None
        self._followers.show()
        delete_files(current.places, unneeded)
        self._updated |= names_in(kept) != names_in(current.metadata)
        self._upgraded |= kept.format_version != current.metadata.format_version
        return made

    def _first(self, newest: LoadedMetadata | None, head: Snapshot) -> TableMetadata:
        """Return metadata without snapshots, with the UUID of the published table if there is
        one.
        """
        handle, before = self._handle, None if newest is None else newest.metadata
        spec = iceberg_spec(handle.schema)
        return TableMetadata(
            format_version=self._version,
            table_uuid=handle.environment.new_id() if before is None else before.table_uuid,
            location=self._versions.location,
            last_updated_ms=0,
            last_column_id=0 if before is None else before.last_column_id,
            schemas=(),
            current_schema_id=head.schema_id,
            partition_specs=(spec,),
            default_spec_id=0,
            last_partition_id=FIRST_FIELD_ID - 1 + len(spec.fields),
            last_sequence_number=head.id - 1,
            properties=PROPERTIES,
            next_row_id=self._versions.next_row_id() if self._version >= HAS_ROW_IDS else None,
        )

    def _state(
        self, base: LoadedMetadata, snapshot: Snapshot, kept: KeptEntries | None
    ) -> NextState:
        handle, metadata = self._handle, base.metadata
        partition = partition_type(metadata, metadata.partition_specs[0])
        entries = FileEntries(handle, location_of_table(handle), partition, self._schemas.of)
        files = ManifestFiles(base, handle.environment, kept)
        deletes = PublishedDeletes(base, handle.environment)
        deleted = DeletedRows(handle, snapshot, entries, deletes)
        return NextState(handle, base, snapshot, files, entries, deleted)

    def _report(self, current: LoadedMetadata | None) -> PublishReport:
        handle, published = self._handle, tuple(self._published)
        off = not handle.options.publishes_iceberg
        reason = "the table is not published any more" if off else "the table has no snapshot"
        if current is not None:
            reason = f"the Iceberg metadata shows snapshot {_number(current)}"
            now = f"; published {counted(len(published), 'snapshot')}"
            reason += now if published else " already"
        if self._rebuilt:
            reason += (
                f"; the published history was made from scratch, from snapshot {published[0]} on"
            )
        if self._updated:
            reason += "; a change of tags, an expiry or a rollback was published"
        if self._upgraded:
            reason += f"; the metadata's format version is now {self._version}"
        if self._followers.moved:
            reason += f"; shown now by {', '.join(self._followers.moved)}"
        report = PublishReport(
            table=handle.uri,
            snapshot_id=None if current is None else _number(current),
            published=published,
            rebuilt=self._rebuilt,
            updated=self._updated,
            catalogs=self._followers.moved,
            metadata_file=None if current is None else self._versions.storage.uri(current.path),
            reason=reason,
        )
        _log.info("publication of %s: %s", handle.name, reason)
        return report


def _number(metadata: LoadedMetadata) -> int:
    number = metadata.metadata.current_snapshot_id
    return -1 if number is None else number
