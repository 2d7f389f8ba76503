"""Commits of a Paimon table are published as Iceberg metadata, which shows the same rows."""

from __future__ import annotations

import datetime as dt
import json
import logging
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.errors import CorruptTableError, UnavailableError
from lakeformat.paimon.metadata.manifest import ManifestEntry
from lakeformat.publish.versions import PublishedVersions
from lakeformat.storage import MemoryStorage
from tests.rewriting import rewrite_entries
from tests.unit.publish.published import (
    KEYED,
    ROOT,
    catalog_in,
    catalog_of,
    changed_elsewhere,
    content,
    file_of,
    iceberg,
    number_of,
    published_table,
    rows_of,
    seen,
    unobserved,
)

COLUMNS = [("id", "BIGINT"), ("note", "STRING")]


@pytest.fixture
def storage(request) -> MemoryStorage:
    return MemoryStorage(request.node.name)


def versions(storage) -> list[str]:
    names = (info.name for info in storage.list(f"{ROOT}/metadata"))
    return sorted(name for name in names if name.endswith(".json"))


def test_each_commit_of_an_append_table_is_an_iceberg_snapshot_of_its_number(storage):
    table = published_table(storage, COLUMNS)
    for number in range(3):
        table.write(rows_of(id=[number], note=[f"n{number}"]))
    shown = iceberg(table)
    assert [each.id for each in shown.snapshots()] == [1, 2, 3]
    for snapshot in (1, 2, 3):
        assert seen(table, snapshot) == content(table.scan(snapshot=snapshot).to_arrow())
    assert versions(storage) == [file_of(number) for number in (1, 2, 3)]
    assert storage.read(f"{ROOT}/metadata/version-hint.text") == str(number_of(3)).encode()
    newest = shown._loaded().metadata
    assert [(each.sequence_number, each.parent_id) for each in newest.snapshots] == [
        (1, None),
        (2, 1),
        (3, 2),
    ]
    assert [each.summary["operation"] for each in newest.snapshots] == ["append"] * 3


def test_a_commit_that_removes_new_files_reads_no_older_manifest(storage, monkeypatch):
    table = published_table(storage, COLUMNS)
    for number in range(5):
        table.write(rows_of(id=[number], note=["x"]))
    read, opened = MemoryStorage.read, []

    def watched(storage, path, *limit):
        opened.append(path)
        return read(storage, path, *limit)

    monkeypatch.setattr(MemoryStorage, "read", watched)
    table.delete("id = 4")
    manifests = {path for path in opened if "/metadata/" in path and "-m" in path}
    assert len(manifests) == 1
    monkeypatch.undo()
    assert seen(table) == content(table.scan().to_arrow())


def test_an_append_keeps_the_manifests_of_earlier_commits(storage):
    table = published_table(storage, COLUMNS)
    for number in range(3):
        table.write(rows_of(id=[number], note=["x"]))
    summary = iceberg(table)._loaded().metadata.snapshots[-1].summary
    assert (summary["manifests-created"], summary["manifests-kept"]) == ("1", "2")
    assert (summary["total-data-files"], summary["total-records"]) == ("3", "3")


def test_partitions_overwrites_and_compactions_follow(storage):
    table = published_table(storage, [*COLUMNS, ("dt", "DATE")], partition_by=["dt"])
    one, two = (pa.array([day], pa.date32()) for day in (1, 2))
    for day in (one, two, one, one):
        table.write(pa.table({"id": [1], "note": ["a"], "dt": day}))
    table.write(pa.table({"id": [9], "note": ["b"], "dt": two}), overwrite="partitions")
    table.compact(strategy="full")
    shown = iceberg(table)
    assert seen(table) == content(table.scan().to_arrow())
    kinds = [each.summary["operation"] for each in shown._loaded().metadata.snapshots]
    assert kinds == ["append"] * 4 + ["overwrite", "replace"]
    assert shown.scan(where="dt = DATE '1970-01-03'").to_arrow().num_rows == 1
    for snapshot in range(1, 7):
        assert seen(table, snapshot) == content(table.scan(snapshot=snapshot).to_arrow())


