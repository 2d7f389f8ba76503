"""Two tables that have, or had, one directory have their own records."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.catalog.iceberg.catalog_pointer import CatalogPointer
from lakeformat.errors import InvalidRequestError, NotFoundError
from lakeformat.iceberg.table.own_consumers import OwnConsumerFiles
from tests.counting import CountingStorage

FORMATS = pytest.mark.parametrize("format", ["iceberg", "mixed"])
LEAVES = pytest.mark.parametrize("leave", ["drop", "purge", "rename"])


def catalog(root: Path) -> Any:
    made = lake.open_catalog(
        str(root), format="iceberg", metastore="sql", uri=f"sqlite:///{root}/catalog.db"
    )
    made.create_database("db", exist_ok=True)
    return made


def create(root: Path, format: str) -> Any:
    keys = {"format": "mixed", "primary_key": ["k"]} if format == "mixed" else {}
    return catalog(root).create_table("db.t", [("k", "BIGINT"), ("v", "BIGINT")], **keys)


def leave_and_create(root: Path, leave: str, format: str) -> Any:
    """Drop or rename the table, then create another one with the same name and directory."""
    if leave == "rename":
        catalog(root).rename_table("db.t", "db.u")
    else:
        catalog(root).drop_table("db.t", purge=leave == "purge")
    return create(root, format)


def write(table: Any, *keys: int, commit: lake.CommitId | None = None) -> None:
    table.write(pa.table({"k": keys, "v": keys}), commit=commit)


def write_batch(table: Any, number: int, key: int) -> bool:
    """Write the batch, unless it is published; return False then."""
    with table.stream_batch(lake.CommitId("feed", number)) as commit:
        if commit is not None:
            write(table, key, commit=commit)
        return commit is not None


def keys_of(table: Any) -> list[int]:
    return sorted(row["k"] for row in table.scan().to_arrow().to_pylist())


def as_of_earlier_releases(root: Path) -> None:
    """Move all records to the places of earlier releases, outside of the UUIDs' directories."""
    for kind in ("stream", "consumer", "run"):
        for path in [*root.rglob(f"{kind}-*")]:
            if path.is_file() and path.parent.parent.name == kind:
                shutil.move(path, path.parent.parent / path.name)


def expire(table: Any) -> None:
    """Expire all snapshots but the newest one."""
    table.expire_snapshots(older_than="1 ms", retain_min=1)


@pytest.mark.sampled(4)
@FORMATS
@LEAVES
@pytest.mark.parametrize("is_old", [False, True])
def test_a_stream_into_a_new_table_writes_each_batch(tmp_path, format, leave, is_old):
    table = create(tmp_path, format)
    assert [write_batch(table, number, number) for number in (0, 1)] == [True, True]
    if is_old:
        as_of_earlier_releases(tmp_path)
    table = leave_and_create(tmp_path, leave, format)
    assert [write_batch(table, number, number + 7) for number in (0, 1, 1)] == [True, True, False]
    assert keys_of(table) == [7, 8]
    if leave == "rename":
        renamed = catalog(tmp_path).table("db.u")
        assert [write_batch(renamed, number, number) for number in (1, 2)] == [False, True]
        assert keys_of(renamed) == [0, 1, 2]


@FORMATS
def test_a_batch_that_an_earlier_release_published_is_skipped(tmp_path, format):
    table = create(tmp_path, format)
    write_batch(table, 5, 1)
    as_of_earlier_releases(tmp_path)
    assert not write_batch(table, 5, 2)
    assert write_batch(table, 6, 3)
    assert keys_of(table) == [1, 3]


def test_a_batch_of_an_earlier_release_that_may_have_expired_is_refused(tmp_path):
    table = create(tmp_path, "iceberg")
    write_batch(table, 5, 1)
    as_of_earlier_releases(tmp_path)
    write(table, 2)
    expire(table)
    for number in (4, 5):
        with pytest.raises(
            InvalidRequestError, match=r"is already published in .*, so nothing was published"
        ):
            write_batch(table, number, 3)
    [old] = tmp_path.rglob("stream-feed")
    shutil.move(old, old.parent / table._loaded().metadata.table_uuid)
    assert not write_batch(table, 5, 3)
    assert write_batch(table, 6, 4)
    assert keys_of(table) == [1, 2, 4]


def test_a_batch_of_an_earlier_release_that_was_rolled_back_is_refused(tmp_path):
    table = create(tmp_path, "iceberg")
    write(table, 1)
    first = table.latest_snapshot().id
    write_batch(table, 0, 10)
    write_batch(table, 1, 11)
    as_of_earlier_releases(tmp_path)
    table.rollback(snapshot=first)
    for number in (0, 1):
        with pytest.raises(InvalidRequestError, match=r"or a rollback has removed it\. If"):
            write_batch(table, number, 12)
    [old] = tmp_path.rglob("stream-feed")
    old.unlink()
    assert write_batch(table, 0, 12)
    assert keys_of(table) == [1, 12]


