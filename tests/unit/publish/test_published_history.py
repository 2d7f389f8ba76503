"""A publication from scratch shows the older snapshots and tags that the table still has."""

from __future__ import annotations

import logging

import pytest

import lakeformat as lake
from lakeformat.publish.versions import PublishedVersions
from lakeformat.storage import MemoryStorage
from tests.unit.publish.published import (
    ROOT,
    catalog_of,
    content,
    iceberg,
    published_table,
    rows_of,
    seen,
    unobserved,
)

COLUMNS = [("id", "BIGINT"), ("note", "STRING")]
HISTORY, VERSION = "iceberg.publish-history", "metadata.iceberg.format-version"


@pytest.fixture
def storage(request) -> MemoryStorage:
    return MemoryStorage(request.node.name)


def forget(table: lake.Table) -> None:
    """Delete all published metadata."""
    storage = table._handle.storage
    for name in storage.files(f"{ROOT}/metadata"):
        storage.delete(name)


def ids(table: lake.Table) -> list[int]:
    return [each.snapshot_id for each in iceberg(table)._loaded().metadata.snapshots]


def unreferenced(table: lake.Table) -> set[str]:
    """The files of the publication that the newest metadata does not need."""
    files = table._handle.observed_files()
    assert files is not None
    there = {each.name for each in table._handle.storage.list(f"{ROOT}/metadata")}
    return there - files.needed


def written_by_another_engine(
    storage, *, steps: int = 4, **options: str
) -> tuple[lake.Table, lake.Table]:
    """A table without metadata; the second result writes to it without publication."""
    table = published_table(storage, COLUMNS, options=options)
    theirs = unobserved(table)
    for number in range(steps):
        theirs.write(rows_of(id=[number], note=[f"n{number}"]))
    return table, theirs


def test_older_snapshots_are_seen_with_their_rows_times_and_parents(storage):
    table, theirs = written_by_another_engine(storage)
    theirs.write(rows_of(id=[9], note=["new"]), overwrite="table")
    assert lake.publish_table(table).published == (1, 2, 3, 4, 5)
    for snapshot in table.snapshots():
        assert seen(table, snapshot.id) == content(table.scan(snapshot=snapshot.id).to_arrow())
    shown = iceberg(table)._loaded().metadata
    assert [each.parent_id for each in shown.snapshots] == [None, 1, 2, 3, 4]
    times = [each.time_millis for each in (table.snapshot(number) for number in ids(table))]
    assert [each.timestamp_ms for each in shown.snapshots] == times
    assert [each.snapshot_id for each in shown.snapshot_log] == [1, 2, 3, 4, 5]
    assert shown.metadata_log == ()
    assert shown.snapshots[1].summary["manifests-kept"] == "1"
    assert unreferenced(table) == set()


def test_each_snapshot_has_its_own_schema(storage):
    table = published_table(storage, COLUMNS)
    table.write(rows_of(id=[0], note=["n0"]))
    changed = catalog_of(table).alter_table("shop.orders", lake.rename_column("note", "text"))
    changed.write(rows_of(id=[1], text=["b"]))
    forget(changed)
    lake.publish_table(changed)
    assert seen(changed, 1) == [{"id": 0, "note": "n0"}]
    assert seen(changed, 2) == [{"id": 0, "text": "n0"}, {"id": 1, "text": "b"}]