def test_a_keyed_table_shows_the_rows_of_its_last_full_compaction(storage):
    table = published_table(storage, COLUMNS, **KEYED)
    table.write(rows_of(id=[1, 2], note=["a", "b"]))
    assert seen(table) == []
    table.compact(strategy="full")
    compacted = content(table.scan().to_arrow())
    assert seen(table) == compacted
    table.write(rows_of(id=[2, 3], note=["B", "c"]))
    assert seen(table) == compacted
    table.write(rows_of(id=[1], note=["a"]), kinds=["-D"])
    table.compact(strategy="full")
    assert seen(table) == content(table.scan().to_arrow())
    assert [row["id"] for row in seen(table)] == [2, 3]


@pytest.mark.parametrize("trigger", ["3", "9"])
def test_a_keyed_table_shows_each_key_once_after_its_number_of_levels_changed(storage, trigger):
    table = published_table(storage, COLUMNS, **KEYED)
    table.write(rows_of(id=[1, 2], note=["a", "b"]))
    table.compact(strategy="full")
    table = catalog_in(storage).alter_table(
        "shop.orders", lake.set_option("num-sorted-run.compaction-trigger", trigger)
    )
    table.write(rows_of(id=[1], note=["new"]))
    assert seen(table) == [{"id": 1, "note": "a"}, {"id": 2, "note": "b"}]

    table.compact(strategy="full")

    assert seen(table) == [{"id": 1, "note": "new"}, {"id": 2, "note": "b"}]


def test_new_partitions_are_seen_after_the_number_of_levels_was_lowered(storage):
    columns = [*COLUMNS, ("dt", "INT")]
    keys = {"primary_key": ["id", "dt"], "partition_by": ["dt"], "options": {"bucket": "1"}}
    table = published_table(storage, columns, **keys)
    for trigger, day in ("5", 1), ("2", 2), ("9", 3):
        table = catalog_of(table).alter_table(
            "shop.orders", lake.set_option("num-sorted-run.compaction-trigger", trigger)
        )
        table.write(rows_of(id=[1], note=["a"], dt=pa.array([day], pa.int32())))
        table.compact(strategy="full", partitions=[{"dt": day}])
        assert seen(table) == content(table.scan().to_arrow())
    levels = table.system_table("files").scan().to_arrow().column("level").to_pylist()
    assert sorted(levels) == [2, 5, 9]
    remove_metadata(storage)
    assert lake.publish_table(table).rebuilt
    assert seen(table) == content(table.scan().to_arrow())


def remove_metadata(storage) -> None:
    for name in storage.files(f"{ROOT}/metadata"):
        storage.delete(name)


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("STRING", ["", "1", "2", "x" * 30]),
        ("INT", [-1, 1, 2, 10]),
        ("DATE", [dt.date(1969, 1, 1), *(dt.date(2024, 1, day) for day in (1, 2, 3))]),
        ("DECIMAL(5, 2)", [Decimal("-1.5"), Decimal(1), Decimal(2), Decimal("9.99")]),
        ("DOUBLE", [-1.5, 0.0, 2.0, float("nan")]),
    ],
)
def test_an_overwrite_rewrites_the_manifests_of_its_partition_only(storage, kind, given):
    table = published_table(storage, [("id", "BIGINT"), ("p", kind)], partition_by=["p"])
    values = pa.array([None, *given], table.schema.arrow_schema().field("p").type)
    for place in range(len(values)):
        table.write(pa.table({"id": [place], "p": values.slice(place, 1)}))
    for place in (0, 2, 4):
        rows = pa.table({"id": [90 + place], "p": values.slice(place, 1)})
        table.write(rows, overwrite="partitions")
        kept = iceberg(table)._loaded().metadata.snapshots[-1].summary["manifests-kept"]
        assert int(kept) >= (0 if kind == "DOUBLE" else 4)
    assert repr(seen(table)) == repr(content(table.scan().to_arrow()))  # NaN is not NaN


@pytest.mark.parametrize("further", [False, True])
def test_a_schema_number_that_another_engine_uses_again_is_published_anew(storage, further):
    table = published_table(storage, COLUMNS)
    table.write(rows_of(id=[1], note=["a"]))
    table = catalog_of(table).alter_table("shop.orders", lake.add_column("old", "INT"))
    table.write(pa.table({"id": [2], "note": ["b"], "old": pa.array([7], pa.int32())}))
    table.rollback(snapshot=1)
    table.expire_snapshots(retain_max=1, retain_min=1)
    storage.delete(f"{ROOT}/schema/schema-1")
    table = catalog_of(table).alter_table("shop.orders", lake.add_column("new", "STRING"))
    if further:
        table = catalog_of(table).alter_table("shop.orders", lake.drop_column("note"))
    rows = {"id": [3], "note": ["c"], "new": ["x"]}
    table.write(pa.table({name: rows[name] for name in table.schema.column_names}))
    assert seen(table) == content(table.scan().to_arrow())
    schemas = iceberg(table)._loaded().metadata.schemas
    assert [str(each.fields[-1].name) for each in schemas[:2]] == ["note", "new"]


