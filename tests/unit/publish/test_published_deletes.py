"""Readers of Iceberg do not see rows that deletion vectors of a Paimon table delete."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.errors import UnavailableError
from lakeformat.paimon.metadata.index_heads import IndexHead
from lakeformat.publish.versions import PublishedVersions
from lakeformat.storage import MemoryStorage
from tests.unit.publish.published import (
    ROOT,
    catalog_in,
    content,
    iceberg,
    published_table,
    rows_of,
    seen,
    unobserved,
)

COLUMNS = [("id", "BIGINT"), ("dt", "INT"), ("v", "STRING")]
VECTORS = {"deletion-vectors.enabled": "true"}
VERSION = "metadata.iceberg.format-version"


@pytest.fixture
def storage(request) -> MemoryStorage:
    return MemoryStorage(request.node.name)


@pytest.fixture(params=["2", "3"])
def version(request) -> str:
    found: str = request.param
    return found


def vector_table(storage, version: str, *, keyed: bool = False, **options: str) -> lake.Table:
    keys: dict[str, Any] = {"primary_key": ["dt", "id"]} if keyed else {}
    given = {**VECTORS, VERSION: version, **options}
    if keyed:
        given.setdefault("bucket", "1")
    return published_table(storage, COLUMNS, partition_by=["dt"], options=given, **keys)


def rows(ids: range, day: int = 1, v: str = "a") -> pa.Table:
    days = pa.array([day] * len(ids), pa.int32())
    return pa.table({"id": [*ids], "dt": days, "v": [v] * len(ids)})


def deletes(table: lake.Table) -> list[dict[str, Any]]:
    """The live files of deletes and deletion vectors."""
    found = iceberg(table).system_table("files").scan().to_arrow().to_pylist()
    return [each for each in found if each["content"]]


def files_of_deletes(storage) -> list[str]:
    return sorted(
        name
        for name in storage.files()
        if name.startswith(f"{ROOT}/metadata/") and name.endswith((".parquet", ".puffin"))
    )


def check(table: lake.Table) -> None:
    """Each snapshot shows the rows of the table, and the totals of the newest count its deletes."""
    for snapshot in table.snapshots()[:-1]:
        expected = content(table.scan(snapshot=snapshot.id).to_arrow())
        assert seen(table, snapshot.id) == expected, snapshot.id
    check_newest(table)


def check_newest(table: lake.Table) -> None:
    assert seen(table) == content(table.scan().to_arrow())
    found = deletes(table)
    summary = iceberg(table)._loaded().metadata.snapshots[-1].summary
    assert summary["total-delete-files"] == str(len(found))
    assert summary["total-position-deletes"] == str(sum(each["record_count"] for each in found))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("bitmap64", ["true", "false"])
def test_deleted_rows_of_an_append_table_are_published(storage, version, bitmap64):
    table = vector_table(storage, version, **{"deletion-vectors.bitmap64": bitmap64})
    table.write(rows(range(10)))
    table.write(rows(range(5), day=2))
    table.delete("id in (1, 3) and dt = 1")
    table.delete("id = 3 or id = 4")
    check_newest(table)
    assert {each["file_format"] for each in deletes(table)} == {
        "PARQUET" if version == "2" else "PUFFIN"
    }
    assert all("/metadata/" in each["file_path"] for each in deletes(table))
    kinds = [each.summary["operation"] for each in iceberg(table)._loaded().metadata.snapshots]
    assert kinds == ["append", "append", "delete", "delete"]
    table.update("id = 0", {"v": "new"})
    table.compact(strategy="full")
    check(table)
    assert deletes(table) == []


def test_only_changed_vectors_are_written_again(storage, version):
    table = vector_table(storage, version, **{"deletion-vector.index-file.target-size": "1 mb"})
    for _ in range(3):
        table.write(rows(range(4)))
    table.delete("id = 1")
    before = files_of_deletes(storage)
    table.write(rows(range(10, 12)))
    table.delete("id = 10")
    new = [name for name in files_of_deletes(storage) if name not in before]
    assert len(new) == 1
    summary = iceberg(table)._loaded().metadata.snapshots[-1].summary
    assert (summary["added-delete-files"], summary["total-delete-files"]) == ("1", "4")
    check(table)


def test_unchanged_vectors_in_a_new_index_file_are_not_written_again(storage, version):
    table = vector_table(storage, version, bucket="1", **{"bucket-key": "id"})
    for first in (0, 10):
        table.write(rows(range(first, first + 5)))
    for number in (1, 11, 2):
        table.delete(f"id = {number}")
        summary = iceberg(table)._loaded().metadata.snapshots[-1].summary
        assert summary["added-delete-files"] == "1"
    assert sorted(each["record_count"] for each in deletes(table)) == [1, 2]
    check(table)


def test_a_keyed_table_with_vectors_is_current_after_each_compaction(storage, version):
    table = vector_table(storage, version, keyed=True)
    large = Random(0).randbytes(8000).hex()  # keeps this file apart from the small ones
    table.write(rows(range(20), v=large))
    table.compact(strategy="full")
    for step in range(4):
        table.write(rows(range(step * 3, step * 3 + 5), v=f"v{step}"))
        table.compact(strategy="minor")
        check_newest(table)
    assert deletes(table)
    table.write(rows(range(1)), kinds=["-D"])
    table.compact(strategy="minor")
    check_newest(table)
    files = table.system_table("files").scan().to_arrow().to_pylist()
    assert len({each["level"] for each in files}) > 1
    table.compact(strategy="full")
    check(table)
    assert deletes(table) == []


def test_a_table_with_vectors_is_published_from_its_newest_snapshot(storage, version):
    table = vector_table(storage, version)
    theirs = unobserved(table)
    theirs.write(rows(range(10)))
    theirs.write(rows(range(10), day=2))
    theirs.delete("id = 1")
    assert lake.publish_table(table).rebuilt
    assert seen(table) == content(table.scan().to_arrow())
    assert len(deletes(table)) == 2
    theirs.delete("id = 2 and dt = 2")
    lake.publish_table(table)
    assert seen(table) == content(table.scan().to_arrow())


def test_rows_that_come_back_are_seen_again(storage, version):
    table = vector_table(storage, version)
    table.write(rows(range(10)))
    table.delete("id = 1")
    table.delete("id = 2")
    table.rollback(snapshot=2)
    assert [each["record_count"] for each in deletes(table)] == [1]
    table.rollback(snapshot=1)
    check(table)
    assert deletes(table) == []


def test_an_upgrade_keeps_files_of_deletes_until_their_vector_changes(storage):
    table = vector_table(storage, "2")
    table.write(rows(range(10)))
    table.write(rows(range(10), day=2))
    table.delete("id = 1")
    table = catalog_in(storage).alter_table("shop.orders", lake.set_option(VERSION, "3"))
    table.delete("id = 2 and dt = 1")
    assert sorted(each["file_format"] for each in deletes(table)) == ["PARQUET", "PUFFIN"]
    check(table)


def test_files_of_deletes_are_deleted_if_their_publication_fails(storage, version, monkeypatch):
    table = vector_table(storage, version)
    table.write(rows(range(10)))

    def fails(*_):
        raise UnavailableError("the storage is away")

    with monkeypatch.context() as broken:
        broken.setattr(PublishedVersions, "create", fails)
        table.delete("id = 1")
    assert files_of_deletes(storage) == []
    table.delete("id = 2")
    check(table)


def test_vectors_that_are_switched_on_show_more_levels(storage, version):
    options = {"deletion-vectors.modifiable": "true", "bucket": "1", VERSION: version}
    keys = {"primary_key": ["id"], "options": options}
    table = published_table(storage, [("id", "BIGINT")], **keys)
    table.write(rows_of(id=[*range(2000)]))
    table.compact(strategy="full")
    for number in range(5000, 5005):
        table.write(rows_of(id=[number]))
    table.compact(strategy="minor")
    assert len(seen(table)) == 2000
    files = table.system_table("files").scan().to_arrow().to_pylist()
    assert 0 not in {each["level"] for each in files}
    assert len({each["level"] for each in files}) == 2
    catalog = catalog_in(storage)
    table = catalog.alter_table("shop.orders", lake.set_option("deletion-vectors.enabled", "true"))
    table.write(rows_of(id=[1, 2, 6000]))
    assert seen(table) == content(table.scan().to_arrow())
    assert len(seen(table)) == 2005
    table.compact(strategy="minor")
    assert seen(table) == content(table.scan().to_arrow())
    assert len(seen(table)) == 2006


def test_files_of_deletes_are_deleted_with_the_last_snapshot_that_needs_them(storage, version):
    table = vector_table(storage, version)
    table.write(rows(range(10)))
    for number in (1, 2, 3):
        table.delete(f"id = {number}")
    table.tags.create("second", snapshot=2)
    assert len(files_of_deletes(storage)) == 3
    table.expire_snapshots(retain_max=1, retain_min=1)
    check(table)
    assert len(files_of_deletes(storage)) == 2
    assert len(iceberg(table).scan(tag="second").to_arrow()) == 9
    table.tags.delete("second")
    assert len(files_of_deletes(storage)) == 1
    check(table)
    table.remove_orphans(older_than="0 s", dry_run=False, allow_younger=True)
    check(table)


def test_deletes_name_data_files_outside_of_the_table(tmp_path, version):
    outside = f"file:{tmp_path}/elsewhere"
    roots = {"external-roots": str(tmp_path)}
    catalog = lake.open_catalog(str(tmp_path / "warehouse"), options=roots)
    catalog.create_database("shop")
    options = {
        **VECTORS,
        VERSION: version,
        "metadata.iceberg.storage": "table-location",
        "data-file.external-paths": outside,
        "data-file.external-paths.strategy": "round-robin",
    }
    table = catalog.create_table("shop.orders", COLUMNS, partition_by=["dt"], options=options)
    table.write(rows(range(4)))
    table.write(rows(range(4), day=2))
    table.delete("id = 1")
    table.delete("id = 2 and dt = 1")
    file = lake.publish_table(table).metadata_file
    assert file is not None
    shown = lake.open_table(file, external_roots=[str(tmp_path)])
    assert content(shown.scan().to_arrow()) == content(table.scan().to_arrow())
    files = shown.system_table("files").scan().to_arrow().to_pylist()
    data = {each["file_path"] for each in files if each["content"] == 0}
    assert all(outside in path.replace("file:///", "file:/") for path in data)
    assert {each["referenced_data_file"] for each in files if each["content"]} == data


def test_a_delete_reads_the_vectors_of_its_bucket_only(storage, version, monkeypatch):
    table = vector_table(storage, version)
    for day in range(4):
        table.write(rows(range(4), day=day))
    table.delete("id = 1")
    theirs = unobserved(table)
    theirs.delete("id = 2 AND dt = 3")
    entry, asked = IndexHead.entry, []

    def watched(head):
        asked.append(head.file_name)
        return entry(head)

    monkeypatch.setattr(IndexHead, "entry", watched)
    lake.publish_table(table)
    assert len(asked) == 2  # the index files of one partition, before and after
    assert seen(table) == content(table.scan().to_arrow())


def test_a_delete_reads_the_manifests_of_its_partition_only(storage, version, monkeypatch):
    table = vector_table(storage, version)
    for day in range(4):
        table.write(rows(range(4), day=day))
        table.delete(f"id = 1 AND dt = {day}")
    theirs = unobserved(table)
    theirs.delete("id = 2 AND dt = 3")
    read, opened = MemoryStorage.read, []

    def watched(storage, path, *limit):
        opened.append(path)
        return read(storage, path, *limit)

    monkeypatch.setattr(MemoryStorage, "read", watched)
    lake.publish_table(table)
    assert len({path for path in opened if "/metadata/" in path and "-m" in path}) == 1
    monkeypatch.undo()
    assert seen(table) == content(table.scan().to_arrow())
    assert len(deletes(table)) == 4