def test_an_empty_batch_of_an_earlier_release_can_be_repeated(tmp_path):
    table = create(tmp_path, "iceberg")
    write_batch(table, 0, 1)
    with table.stream_batch(lake.CommitId("feed", 1)):
        pass  # no rows to write
    as_of_earlier_releases(tmp_path)
    with table.stream_batch(lake.CommitId("feed", 1)) as commit:
        assert commit is not None
    assert write_batch(table, 2, 2)
    assert keys_of(table) == [1, 2]


def test_a_batch_that_an_earlier_release_has_begun_is_found(tmp_path):
    table = create(tmp_path, "iceberg")
    started = table.stream_batch(lake.CommitId("feed", 5))
    write(table, 1, commit=started.__enter__())  # the process never leaves the block
    as_of_earlier_releases(tmp_path)
    assert not write_batch(table, 5, 2)
    assert keys_of(table) == [1]
    assert table.consumers.list() == []


def test_a_killed_update_of_a_stream_leaves_no_consumer(tmp_path, monkeypatch):
    table = create(tmp_path, "iceberg")
    started = table.stream_batch(lake.CommitId("feed", 5))
    write(table, 1, commit=started.__enter__())  # the process never leaves the block
    as_of_earlier_releases(tmp_path)
    assert [each.id for each in table.consumers.list()] == ["feed"]
    with monkeypatch.context() as patch:
        patch.setattr(OwnConsumerFiles, "delete_old", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            write_batch(table, 5, 1)
    assert not write_batch(table, 5, 1)
    assert table.consumers.list() == []


def streamed(table: Any, consumer: str) -> list[int]:
    """The keys that the next batch of the consumer's stream has."""
    stream = table.stream(consumer=consumer)
    found = stream.poll()
    keys = [] if found is None else found.to_arrow()["k"].to_pylist()
    stream.acknowledge()
    return sorted(keys)


@pytest.mark.sampled(4)
@FORMATS
@LEAVES
@pytest.mark.parametrize("is_old", [False, True])
def test_a_new_table_has_no_consumer_of_the_one_before(tmp_path, format, leave, is_old):
    table = create(tmp_path, format)
    write(table, 1)
    table.consumers.set("mirror", after=table.position())
    if is_old:
        as_of_earlier_releases(tmp_path)
    write(table, 2)
    table = leave_and_create(tmp_path, leave, format)
    write(table, 7)
    assert table.consumers.list() == []
    assert table.consumers.expire(older_than="1 ms").removed == ()
    assert streamed(table, "mirror") == [7]
    table.consumers.reset("mirror")
    assert table.consumers.list() == []
    if leave == "rename":
        renamed = catalog(tmp_path).table("db.u")
        assert streamed(renamed, "mirror") == [2]


@FORMATS
def test_a_consumer_of_an_earlier_release_reads_on(tmp_path, format):
    table = create(tmp_path, format)
    write(table, 1)
    table.consumers.set("mirror", after=table.position())
    table.consumers.set("idle", after=table.position())
    as_of_earlier_releases(tmp_path)
    write(table, 2)
    assert [each.id for each in table.consumers.list()] == ["idle", "mirror"]
    assert streamed(table, "mirror") == [2]
    write(table, 3)
    assert [(each.id, each.behind) for each in table.consumers.list()] == [
        ("idle", 2),
        ("mirror", 1),
    ]
    assert streamed(table, "mirror") == [3]
    for name in ("idle", "mirror"):
        table.consumers.reset(name)
    assert table.consumers.list() == []
    assert [*tmp_path.rglob("consumer-*")] == []


def test_a_killed_delete_of_a_consumer_does_not_restore_its_old_position(tmp_path, monkeypatch):
    table = create(tmp_path, "iceberg")
    write(table, 1)
    table.consumers.set("mirror", after=table.position())
    as_of_earlier_releases(tmp_path)
    write(table, 2)
    table.consumers.set("mirror", after=table.position())
    deleted = Mock(side_effect=[None, KeyboardInterrupt])
    files = table.consumers._files()
    with monkeypatch.context() as patch:
        delete = type(files.storage).delete
        patch.setattr(
            type(files.storage), "delete", lambda self, path: (deleted(), delete(self, path))
        )
        with pytest.raises(KeyboardInterrupt):
            table.consumers.reset("mirror")
    assert streamed(table, "mirror") == []


def test_a_consumer_of_an_earlier_release_whose_snapshot_has_expired_is_named(tmp_path):
    table = create(tmp_path, "iceberg")
    write(table, 1)
    table.consumers.set("mirror", after=table.position())
    as_of_earlier_releases(tmp_path)
    [old] = tmp_path.rglob("consumer-mirror")
    content = old.read_text()
    old.unlink()
    for key in (2, 3):
        write(table, key)
    expire(table)
    old.write_text(content)
    with pytest.raises(NotFoundError, match="expired"):
        streamed(table, "mirror")
    assert [each.is_stale for each in table.consumers.list()] == [True]
    table.consumers.reset("mirror")
    assert streamed(table, "mirror") == [1, 2, 3]


def test_a_consumer_in_its_place_is_read_with_one_call(tmp_path):
    table = create(tmp_path, "iceberg")
    write(table, 1)
    table.consumers.set("mirror", after=table.position())
    files = table.consumers._files()
    storage = CountingStorage(files.storage)
    replace(files, storage=storage).find("mirror")
    assert [name for name, _ in storage.calls] == ["read"]


def record_run(table: Any, key: int) -> lake.RunRecord:
    """Write a row, and record this as the success of a run."""
    write(table, key, commit=lake.CommitId("nightly", 0))
    record = lake.RunRecord(user="nightly", identifier=0, snapshot_id=table.latest_snapshot().id)
    table.record_run(record)
    return record


@pytest.mark.sampled(4)
@FORMATS
@LEAVES
@pytest.mark.parametrize("is_old", [False, True])
def test_a_new_table_has_no_run_of_the_one_before(tmp_path, format, leave, is_old):
    table = create(tmp_path, format)
    before = record_run(table, 1)
    if is_old:
        as_of_earlier_releases(tmp_path)
        write(table, 2)
        assert table.find_run("nightly") == before
    table = leave_and_create(tmp_path, leave, format)
    assert table.find_run("nightly") is None
    record = record_run(table, 3)
    assert table.find_run("nightly") == record
    if leave == "rename":
        assert catalog(tmp_path).table("db.u").find_run("nightly") == before


def test_a_run_of_an_earlier_release_is_found_although_its_snapshot_has_expired(tmp_path):
    table = create(tmp_path, "iceberg")
    record = record_run(table, 1)
    as_of_earlier_releases(tmp_path)
    write(table, 2)
    expire(table)
    assert table.find_run("nightly") == record


def loads_of(monkeypatch: Any, act: Callable[[], object]) -> int:
    """Return how often ``act`` loads the metadata of the table."""
    loads = Mock()
    load = CatalogPointer.load

    def counted(pointer: CatalogPointer) -> Any:
        loads()
        return load(pointer)

    with monkeypatch.context() as patch:
        patch.setattr(CatalogPointer, "load", counted)
        act()
    return loads.call_count


def test_a_record_is_looked_for_with_one_load(tmp_path, monkeypatch):
    table = create(tmp_path, "iceberg")
    record = record_run(table, 1)
    as_of_earlier_releases(tmp_path)
    assert table.find_run("nightly") == record
    for user in ("nightly", "missing"):
        assert loads_of(monkeypatch, lambda user=user: table.find_run(user)) == 1


@FORMATS
@pytest.mark.parametrize("is_old", [False, True])
def test_consumers_are_listed_and_kept_with_a_fixed_number_of_loads(
    tmp_path, monkeypatch, format, is_old
):
    table = create(tmp_path, format)
    write(table, 1)
    loads = []
    for name in ("a", "b", "c"):
        table.consumers.set(name, after=table.position())
        if format == "iceberg":
            table.branches.create(name)
        if is_old:
            as_of_earlier_releases(tmp_path)
        expiry = partial(table.expire_snapshots, dry_run=True)
        loads.append([loads_of(monkeypatch, act) for act in (table.consumers.list, expiry)])
    assert loads[0] == loads[1] == loads[2]


def staged(table: Any, key: int) -> str:
    writer = table.new_writer()
    writer.write(pa.table({"k": [key], "v": [key]}))
    return table.staged.address(table.staged.add(writer.prepare()).name)


def test_a_removal_of_orphans_keeps_the_staged_rows_of_a_renamed_table(tmp_path):
    table = create(tmp_path, "iceberg")
    write(table, 1)
    table.branches.create("audit")
    audit = catalog(tmp_path).table("db.t$branch_audit")
    addresses = [staged(table, 2), staged(audit, 3)]
    again = leave_and_create(tmp_path, "rename", "iceberg")
    write(again, 9)
    for path in tmp_path.rglob("*.parquet"):
        os.utime(path, (1_000_000, 1_000_000))
    assert again.remove_orphans(dry_run=False).removed_files == 0
    for name, address, keys in zip(
        ("db.u", "db.u$branch_audit"), addresses, ([1, 2], [1, 3]), strict=True
    ):
        renamed = catalog(tmp_path).table(name)
        renamed.staged.publish([address])
        assert keys_of(renamed) == keys


def test_a_branch_of_another_table_leaves_the_records_of_earlier_releases(tmp_path):
    table = create(tmp_path, "iceberg")
    write(table, 1)
    table.branches.create("audit")
    audit = catalog(tmp_path).table("db.t$branch_audit")
    audit.consumers.set("mirror", after=audit.position())
    assert write_batch(audit, 0, 2)
    as_of_earlier_releases(tmp_path)
    again = leave_and_create(tmp_path, "rename", "iceberg")
    write(again, 9)
    again.branches.create("audit")
    again.branches.rename("audit", "checks")
    again.branches.delete("checks")
    audit = catalog(tmp_path).table("db.u$branch_audit")
    assert [each.id for each in audit.consumers.list()] == ["mirror"]
    assert not write_batch(audit, 0, 3)
    catalog(tmp_path).table("db.u").branches.rename("audit", "new")
    new = catalog(tmp_path).table("db.u$branch_new")
    assert streamed(new, "mirror") == [2]
    assert not write_batch(new, 0, 3)
