# SPDX-License-Identifier: Apache-2.0
"""Publishes a snapshot that is not in the history of a branch, as Java's ``cherrypick`` does.

For example, the snapshot was staged with a ``wap.id``, or it belongs to another branch. If the
parent of the chosen snapshot is the newest snapshot of the target branch, the target branch moves
to the chosen snapshot. Otherwise a new snapshot adds the files that the chosen snapshot appended.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.errors import InvalidRequestError, NotFoundError, UnsupportedError
from lakeformat.iceberg.branch_history import history_of, no_snapshot
from lakeformat.iceberg.choice import snapshot_id_of
from lakeformat.iceberg.commit.commit import commit_metadata
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.manifest import ADDED, DATA, read_entries
from lakeformat.iceberg.metadata.manifest_list import read_manifest_list
from lakeformat.iceberg.metadata.manifest_writer import ManifestWriter
from lakeformat.iceberg.metadata.snapshot import Reference, Snapshot
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.metadata.updates import set_reference
from lakeformat.iceberg.reachable_files import live_files
from lakeformat.iceberg.write.counts import FileCounts, partition_count
from lakeformat.iceberg.write.foreign_entries import files_of
from lakeformat.iceberg.write.manifest_merge import merge_manifests
from lakeformat.iceberg.write.new_entries import with_snapshot
from lakeformat.iceberg.write.publish import Base, FileChange, publish_change
from lakeformat.storage.location import one_spelling
from lakeformat.tables.position import AnyPosition
from lakeformat.tables.report import Report

__all__ = ["CherryPickReport", "cherry_pick"]

_SOURCE, _WAP, _PUBLISHED_WAP = "source-snapshot-id", "wap.id", "published-wap-id"


@dataclass(frozen=True, slots=True, kw_only=True)
class CherryPickReport(Report):
    """The report of a cherry-pick."""

    table: str
    source: int
    """The id of the chosen snapshot."""
    snapshot_id: int
    """The id of the snapshot, in the history of the branch, that has the rows of ``source``."""
    action: str
    """``added`` if a new snapshot adds the rows; ``moved`` if the branch moved to the chosen
    snapshot; ``kept`` if the branch already had the rows.
    """
    reason: str
    """The outcome in one sentence, for the log."""


def cherry_pick(
    handle: TableHandle, snapshot: AnyPosition | None, wap_id: str | None
) -> CherryPickReport:
    """Publish a snapshot on the branch of the handle; repeating the call changes nothing.

    Give either ``snapshot`` or ``wap_id``, the ``wap.id`` in the summary of the snapshot. Raise
    ``NotFoundError`` if the snapshot does not exist. Raise ``InvalidRequestError`` if the branch
    already has another snapshot with the same ``wap.id``, or has only some of the files of the
    snapshot. Raise ``UnsupportedError`` if the branch cannot move to the snapshot, and the snapshot
    does more than append files.
    """
    if (snapshot is None) == (wap_id is None):
        given = "neither" if snapshot is None else "both"
        raise InvalidRequestError(
            f"pass either snapshot or wap_id, to choose the snapshot to publish; got {given}"
        )
    handle.pointer.require_writable()
    loaded = handle.load()
    source = _source(handle, loaded, snapshot, wap_id)
    if commit_metadata(handle, partial(_moved, handle, source)).is_published:
        return _report(handle, source, source.snapshot_id, "moved")
    adding = _Addition(handle, source)
    published = publish_change(handle, adding, commit=None)
    if adding.earlier is not None:
        return _report(handle, source, adding.earlier, "kept")
    assert published.snapshot is not None
    return _report(handle, source, published.snapshot.snapshot_id, "added")


@dataclass(slots=True)
class _Addition:
    """Adds to a branch the files that another snapshot appended."""

    handle: TableHandle
    source: Snapshot
    earlier: int | None = None
    """The id of the snapshot, in the history of the branch, that already has the rows; None if
    there is none.
    """

    def __call__(self, base: Base) -> FileChange | None:
        metadata = base.loaded.metadata
        self.earlier = _earlier(self.handle, metadata, self.source)
        if self.earlier is not None:
            return None
        if metadata.snapshot(self.source.snapshot_id) is None:  # an expiry deletes its files
            raise no_snapshot(self.handle.uri, self.source.snapshot_id)
        entries = _appended(self.handle, base.loaded, self.source)
        if _has_files(self.handle, base, self.source, entries):
            assert base.parent is not None
            self.earlier = base.parent.snapshot_id
            return None
        manifests = [_manifest(base, spec_id, some) for spec_id, some in entries.items()]
        return FileChange(
            "append",
            merge_manifests(
                base.loaded,
                pa.concat_tables([*manifests, base.manifests]),
                base.files,
                base.snapshot,
            ),
            FileCounts.of(entries.values()),
            partitions=partition_count(entries.values()),
            more=_origin(self.source),
        )


def _source(
    handle: TableHandle, loaded: LoadedMetadata, snapshot: AnyPosition | None, wap_id: str | None
) -> Snapshot:
    """Return the snapshot to publish, chosen by ``wap_id``; if ``wap_id`` is None, by ``snapshot``.

    Raise ``NotFoundError`` if there is no such snapshot.
    """
    if wap_id is not None:
        staged = [each for each in loaded.metadata.snapshots if each.summary.get(_WAP) == wap_id]
        if not staged:
            raise NotFoundError(
                f"{handle.uri} has no snapshot with the wap.id {wap_id!r}: it may have expired; "
                "system_table('snapshots') lists all snapshots with their summaries"
            )
        return staged[-1]
    assert snapshot is not None
    history = history_of(loaded.metadata, handle.branch, handle.uri)
    number = snapshot_id_of(loaded, history, snapshot)
    found = loaded.metadata.snapshot(number)
    if found is None:
        raise no_snapshot(handle.uri, number)
    return found


def _moved(handle: TableHandle, source: Snapshot, loaded: LoadedMetadata) -> TableMetadata | None:
    """Return metadata in which the head of the branch is ``source``.

    Return None if the parent of ``source`` is not the head, or if the branch already has the rows.
    """
    metadata, branch = loaded.metadata, handle.branch
    head = metadata.references.get(branch)
    if source.parent_id != (None if head is None else head.snapshot_id):
        return None
    if _earlier(handle, metadata, source) is not None:
        return None
    new = Reference(branch, source.snapshot_id, "branch")
    if head is not None:
        new = replace(head, snapshot_id=source.snapshot_id)
    return set_reference(metadata, new, handle.environment.now_millis())


def _earlier(handle: TableHandle, metadata: TableMetadata, source: Snapshot) -> int | None:
    """Return the id of the snapshot, in the history of the branch, that has the rows of ``source``.

    Return None if there is none.

    Raise ``InvalidRequestError`` if the branch has another snapshot with the same ``wap.id``.
    """
    head = metadata.references.get(handle.branch)
    wap_id = source.summary.get(_WAP)
    for each in metadata.ancestry(None if head is None else head.snapshot_id):
        number = str(source.snapshot_id)
        if each.snapshot_id == source.snapshot_id or each.summary.get(_SOURCE) == number:
            return each.snapshot_id
        if wap_id is not None and wap_id in (each.summary.get(_WAP), _published(each.summary)):
            raise InvalidRequestError(
                f"the wap.id {wap_id!r} of snapshot {number} was published before by snapshot "
                f"{each.snapshot_id} of {handle.uri}, so the rows of snapshot {number} may be in "
                "the table already: compare the rows of both snapshots. If they differ, write the "
                f"rows of snapshot {number} with another wap.id"
            )
    return None


def _published(summary: Mapping[str, str]) -> str | None:
    return summary.get(_PUBLISHED_WAP)


def _appended(handle: TableHandle, loaded: LoadedMetadata, source: Snapshot) -> dict[int, pa.Table]:
    """Return manifest entries for the files that a snapshot added, by spec id.

    Raise ``UnsupportedError`` if the snapshot does more than append data files.
    """
    manifests = read_manifest_list(loaded.places, source)
    own = manifests.filter(pc.equal(manifests.column("added_snapshot_id"), source.snapshot_id))
    if source.operation != "append" or pc.any(pc.not_equal(own.column("content"), 0)).as_py():
        raise UnsupportedError(
            f"snapshot {source.snapshot_id} of {handle.uri} cannot be cherry-picked: its parent is "
            f"not the head of branch {handle.branch!r}, and it does more than append data files "
            f"(operation {source.operation!r}). Write the change again on the branch"
        )
    found = {}
    for spec_id, entries in read_entries(loaded.places, loaded.metadata, own).items():
        is_added = pc.and_(
            pc.equal(entries.column("status"), ADDED),
            pc.equal(entries.column("snapshot_id"), source.snapshot_id),
        )
        some = entries.filter(is_added)
        for name in ("sequence_number", "file_sequence_number", "first_row_id"):
            place = some.schema.get_field_index(name)
            some = some.set_column(place, some.schema.field(place), pa.nulls(len(some), pa.int64()))
        if len(some):
            found[spec_id] = some
    return found


def _has_files(
    handle: TableHandle, base: Base, source: Snapshot, entries: Mapping[int, pa.Table]
) -> bool:
    """Return True if all files of the entries are live in the head of the branch.

    If they are, the snapshot was published before, although the history of the branch no longer
    shows it.
    Raise ``InvalidRequestError`` if only some of the files are live.
    """
    paths = {one_spelling(path): path for path in files_of(entries.values())}
    data = base.manifests.filter(pc.equal(base.manifests.column("content"), DATA))
    there = live_files(base.loaded, [data]).keys() & paths.keys()
    if there and len(there) < len(paths):
        raise InvalidRequestError(
            f"{len(there)} of {len(paths)} files of snapshot {source.snapshot_id} are in branch "
            f"{handle.branch!r} of {handle.uri} already, such as {paths[min(there)]}, so adding "
            "the snapshot would repeat their rows. Probably it was published before, and rows were "
            "deleted or compacted since. Nothing was written: compare the rows of the snapshot "
            "with those of the branch, and write the missing rows with table.write"
        )
    return bool(there)


def _manifest(base: Base, spec_id: int, entries: pa.Table) -> pa.Table:
    writer = ManifestWriter(base.loaded.metadata, base.loaded.metadata.spec_of(spec_id))
    added = partial(with_snapshot, entries, base.snapshot.snapshot_id)
    return base.files.manifest(("picked", spec_id), writer, added, base.snapshot)


def _origin(source: Snapshot) -> dict[str, str]:
    found = {_SOURCE: str(source.snapshot_id)}
    if _WAP in source.summary:
        found[_PUBLISHED_WAP] = source.summary[_WAP]
    return found


def _report(
    handle: TableHandle, source: Snapshot, snapshot_id: int, action: str
) -> CherryPickReport:
    branch, number = handle.branch, source.snapshot_id
    where = "" if snapshot_id == number else f", in snapshot {snapshot_id}"
    reasons = {
        "added": f"added the files of snapshot {number} to branch {branch!r} as snapshot "
        f"{snapshot_id}",
        "moved": f"branch {branch!r} moved to snapshot {number}",
        "kept": f"branch {branch!r} has the rows of snapshot {number} already{where}; no action "
        "needed",
    }
    return CherryPickReport(
        table=handle.uri,
        source=number,
        snapshot_id=snapshot_id,
        action=action,
        reason=reasons[action],
    )