@pytest.mark.parametrize("version", ["2", "3"])
def test_tags_of_expired_snapshots_are_seen(storage, version):
    table, theirs = written_by_another_engine(storage, **{VERSION: version})
    theirs.tags.create("two", snapshot=2)
    theirs.tags.create("four", snapshot=4)
    theirs.write(rows_of(id=[9], note=["new"]), overwrite="table")
    theirs.write(rows_of(id=[10], note=["new"]))
    theirs.expire_snapshots(retain_max=2, retain_min=1)
    assert lake.publish_table(table).published == (2, 4, 5, 6)
    shown = iceberg(table)
    for tag in ("two", "four"):
        expected = content(table.scan(tag=tag).to_arrow())
        assert content(shown.scan(tag=tag).to_arrow()) == expected
    assert seen(table) == content(table.scan().to_arrow())
    metadata = shown._loaded().metadata
    # Snapshot 5 may not follow the snapshot of the tag directly, so no time before it has a state.
    assert [each.parent_id for each in metadata.snapshots] == [None, None, None, 5]
    assert [each.snapshot_id for each in metadata.snapshot_log] == [5, 6]
    assert metadata.snapshots[1].summary["added-records"] == "2"
    assert metadata.snapshots[2].summary["deleted-records"] == "4"
    table.tags.delete("two")
    assert ids(table) == [4, 5, 6]


def test_a_row_has_one_id_in_all_snapshots(storage):
    table, theirs = written_by_another_engine(storage, steps=3, **{VERSION: "3"})
    theirs.tags.create("one", snapshot=1)
    theirs.expire_snapshots(retain_max=1, retain_min=1)
    lake.publish_table(table)
    shown = iceberg(table)
    columns = ["id", "_row_id"]
    assert shown.scan(tag="one", columns=columns).to_arrow().to_pylist() == [
        {"id": 0, "_row_id": 0}
    ]
    assert content(shown.scan(columns=columns).to_arrow()) == [
        {"id": number, "_row_id": number} for number in range(3)
    ]
    assert shown._loaded().metadata.next_row_id == 3


@pytest.mark.parametrize(
    ("limit", "expected"), [("0", [5]), ("1", [2, 5]), ("2", [2, 4, 5]), ("3", [2, 3, 4, 5])]
)
def test_an_option_limits_the_history_and_prefers_tags(storage, limit, expected):
    table, theirs = written_by_another_engine(storage, steps=5, **{HISTORY: limit})
    theirs.tags.create("two", snapshot=2)
    lake.publish_table(table)
    assert ids(table) == expected
    for number in expected:
        assert seen(table, number) == content(table.scan(snapshot=number).to_arrow())


def test_the_history_begins_after_a_snapshot_whose_files_are_lost(storage, caplog):
    table, _ = written_by_another_engine(storage)
    storage.delete(table._handle.layout.manifest(table.snapshot(2).delta_manifest_list))
    with caplog.at_level(logging.WARNING):
        lake.publish_table(table)
    assert ids(table) == [3, 4]
    assert f"publishing the history of {table._handle.uri} from snapshot 3 on" in caplog.text
    assert seen(table, 3) == content(table.scan(snapshot=3).to_arrow())
    assert unreferenced(table) == set()


def test_snapshots_that_expire_meanwhile_are_not_shown(storage, monkeypatch):
    table, theirs = written_by_another_engine(storage)
    create, raced = PublishedVersions.create, []

    def second(self, number, metadata):
        if not raced:
            raced.append(number)
            theirs.expire_snapshots(retain_max=2, retain_min=1)
        return create(self, number, metadata)

    monkeypatch.setattr(PublishedVersions, "create", second)
    assert lake.publish_table(table).updated
    assert ids(table) == [3, 4]


def test_a_tag_of_a_snapshot_that_was_rolled_back_is_left_out(storage):
    table, theirs = written_by_another_engine(storage)
    theirs.tags.create("left", snapshot=3)
    tag = f"{ROOT}/tag/tag-left"
    kept = storage.read(tag)
    theirs.rollback(snapshot=2, as_latest=False, force=True)
    theirs.write(rows_of(id=[7], note=["other"]))
    storage.overwrite(tag, kept)
    theirs.write(rows_of(id=[8], note=["other"]))
    lake.publish_table(table)
    assert ids(table) == [1, 2, 3, 4]
    assert iceberg(table).tags.list() == []
    assert seen(table, 3) == content(table.scan(snapshot=3).to_arrow())
