"""Metadata that another program changed cannot make a publication delete files of the table."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.manifest_list import read_manifest_list
from lakeformat.iceberg.metadata.manifest_writer import encode_manifest_list
from lakeformat.publish.place import versions_of
from lakeformat.storage import MemoryStorage
from tests.unit.publish.published import (
    ROOT,
    content,
    file_of,
    published_table,
    rows_of,
    seen,
    unobserved,
)

LIST = "manifest-list"


def table_with(commits: int) -> lake.Table:
    table = published_table(MemoryStorage("changed"), [("id", "BIGINT")])
    for number in range(commits):
        table.write(rows_of(id=[number]))
    return table


def with_another_file(table: lake.Table, newest: int, members: str, member: str, named: str) -> str:
    """Let the oldest entry of the newest metadata name a file of the table; return its path."""
    storage, path = table._handle.storage, f"{ROOT}/metadata/{file_of(newest)}"
    victim = max(name for name in storage.files(ROOT) if f"/{named}" in name)
    metadata = json.loads(storage.read(path))
    metadata[members][0][member] = storage.uri(victim)
    storage.overwrite(path, json.dumps(metadata).encode())
    return victim


@pytest.mark.parametrize("named", ["snapshot/snapshot-2", "schema/schema-0", "bucket-0/"])
def test_an_expiry_deletes_no_file_of_the_table_as_a_manifest_list(named):
    table = table_with(2)
    victim = with_another_file(table, 2, "snapshots", "manifest-list", named)
    table.expire_snapshots(retain_max=1, retain_min=1)
    assert table._handle.storage.exists(victim)
    assert seen(table) == content(table.scan().to_arrow())


def test_a_commit_deletes_no_file_of_the_table_as_old_metadata():
    table = table_with(12)
    victim = with_another_file(table, 12, "metadata-log", "metadata-file", "schema/schema-0")
    table.write(rows_of(id=[99]))
    assert table._handle.storage.exists(victim)
    assert seen(table) == content(table.scan().to_arrow())


class Forged:
    """A published table whose newest metadata file is replaced by a changed copy of it."""

    def __init__(self, commits: int = 2) -> None:
        self.table = table_with(commits)
        self.storage, self.number = self.table._handle.storage, commits
        other = self.table._handle.storage
        self.outside = other.uri("wh/shop.db/other/metadata/m0.avro")

    def loaded(self) -> LoadedMetadata:
        newest = versions_of(self.table._handle).newest()
        assert newest is not None
        return newest

    def write(self, change: Callable[[dict[str, Any]], None]) -> None:
        path = self.loaded().path
        members = json.loads(self.storage.read(path))
        change(members)
        self.storage.overwrite(path, json.dumps(members).encode())

    def names_a_list_outside(self, place: int) -> None:
        list_of = self.loaded().metadata.snapshots[place].manifest_list
        content = self.storage.read(_path(list_of))
        self.storage.overwrite("wh/shop.db/other/metadata/m0.avro", content)
        self.write(lambda members: members["snapshots"][place].update({LIST: self.outside}))

    def names_another_directory(self) -> None:
        named = self.outside.rpartition("/")[0]
        self.write(lambda members: members["properties"].update({"write.metadata.path": named}))

    def names_statistics(self) -> None:
        named = {
            "snapshot-id": self.number,
            "statistics-path": self.outside,
            "file-size-in-bytes": 1,
            "file-footer-size-in-bytes": 1,
            "blob-metadata": [],
        }
        self.write(lambda members: members.update({"statistics": [named]}))

    def lists_a_manifest_outside(self) -> None:
        loaded = self.loaded()
        shown = loaded.metadata.current_snapshot
        assert shown is not None
        listed = read_manifest_list(loaded.places, shown)
        first, *others = listed.column("manifest_path").to_pylist()
        self.storage.overwrite("wh/shop.db/other/metadata/m0.avro", self.storage.read(_path(first)))
        paths = pa.array([self.outside, *others], pa.string())
        listed = listed.set_column(0, listed.schema.field(0), paths)
        self.storage.overwrite(_path(shown.manifest_list), encode_manifest_list(2, listed, shown))

    def is_rolled_back(self) -> None:
        def change(members: dict[str, Any]) -> None:
            members["current-snapshot-id"] = members["refs"]["main"]["snapshot-id"] = 1

        self.write(change)

    def has_a_broken_list(self) -> None:
        shown = self.loaded().metadata.current_snapshot
        assert shown is not None
        self.storage.overwrite(_path(shown.manifest_list), b"Obj\x01")


FORGERIES: dict[str, Callable[[Forged], None]] = {
    "list of the newest snapshot": lambda forged: forged.names_a_list_outside(-1),
    "list of an older snapshot": lambda forged: forged.names_a_list_outside(0),
    "directory of manifests": Forged.names_another_directory,
    "statistics": Forged.names_statistics,
    "manifest": Forged.lists_a_manifest_outside,
    "rollback": Forged.is_rolled_back,
    "broken list": Forged.has_a_broken_list,
}
"""Changes after which the metadata still has the location and the identity of the table."""


def _path(address: str | None) -> str:
    assert address is not None
    return address.split("://", 1)[1].split("/", 1)[1]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("forge", FORGERIES.values(), ids=FORGERIES)
@pytest.mark.parametrize("by_commit", [True, False], ids=["commit", "publish"])
def test_metadata_that_no_publication_wrote_is_replaced_from_scratch(
    forge, by_commit, monkeypatch, caplog
):
    forged = Forged()
    forge(forged)
    uuid = forged.loaded().metadata.table_uuid
    for name in ("read", "open_input", "overwrite", "open_output", "create", "delete"):
        monkeypatch.setattr(MemoryStorage, name, _at_home(getattr(MemoryStorage, name)))
    if by_commit:
        forged.table.write(rows_of(id=[99]))
    assert lake.publish_table(forged.table).rebuilt is not by_commit
    assert "names files that no publication wrote" in caplog.text
    assert forged.loaded().metadata.table_uuid == uuid
    assert forged.loaded().metadata.statistics == ()
    for snapshot in forged.table.snapshots():
        rows = content(forged.table.scan(snapshot=snapshot.id).to_arrow())
        assert seen(forged.table, snapshot.id) == rows


@pytest.mark.parametrize("version", ["2", "3"])
@pytest.mark.parametrize("is_missing", [True, False], ids=["missing", "broken"])
def test_a_table_with_a_damaged_published_manifest_is_published_from_scratch(
    version, is_missing, caplog
):
    options = {"metadata.iceberg.format-version": version}
    table = published_table(MemoryStorage("damaged"), [("id", "BIGINT")], options=options)
    table.write(rows_of(id=[1]))
    storage, [manifest] = table._handle.storage, _manifests(table)
    table.write(rows_of(id=[2]))
    if is_missing:
        storage.delete(manifest)
    else:
        storage.overwrite(manifest, b"Obj\x01")
    table.write(rows_of(id=[3]), overwrite="table")
    assert "published from scratch" in caplog.text
    for snapshot in table.snapshots():
        rows = content(table.scan(snapshot=snapshot.id).to_arrow())
        assert seen(table, snapshot.id) == rows
    table.delete("id = 3")
    table.expire_snapshots(retain_max=1, retain_min=1)
    assert seen(table) == content(table.scan().to_arrow())


NEXT = {
    "publish": lambda table: lake.publish_table(table),
    "append": lambda table: table.write(rows_of(id=[9])),
    "tag": lambda table: table.tags.create("v1"),
    "expire": lambda table: table.expire_snapshots(retain_max=1, retain_min=1),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("publish", NEXT.values(), ids=NEXT)
@pytest.mark.parametrize("is_missing", [True, False], ids=["missing", "shorter"])
def test_each_next_publication_repairs_the_manifests_of_the_newest_snapshot(
    publish, is_missing, caplog
):
    table = table_with(3)
    storage, manifest = table._handle.storage, _manifests(table)[0]
    if is_missing:
        storage.delete(manifest)
    else:
        storage.overwrite(manifest, storage.read(manifest)[:-1])
    publish(table)
    assert "lacks a manifest" in caplog.text
    for snapshot in table.snapshots():
        rows = content(table.scan(snapshot=snapshot.id).to_arrow())
        assert seen(table, snapshot.id) == rows
    assert not lake.publish_table(table).rebuilt


@pytest.mark.parametrize("version", ["2", "3"])
def test_an_expiry_repairs_the_manifests_of_deleted_rows_in_kept_snapshots(version, caplog):
    options = {"bucket": "1", "deletion-vectors.enabled": "true"}
    options |= {"metadata.iceberg.format-version": version}
    table = published_table(
        MemoryStorage(f"deletes {version}"),
        [("id", "BIGINT"), ("v", "BIGINT")],
        primary_key=["id"],
        options=options,
    )
    table.write(rows_of(id=[1, 2, 3, 4], v=[0, 0, 0, 0]))
    table.compact(strategy="full")
    older: list[str] = []
    for number in (1, 2, 3):
        table.write(rows_of(id=[number], v=[1]))
        table.compact(strategy="minor")
        older.append(_manifests(table)[-1])
    assert older[1] not in _manifests(table)
    table._handle.storage.delete(older[1])
    table.expire_snapshots(retain_max=3, retain_min=1)
    assert "lacks a manifest" in caplog.text
    for snapshot in table.snapshots():
        rows = content(table.scan(snapshot=snapshot.id).to_arrow())
        assert seen(table, snapshot.id) == rows


def test_a_damaged_manifest_of_the_table_does_not_restart_the_publication(caplog):
    table = table_with(2)
    storage, published = table._handle.storage, _manifests(table)
    unobserved(table).write(rows_of(id=[3]), overwrite="table")
    for path in storage.files(f"{ROOT}/manifest"):
        if "/manifest-list-" not in path:
            storage.overwrite(path, b"Obj\x01")
    with pytest.raises(lake.CorruptTableError, match="orders/manifest/manifest-"):
        lake.publish_table(table)
    assert _manifests(table) == published
    assert "from scratch" not in caplog.text


def test_a_manifest_that_is_newer_than_the_listing_does_not_restart_the_publication(
    monkeypatch, caplog
):
    table = table_with(2)
    published = _manifests(table)
    listed = MemoryStorage.list
    monkeypatch.setattr(
        MemoryStorage,
        "list",
        lambda storage, path: [each for each in listed(storage, path) if "-m" not in each.name],
    )
    assert lake.publish_table(table).reason
    table.write(rows_of(id=[3]))
    assert {*_manifests(table)} > {*published}
    assert "from scratch" not in caplog.text


def _manifests(table: lake.Table) -> list[str]:
    """The paths of the manifests in the newest published snapshot."""
    loaded = versions_of(table._handle).newest()
    assert loaded is not None
    assert loaded.metadata.current_snapshot is not None
    listed = read_manifest_list(loaded.places, loaded.metadata.current_snapshot)
    return [_path(each) for each in listed.column("manifest_path").to_pylist()]


def _at_home(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method of a storage, which fails for the other table."""

    def watched(storage: MemoryStorage, path: str, *arguments: Any) -> Any:
        assert "/other/" not in path
        return method(storage, path, *arguments)

    return watched