def test_old_files_are_read_under_an_evolved_schema(storage):
    table = published_table(storage, [("id", "INT"), ("note", "STRING"), ("old", "INT")])
    table.write(pa.table({"id": pa.array([1], pa.int32()), "note": ["a"], "old": [7]}))
    table = catalog_in(storage).alter_table(
        "shop.orders",
        lake.update_column_type("id", "BIGINT"),
        lake.rename_column("note", "text"),
        lake.drop_column("old"),
        lake.add_column("old", "STRING"),
    )
    table.write(pa.table({"id": [1 << 40], "text": ["b"], "old": ["new"]}))
    assert seen(table) == content(table.scan().to_arrow())
    assert seen(table, 1) == [{"id": 1, "note": "a", "old": 7}]
    metadata = iceberg(table)._loaded().metadata
    assert metadata.current_schema_id == metadata.snapshots[-1].schema_id == table.schema.id


def test_commits_of_other_engines_are_published_later_one_by_one(storage):
    table = published_table(storage, COLUMNS)
    table.write(rows_of(id=[1], note=["a"]))
    theirs = unobserved(table)
    for number in (2, 3):
        theirs.write(rows_of(id=[number], note=["theirs"]))
    assert [row["id"] for row in seen(table)] == [1]
    report = lake.publish_table(table)
    assert (report.published, report.rebuilt, report.snapshot_id) == ((2, 3), False, 3)
    assert [row["id"] for row in seen(table)] == [1, 2, 3]
    assert [row["id"] for row in seen(table, 2)] == [1, 2]
    again = lake.publish_table(table)
    assert (again.published, again.reason) == ((), "the Iceberg metadata shows snapshot 3 already")
    assert (report.updated, again.updated) == (False, False)


def test_tags_of_other_engines_are_published_without_a_new_snapshot(storage):
    table = published_table(storage, COLUMNS)
    table.write(rows_of(id=[1], note=["a"]))
    unobserved(table).tags.create("v1")
    report = lake.publish_table(table)
    assert (report.published, report.updated) == ((), True)
    assert report.reason == (
        "the Iceberg metadata shows snapshot 1 already; "
        "a change of tags, an expiry or a rollback was published"
    )
    assert iceberg(table)._loaded().metadata.references["v1"].snapshot_id == 1
    assert lake.publish_table(table).updated is False


def test_a_table_is_published_with_its_history_if_nothing_was_before(storage):
    table = published_table(storage, COLUMNS)
    theirs = unobserved(table)
    for number in range(3):
        theirs.write(rows_of(id=[number], note=["theirs"]))
    report = lake.publish_table(table)
    assert (report.published, report.rebuilt) == ((1, 2, 3), True)
    assert versions(storage) == [file_of(1)]
    assert [row["id"] for row in seen(table)] == [0, 1, 2]
    assert [each.id for each in iceberg(table).snapshots()] == [1, 2, 3]
    table.write(rows_of(id=[3], note=["ours"]))
    assert [row["id"] for row in seen(table)] == [0, 1, 2, 3]


def test_a_history_that_the_table_has_left_is_replaced(storage):
    """Another engine rolls back and uses the numbers again."""
    table = published_table(storage, COLUMNS)
    for number in range(4):
        table.write(rows_of(id=[number], note=["left"]))
    before = iceberg(table)._loaded().metadata
    theirs = unobserved(table)
    theirs.rollback(snapshot=2, as_latest=False)
    theirs.write(rows_of(id=[9], note=["new"]))
    report = lake.publish_table(table)
    assert (report.published, report.rebuilt) == ((1, 2, 3), True)
    assert seen(table) == content(table.scan().to_arrow())
    after = iceberg(table)._loaded().metadata
    assert after.table_uuid == before.table_uuid
    assert versions(storage) == [file_of(number) for number in range(1, 6)]


