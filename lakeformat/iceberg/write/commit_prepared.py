# SPDX-License-Identifier: Apache-2.0
"""Publishes the files of commit messages, or deletes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from lakeformat.errors import InvalidRequestError, LakeError
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.partition_type import partition_type
from lakeformat.iceberg.metadata.snapshot import Snapshot
from lakeformat.iceberg.reachable_files import live_files, manifests_of
from lakeformat.iceberg.write.append import append_of, checked_properties, earlier_commit
from lakeformat.iceberg.write.foreign_entries import (
    checked_entries,
    files_of,
    refuse_published,
    require_present,
)
from lakeformat.iceberg.write.message import IcebergCommitMessage
from lakeformat.iceberg.write.new_entries import new_entries
from lakeformat.iceberg.write.overwrite import (
    RowsToOverwrite,
    check_overwritten,
    replacement,
)
from lakeformat.iceberg.write.publish import Base, FileChange, Produce, publish_change
from lakeformat.iceberg.write.report import WriteReport, write_report
from lakeformat.storage.location import one_spelling
from lakeformat.tables.commit_id import CommitId

__all__ = [
    "PublishedOnce",
    "abort_messages",
    "commit_messages",
    "delete_prepared",
    "no_entries",
    "unpublished_entries",
    "with_unpublished",
]

_ADDS_NO_ROWS = ("replace", "delete")


def commit_messages(
    handle: TableHandle,
    messages: Sequence[IcebergCommitMessage],
    overwritten: RowsToOverwrite | None,
    *,
    commit: CommitId | None,
    properties: Mapping[str, str] | None,
) -> WriteReport:
    """Publish the files of messages in one snapshot.

    A repeated call with the same ``commit`` publishes nothing again. Raise ``InvalidRequestError``
    for messages that do not fit the table, and for files that are missing or published already.
    After an error the files are kept: abort the messages, or commit them again.
    """
    given = checked_properties(properties)
    handle.pointer.require_writable()
    loaded = handle.load()
    entries = checked_entries(loaded, handle.uri, messages)
    if (earlier := earlier_commit(handle, loaded, commit)) is not None:
        report = write_report(handle.uri, earlier)
        return with_unpublished(loaded, report, earlier.snapshot, entries)
    change = _change(handle, loaded, entries, overwritten, commit)
    require_present(loaded, handle.uri, entries)
    once = PublishedOnce(handle.uri, change, {each.base_snapshot for each in messages}, entries)
    published = publish_change(handle, once, commit=commit, properties=given, planned=loaded)
    report = write_report(handle.uri, published)
    if not published.is_replayed:
        return report
    return with_unpublished(handle.load(), report, published.snapshot, entries)


def abort_messages(handle: TableHandle, messages: Sequence[IcebergCommitMessage]) -> list[str]:
    """Delete the files of messages; return the URIs of files that could not be deleted.

    Raise ``InvalidRequestError`` if a snapshot has one of the files; then no file is deleted.
    """
    return delete_prepared(*unpublished_entries(handle, messages))


def unpublished_entries(
    handle: TableHandle, messages: Sequence[IcebergCommitMessage]
) -> tuple[LoadedMetadata, list[pa.Table]]:
    """Return the newest metadata and the manifest entries of messages.

    Raise ``InvalidRequestError`` if a snapshot has one of the files.
    """
    loaded = handle.load()
    entries = checked_entries(loaded, handle.uri, messages)
    snapshots = loaded.metadata.snapshots
    refuse_published(loaded, handle.uri, entries, manifests_of(loaded, snapshots).values())
    return loaded, entries


def delete_prepared(loaded: LoadedMetadata, entries: Sequence[pa.Table]) -> list[str]:
    """Delete the files of manifest entries; return the URIs of files that could not be deleted."""
    left: list[str] = []
    for address in files_of(entries):
        storage, path = loaded.places.place(address)
        try:
            storage.delete(path)
        except LakeError:
            left.append(address)
    return left


@dataclass(frozen=True, slots=True)
class PublishedOnce:
    """Makes a change; raises ``InvalidRequestError`` if one of its files is already in a snapshot.

    A snapshot is searched only if it was made after the first writer of the files began. If some
    of these snapshots may have expired, the files of all snapshots are searched.
    """

    uri: str
    produce: Produce
    bases: set[int]
    entries: Sequence[pa.Table]

    def __call__(self, base: Base) -> FileChange | None:
        newer, is_known = self._newer(base)
        ids = {each.snapshot_id for each in newer}
        # Each snapshot's own manifests are read, because a later commit may have rewritten the
        # files.
        adding = (each for each in newer if each.operation not in _ADDS_NO_ROWS)
        listed = manifests_of(base.loaded, adding)
        manifests = [
            each for each in listed.values() if each["added_snapshot_id"][0].as_py() in ids
        ]
        if not is_known:
            # A later snapshot may have replaced a file that an expired one added.
            manifests += manifests_of(base.loaded, base.loaded.metadata.snapshots).values()
        refuse_published(base.loaded, self.uri, self.entries, manifests)
        return self.produce(base)

    def _newer(self, base: Base) -> tuple[list[Snapshot], bool]:
        """Return the snapshots since the first writer began, and True if the list is complete.

        For each writer, the message names the snapshot that was the newest when the writer began.
        Return False if the history lacks one of these: later snapshots may have expired, too.
        """
        found, waiting = list[Snapshot](), {*self.bases}
        head = None if base.parent is None else base.parent.snapshot_id
        for snapshot in base.loaded.metadata.ancestry(head):
            waiting.discard(snapshot.snapshot_id)
            if not waiting:
                return found, True
            found.append(snapshot)
        return found, False


def _change(
    handle: TableHandle,
    loaded: LoadedMetadata,
    entries: Sequence[pa.Table],
    overwritten: RowsToOverwrite | None,
    commit: CommitId | None,
) -> Produce:
    if overwritten is None:
        return append_of(handle, commit)(entries)
    check_overwritten(loaded.metadata, overwritten)
    if len(entries) > 1:
        raise InvalidRequestError(
            f"the partition spec of {handle.uri} was changed after some of these files were "
            "written, so they cannot replace rows. Nothing was published: write the rows again"
        )
    [of_spec] = entries or [no_entries(loaded)]
    return replacement(loaded.metadata, overwritten, of_spec, is_recorded=commit is not None)


def no_entries(loaded: LoadedMetadata) -> pa.Table:
    """Return a table without entries."""
    spec = loaded.metadata.spec_of(loaded.metadata.default_spec_id)
    return new_entries([], spec.spec_id, partition_type(loaded.metadata, spec), 0)


def with_unpublished(
    loaded: LoadedMetadata,
    report: WriteReport,
    snapshot: Snapshot | None,
    entries: Sequence[pa.Table],
) -> WriteReport:
    """Return ``report`` with the number of files that are not published.

    ``snapshot`` is the result of another attempt with the same commit identity. A file in
    ``entries`` is not published if this snapshot did not add it.
    """
    assert snapshot is not None
    own = [
        each
        for each in manifests_of(loaded, [snapshot]).values()
        if each["added_snapshot_id"][0].as_py() == snapshot.snapshot_id
    ]
    published = live_files(loaded, own)
    missing = [path for path in files_of(entries) if one_spelling(path) not in published]
    return replace(report, unpublished_files=len(missing))
