"""The files that a table must have, and its unreferenced ones, counted the slow and simple way."""

from __future__ import annotations

from collections.abc import Iterator

import lakeformat as lake
from lakeformat.paimon.expire.retention import is_decoupled
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.layout import MAIN_BRANCH, TableLayout
from lakeformat.paimon.metadata.branch_directory import branches
from lakeformat.paimon.metadata.changelog_directory import changelog_ids, read_changelog
from lakeformat.paimon.metadata.data_file_meta import FileSource
from lakeformat.paimon.metadata.index_manifest import read_index_manifest
from lakeformat.paimon.metadata.manifest import FileKind, ManifestEntry, live_files
from lakeformat.paimon.metadata.manifest_list import ListKind, read_manifest_list
from lakeformat.paimon.metadata.schema_file import read_schema, schema_ids
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot, snapshot_ids
from lakeformat.paimon.metadata.tag import read_tags
from lakeformat.paimon.partition import partition_path
from lakeformat.storage import FileInfo, Storage
from tests.manifest_entries import entries_in

__all__ = ["files_of_tables", "missing", "needed", "unneeded", "waiting"]

OWN = ("snapshot", "schema", "tag", "consumer", "changelog", "branch")
"""Directories of metadata, whose own files the tests count themselves."""


def unneeded(table: lake.Table) -> set[str]:
    """Files no snapshot, tag or changelog of any branch leads to."""
    return files_of_tables(table) - needed(table) - waiting(table)


def missing(table: lake.Table) -> set[str]:
    """Files one of them leads to that are not there."""
    return needed(table) - files_of_tables(table)


def files_of_tables(table: lake.Table) -> set[str]:
    """Data files, index files, manifests, lists and statistics that are there."""
    handle = table._handle
    return {
        path
        for info in handle.storage.list(handle.layout.root)
        if info.name not in OWN
        for path in _below(handle.storage, info)
    }


def _below(storage: Storage, info: FileInfo) -> Iterator[str]:
    if not info.is_directory:
        yield info.path
        return
    for each in storage.list(info.path):
        yield from _below(storage, each)


def needed(table: lake.Table) -> set[str]:
    """The files that every snapshot, tag and changelog references, one after the other."""
    handle, found = table._handle, set[str]()
    for layout in _places(handle):
        ids = snapshot_ids(handle.storage, layout)
        for number in ids:
            snapshot = read_snapshot(handle.storage, layout, number)
            found.update(_of_state(handle, snapshot))
            if number > ids[0] or not _has_expired_changes(handle, snapshot):
                found.update(_of_changelog(handle, snapshot))
        for tag in read_tags(handle.storage, layout):
            found.update(_of_state(handle, tag.snapshot))
        for number in changelog_ids(handle.storage, layout):
            changelog = read_changelog(handle.storage, layout, number)
            if changelog.changelog_manifest_list is not None:
                found.update(_of_changelog(handle, changelog))
            elif _producer(handle, layout) == "none" or (
                _producer(handle, layout, changelog.schema_id) == "none"
                and _is_there(handle, changelog)
            ):
                found.update(_of_delta(handle, changelog))
    return found


def _producer(handle: TableHandle, layout: TableLayout, schema_id: int | None = None) -> str:
    """The producer of a branch, which need not be that of main; by its newest schema or another."""
    number = schema_ids(handle.storage, layout)[-1] if schema_id is None else schema_id
    return read_schema(handle.storage, layout, number).table_options.changelog_producer


def _is_there(handle: TableHandle, changelog: Snapshot) -> bool:
    """With a producer, what a commit added is kept if it is from before there was one."""
    return handle.storage.exists(handle.layout.manifest(changelog.delta_manifest_list))


def waiting(table: lake.Table) -> set[str]:
    """Files of commits that go with the changelog of the snapshot that deleted them.

    Only where changelogs are what commits added: those from before may still be read.
    """
    handle, found = table._handle, set[str]()
    if not is_decoupled(handle.options) or handle.options.changelog_producer != "none":
        return found
    for layout in _places(handle):
        deltas = [
            read_changelog(handle.storage, layout, number)
            for number in changelog_ids(handle.storage, layout)
        ]
        oldest = snapshot_ids(handle.storage, layout)[:1]
        deltas += [read_snapshot(handle.storage, layout, number) for number in oldest]
        for each in deltas:
            _, entries = _of_list(handle, each.delta_manifest_list)
            for entry in entries:
                if entry.kind is FileKind.DELETE and entry.file.file_source != FileSource.COMPACT:
                    found.update(_paths(handle, entry))
    return found


def _places(handle: TableHandle) -> Iterator[TableLayout]:
    for name in (MAIN_BRANCH, *(each.name for each in branches(handle.storage, handle.layout))):
        yield handle.layout.on_branch(name)


def _of_state(handle: TableHandle, snapshot: Snapshot) -> Iterator[str]:
    entries: list[ManifestEntry] = []
    for kind in (ListKind.BASE, ListKind.DELTA):
        paths, found = _of_list(handle, getattr(snapshot, kind.value[0]))
        yield from paths
        entries += found
    for entry in live_files(entries, f"snapshot {snapshot.id}"):
        yield from _paths(handle, entry)
    if snapshot.index_manifest is not None:
        yield handle.layout.manifest(snapshot.index_manifest)
        for index in read_index_manifest(handle.storage, handle.layout, snapshot.index_manifest):
            yield handle.layout.index_file(index.file_name)
    if snapshot.statistics is not None:
        yield handle.layout.statistics(snapshot.statistics)


def _of_changelog(handle: TableHandle, snapshot: Snapshot) -> Iterator[str]:
    if snapshot.changelog_manifest_list is not None:
        paths, entries = _of_list(handle, snapshot.changelog_manifest_list)
        yield from paths
        for entry in entries:
            yield from _paths(handle, entry)


def _has_expired_changes(handle: TableHandle, snapshot: Snapshot) -> bool:
    """True for a branch that began at a tag: it keeps the rows of a snapshot, no changelog."""
    name = snapshot.changelog_manifest_list
    return name is not None and not handle.storage.exists(handle.layout.manifest(name))


def _of_delta(handle: TableHandle, snapshot: Snapshot) -> Iterator[str]:
    """The changes of a changelog without files of its own: written, not compacted."""
    paths, _ = _of_list(handle, snapshot.base_manifest_list)
    yield from paths
    paths, entries = _of_list(handle, snapshot.delta_manifest_list)
    yield from paths
    for entry in entries:
        if entry.kind is FileKind.ADD and entry.file.file_source != FileSource.COMPACT:
            yield from _paths(handle, entry)


def _of_list(handle: TableHandle, name: str) -> tuple[list[str], list[ManifestEntry]]:
    storage, layout = handle.storage, handle.layout
    manifests = read_manifest_list(storage, layout, name)
    entries = [entry for each in manifests for entry in entries_in(storage, layout, each.file_name)]
    return [layout.manifest(name), *(layout.manifest(m.file_name) for m in manifests)], entries


def _paths(handle: TableHandle, entry: ManifestEntry) -> Iterator[str]:
    directory = partition_path(handle.schema, entry.partition)
    for name in (entry.file.file_name, *entry.file.extra_files):
        yield handle.layout.data_file(entry.bucket, name, directory)