def test_a_rollback_to_a_published_snapshot_is_another_metadata_file(storage):
    table = published_table(storage, COLUMNS)
    for number in range(3):
        table.write(rows_of(id=[number], note=["x"]))
    unobserved(table).rollback(snapshot=2, as_latest=False)
    report = lake.publish_table(table)
    assert (report.published, report.snapshot_id, report.updated) == ((), 2, True)
    assert [row["id"] for row in seen(table)] == [0, 1]
    assert versions(storage) == [file_of(number) for number in range(1, 5)]
    assert [each.id for each in iceberg(table).snapshots()] == [1, 2]


def test_a_failed_publication_is_a_warning_and_is_made_up_for(storage, monkeypatch, caplog):
    table = published_table(storage, COLUMNS)
    table.write(rows_of(id=[1], note=["a"]))

    def fails(*_):
        raise UnavailableError("the storage is away")

    with monkeypatch.context() as broken, caplog.at_level(logging.WARNING):
        broken.setattr(PublishedVersions, "create", fails)
        files = set(storage.files())
        assert table.write(rows_of(id=[2], note=["b"])).snapshot_id == 2
    assert "run `lake publish shop.orders`" in caplog.text
    assert "the storage is away" in caplog.text
    left = {name for name in set(storage.files()) - files if "/metadata/" in name}
    assert left == set()
    assert [row["id"] for row in seen(table)] == [1]
    table.write(rows_of(id=[3], note=["c"]))
    assert [row["id"] for row in seen(table)] == [1, 2, 3]
    assert [each.id for each in iceberg(table).snapshots()] == [1, 2, 3]


def test_two_publications_at_once_publish_each_snapshot_once(storage, monkeypatch):
    table = published_table(storage, COLUMNS)
    table.write(rows_of(id=[1], note=["a"]))
    unobserved(table).write(rows_of(id=[2], note=["b"]))
    create, raced = PublishedVersions.create, []

    def second(self, number, metadata):
        if not raced:
            raced.append(number)
            assert lake.publish_table(table).published == (2,)
        return create(self, number, metadata)

    monkeypatch.setattr(PublishedVersions, "create", second)
    report = lake.publish_table(table)
    assert (report.published, report.snapshot_id) == ((), 2)
    assert [row["id"] for row in seen(table)] == [1, 2]
    lists = [name for name in storage.files() if "/metadata/snap-" in name]
    assert len(lists) == 2


def test_a_metadata_file_that_a_power_cut_has_torn_is_written_again(storage):
    table = published_table(storage, COLUMNS)
    for number in (1, 2):
        table.write(rows_of(id=[number], note=["a"]))
    uuid = iceberg(table)._loaded().metadata.table_uuid
    storage.overwrite(f"{ROOT}/metadata/{file_of(2)}", b"")
    [reason] = table.health().reasons
    assert "cannot be read" in reason.finding
    lake.publish_table(table)
    assert seen(table) == content(table.scan().to_arrow())
    assert iceberg(table)._loaded().metadata.table_uuid == uuid
    assert table.health().reasons == ()


def test_a_damaged_metadata_file_after_the_newest_one_does_not_hide_it(storage):
    table = published_table(storage, COLUMNS)
    table.write(rows_of(id=[1], note=["a"]))
    storage.overwrite(f"{ROOT}/metadata/{file_of(2)}", b"")
    storage.overwrite(f"{ROOT}/metadata/version-hint.text", str(number_of(2)).encode())
    assert lake.publish_table(table).rebuilt
    assert seen(table) == content(table.scan().to_arrow())
    assert not lake.publish_table(table).rebuilt


def test_a_lost_hint_is_written_again(storage):
    table = published_table(storage, COLUMNS)
    table.write(rows_of(id=[1], note=["a"]))
    storage.delete(f"{ROOT}/metadata/version-hint.text")
    lake.publish_table(table)
    assert storage.read(f"{ROOT}/metadata/version-hint.text") == str(number_of(1)).encode()


def test_metadata_of_another_table_is_not_touched(storage):
    table = published_table(storage, COLUMNS)
    path = f"{ROOT}/metadata/{file_of(1)}"
    table.write(rows_of(id=[1], note=["a"]))
    members = json.loads(storage.read(path))
    members["snapshots"][0]["snapshot-id"] = members["current-snapshot-id"] = 77
    members["refs"]["main"]["snapshot-id"] = 77
    storage.overwrite(path, json.dumps(members).encode())
    with pytest.raises(lake.InvalidRequestError, match="was not published for this table"):
        lake.publish_table(table)


def test_expired_snapshots_leave_the_metadata_before_their_files_do(storage):
    table = published_table(storage, COLUMNS)
    for number in range(3):
        table.write(rows_of(id=[number], note=["x"]))
    table.compact(strategy="full")
    table.write(rows_of(id=[3], note=["x"]))
    report = table.expire_snapshots(retain_max=1, retain_min=1)
    assert report.deleted.failures == 0
    shown = iceberg(table)
    assert [each.id for each in shown.snapshots()] == [5]
    assert seen(table) == content(table.scan().to_arrow())
    lists = [name for name in storage.files() if "/metadata/snap-" in name]
    assert len(lists) == 1
    table.write(rows_of(id=[4], note=["x"]))
    assert [each.id for each in iceberg(table).snapshots()] == [5, 6]


def test_an_expiry_waits_for_the_publication(storage, monkeypatch):
    """The files that readers of an outdated head need are not deleted."""
    table = published_table(storage, COLUMNS)
    table.write(rows_of(id=[1], note=["a"]))
    theirs = unobserved(table)
    theirs.write(rows_of(id=[2], note=["b"]), overwrite="table")
    theirs.write(rows_of(id=[3], note=["b"]))

    def fails(*_):
        raise UnavailableError("the storage is away")

    with monkeypatch.context() as broken:
        broken.setattr(PublishedVersions, "create", fails)
        with pytest.raises(UnavailableError, match="away"):
            table.expire_snapshots(retain_max=1, retain_min=1)
    assert [row["id"] for row in seen(table)] == [1]
    table.expire_snapshots(retain_max=1, retain_min=1)
    assert [row["id"] for row in seen(table)] == [2, 3]


def test_an_expiry_names_the_table_and_the_option_that_blocks_it(storage):
    table = published_table(storage, [("id", "INT")], options={"snapshot.num-retained.min": "1"})
    for number in (1, 2):
        table.write(rows_of(id=pa.array([number], pa.int32())))
    table = changed_elsewhere(table, lake.update_column_type("id", "STRING"))
    table.write(rows_of(id=["three"]))
    with pytest.raises(lake.UnsupportedError, match=r"no file of .*'disabled'. Nothing was"):
        table.expire_snapshots(retain_max=1)


def test_a_commit_during_an_expiry_does_not_publish_expired_snapshots(storage, monkeypatch):
    table = published_table(storage, COLUMNS)
    for number in range(3):
        table.write(rows_of(id=[number], note=["x"]))
    create, others = PublishedVersions.create, [catalog_in(storage).table("shop.orders")]

    def commits_before(versions, number, metadata):
        while others:
            others.pop().write(rows_of(id=[3], note=["x"]))
        return create(versions, number, metadata)

    monkeypatch.setattr(PublishedVersions, "create", commits_before)
    table.expire_snapshots(retain_max=1, retain_min=1)
    assert [each.id for each in iceberg(table).snapshots()] == [3, 4]


@pytest.mark.parametrize("by_tag", [False, True])
def test_a_commit_that_read_the_metadata_before_an_expiry_publishes_nothing_expired(
    storage, monkeypatch, by_tag
):
    table = published_table(storage, COLUMNS)
    table.write(rows_of(id=[0], note=["x"]))
    if by_tag:
        table.tags.create("first", snapshot=1)
    table.write(rows_of(id=[1], note=["x"]), overwrite="table")
    if by_tag:
        table.expire_snapshots(retain_max=1, retain_min=1)
    create, others = PublishedVersions.create, [catalog_in(storage).table("shop.orders")]

    def expires_before(versions, number, metadata):
        while others:
            other = others.pop()
            # The expiry sees the table before the commit, whose snapshot is durable already.
            late = storage.files()[f"{ROOT}/snapshot/snapshot-3"]
            storage.delete(f"{ROOT}/snapshot/snapshot-3")
            if by_tag:
                other.tags.delete("first")
            else:
                other.expire_snapshots(retain_max=1, retain_min=1)
            storage.create(f"{ROOT}/snapshot/snapshot-3", late)
        return create(versions, number, metadata)

    monkeypatch.setattr(PublishedVersions, "create", expires_before)
    table.write(rows_of(id=[2], note=["x"]))
    shown = iceberg(table)
    assert ([each.id for each in shown.snapshots()], shown.tags.list()) == ([2, 3], [])
    assert seen(table) == content(table.scan().to_arrow())


@pytest.mark.parametrize("by_tag", [False, True])
def test_no_file_is_deleted_while_published_snapshots_name_it(storage, monkeypatch, by_tag):
    table = published_table(storage, COLUMNS)
    table.write(rows_of(id=[1], note=["a"]))
    if by_tag:
        table.tags.create("first", snapshot=1)
    table.write(rows_of(id=[2], note=["b"]), overwrite="table")
    if by_tag:
        table.expire_snapshots(retain_max=1, retain_min=1)

    def remove() -> None:
        if by_tag:
            table.tags.delete("first")
        else:
            table.expire_snapshots(retain_max=1, retain_min=1)

    def fails(*_):
        raise UnavailableError("the storage is away")

    with monkeypatch.context() as broken:
        broken.setattr(PublishedVersions, "create", fails)
        with pytest.raises(UnavailableError, match="away"):
            remove()
    assert seen(table, 1) == [{"id": 1, "note": "a"}]

    remove()

    assert [each.id for each in iceberg(table).snapshots()] == [2]
    assert len([name for name in storage.files() if name.endswith(".parquet")]) == 1


def test_tags_are_published_and_keep_their_expired_snapshots(storage):
    table = published_table(storage, COLUMNS)
    table.write(rows_of(id=[1], note=["a"]))
    table.tags.create("first", snapshot=1)
    table.write(rows_of(id=[2], note=["b"]), overwrite="table")
    table.expire_snapshots(retain_max=1, retain_min=1)
    shown = iceberg(table)
    assert [each.id for each in shown.snapshots()] == [1, 2]
    assert shown.scan(tag="first").to_arrow().to_pylist() == [{"id": 1, "note": "a"}]
    table.tags.rename("first", "one")
    assert [tag.name for tag in iceberg(table).tags.list()] == ["one"]
    table.tags.delete("one")
    shown = iceberg(table)
    assert ([each.id for each in shown.snapshots()], shown.tags.list()) == ([2], [])
    assert seen(table) == content(table.scan().to_arrow())


def test_a_rollback_that_keeps_history_is_published_at_once(storage):
    table = published_table(storage, COLUMNS)
    for number in range(3):
        table.write(rows_of(id=[number], note=["x"]))
    table.rollback(snapshot=1)
    assert seen(table) == [{"id": 0, "note": "x"}]
    assert [each.id for each in iceberg(table).snapshots()] == [1, 2, 3, 4]


def test_a_rollback_that_cuts_history_shows_the_earlier_state_at_once(storage):
    table = published_table(storage, COLUMNS)
    for number in range(3):
        table.write(rows_of(id=[number], note=["x"]))
    table.rollback(snapshot=1, as_latest=False)
    assert [row["id"] for row in seen(table)] == [0]
    table.write(rows_of(id=[9], note=["new"]))
    assert [row["id"] for row in seen(table)] == [0, 9]
    assert [each.id for each in iceberg(table).snapshots()] == [1, 2]


def test_health_names_the_snapshots_that_readers_miss(storage):
    table = published_table(storage, COLUMNS)
    table.write(rows_of(id=[1], note=["a"]))
    assert table.health().reasons == ()
    theirs = unobserved(table)
    theirs.write(rows_of(id=[2], note=["b"]))
    theirs.write(rows_of(id=[3], note=["c"]))
    [reason] = table.health().reasons
    assert reason.finding == (
        "the Iceberg metadata is 2 snapshots behind: it shows snapshot 1, and the newest is 3"
    )
    assert reason.advice == "lake publish shop.orders"
    lake.publish_table(table)
    assert table.health().reasons == ()
    theirs.rollback(snapshot=1, as_latest=False)
    for written in range(4):  # also if another snapshot has its number, and is not the newest
        [reason] = table.health().reasons
        assert "shows snapshot 3, which a rollback removed from the table" in reason.finding
        theirs.write(rows_of(id=[4], note=["d"]))
        assert lake.publication_lag(table).snapshots == 2 + written


def test_a_damaged_snapshot_does_not_hide_the_lag(storage):
    table = published_table(storage, COLUMNS)
    table.write(rows_of(id=[1], note=["a"]))
    unobserved(table).write(rows_of(id=[2], note=["b"]))
    storage.delete(f"{ROOT}/snapshot/snapshot-1")
    storage.create(f"{ROOT}/snapshot/snapshot-1", b"{")
    lag = lake.publication_lag(table)
    assert (lag.snapshots, lag.finding) == (
        1,
        "the Iceberg metadata is 1 snapshot behind: it shows snapshot 1, and the newest is 2",
    )


def test_rows_that_are_lost_with_their_manifests_leave_the_metadata(storage):
    table = published_table(storage, COLUMNS)
    for number in range(3):
        table.write(rows_of(id=[number], note=["x"]))
    [lost, *_] = sorted(name for name in storage.files() if "/manifest/manifest-0" in name)
    storage.delete(lost)
    assert table.remove_missing_manifests(dry_run=False).rows_after == 2
    assert seen(table) == content(table.scan().to_arrow())
    newest = iceberg(table)._loaded().metadata.snapshots
    assert [each.snapshot_id for each in newest] == [1, 2, 3, 4]
    assert newest[-1].summary["total-records"] == "2"
    table.write(rows_of(id=[3], note=["x"]))
    assert seen(table) == content(table.scan().to_arrow())
    assert iceberg(table)._loaded().metadata.snapshots[-1].summary["total-records"] == "3"


def without_end_of_partition(entry: ManifestEntry) -> ManifestEntry:
    return replace(entry, partition=entry.partition[:-3])


def without_end_of_bounds(entry: ManifestEntry) -> ManifestEntry:
    statistics = entry.file.value_stats
    shorter = replace(statistics, min_values=statistics.min_values[:-3])
    return replace(entry, file=replace(entry.file, value_stats=shorter))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (without_end_of_partition, "_PARTITION of data file data-.* in .*orders/manifest/manif"),
        (without_end_of_bounds, "/shop.db/orders: _VALUE_STATS of data file data-"),
    ],
)
@pytest.mark.parametrize("has_metadata", [True, False])
def test_a_damaged_entry_is_named_by_the_publication(storage, has_metadata, change, named):
    table = published_table(storage, [*COLUMNS, ("day", "INT")], partition_by=["day"])
    rows = rows_of(id=[1], note=["a"], day=pa.array([1], pa.int32()))
    if has_metadata:
        table.write(rows)
    unobserved(table).write(rows)
    rewrite_entries(table, change)
    with pytest.raises(CorruptTableError, match=named):
        lake.publish_table(table)


def test_a_renamed_table_is_published_at_its_new_address(storage):
    table = published_table(storage, COLUMNS)
    table.write(rows_of(id=[1], note=["a"]))
    renamed = catalog_in(storage).rename_table("shop.orders", "shop.sales", force=True)
    assert seen(renamed) == [{"id": 1, "note": "a"}]
    assert renamed.health().reasons == ()
    assert iceberg(renamed)._loaded().metadata.location.endswith("/sales")


@pytest.mark.parametrize("version", ["2", "3"])
def test_a_table_that_is_renamed_and_renamed_back_is_published_at_its_first_address(
    storage, version
):
    options = {"metadata.iceberg.format-version": version}
    table = published_table(storage, COLUMNS, options=options)
    table.write(rows_of(id=[1]))
    renamed = catalog_of(table).rename_table("shop.orders", "shop.sales", force=True)
    table = catalog_of(renamed).rename_table("shop.sales", "shop.orders", force=True)
    assert lake.publication_lag(table).snapshots == 0
    assert seen(table) == content(table.scan().to_arrow())
    assert not lake.publish_table(table).rebuilt
    table.write(rows_of(id=[2]))
    assert seen(table) == content(table.scan().to_arrow())


def test_health_names_metadata_of_an_earlier_address_until_a_publication(storage):
    table = published_table(storage, COLUMNS)
    table.write(rows_of(id=[1], note=["a"]))
    for name, data in storage.files().items():  # as the command mv does
        storage.create(name.replace("/orders/", "/sales/"), data)
    moved = catalog_in(storage).table("shop.sales")
    [reason] = moved.health().reasons
    assert "names the files at the earlier address of the table" in reason.finding
    assert reason.advice == "lake publish shop.sales"
    assert lake.publish_table(moved).rebuilt
    assert moved.health().reasons == ()
    assert seen(moved) == [{"id": 1, "note": "a"}]


def test_only_tables_with_the_option_are_published(storage):
    table = catalog_in(storage).create_table("shop.plain", COLUMNS)
    with pytest.raises(lake.InvalidRequestError, match=r"metadata\.iceberg\.storage"):
        lake.publish_table(table)
    table.write(rows_of(id=[1], note=["a"]))
    assert not [name for name in storage.files() if "/metadata/" in name]
