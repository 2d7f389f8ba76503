"""Clones: another table of the same rows, whole at once, and never on top of something else."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakeformat as lake
from lakeformat.catalog.transfer.clone import CLONE_MARK
from lakeformat.paimon.metadata.changelog_directory import changelog_ids
from lakeformat.paimon.metadata.schema_file import schema_ids
from lakeformat.paimon.metadata.tag import Tag, create_tag
from tests.expired import missing, unneeded
from tests.golden.folder import golden_folder
from tests.keyed_rows import KeyedRows

EVERYTHING = {
    "bucket": "2",
    "changelog-producer": "input",
    "deletion-vectors.enabled": "true",
    "file-index.bitmap.columns": "n",
    "file-index.in-manifest-threshold": "1 b",
}


@pytest.fixture
def catalog(tmp_path) -> lake.Catalog:
    return opened(tmp_path / "here")


@pytest.fixture
def other(tmp_path) -> lake.Catalog:
    return opened(tmp_path / "there")


def opened(path: Path) -> lake.Catalog:
    allowed = {"external-roots": str(path.parent / "elsewhere")}
    catalog = lake.open_catalog(str(path), options=allowed)
    catalog.create_database("shop")
    return catalog


def filled(catalog: lake.Catalog, options: dict[str, str] = EVERYTHING) -> lake.Table:
    table = catalog.create_table(
        "shop.orders",
        [("id", "BIGINT"), ("dt", "STRING"), ("n", "STRING")],
        primary_key=["id", "dt"],
        partition_by=["dt"],
        options=options,
    )
    for number in range(3):
        days = ["a", "b"]
        table.write(pa.table({"id": [number, number + 1], "dt": days, "n": [f"{number}", "x"]}))
    table.compact()
    table.analyze("all")
    return catalog.alter_table("shop.orders", lake.add_column("more", "INT"))


def states(table: lake.Table) -> dict[int, list[dict]]:
    return {
        snapshot.id: sorted(
            table.scan(snapshot=snapshot.id).to_arrow().to_pylist(), key=lambda row: str(row)
        )
        for snapshot in table.snapshots()
    }


def newest(table: lake.Table) -> list[dict]:
    return sorted(table.scan().to_arrow().to_pylist(), key=str)


def directory(table: lake.Table) -> Path:
    return Path(table.location.removeprefix("file://"))


def all_files(table: lake.Table) -> dict[str, bytes]:
    root = directory(table)
    return {
        str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()
    }


def test_the_newest_state_is_another_table_of_the_same_rows(catalog, other):
    table = filled(catalog)
    before = all_files(table)
    report = lake.clone_table(table, other, "shop.copy")
    clone = other.table("shop.copy")
    assert newest(clone) == newest(table)
    assert clone.schema == table.schema
    assert [snapshot.id for snapshot in clone.snapshots()] == [table.latest_snapshot().id]
    assert (report.files, report.copied) == (report.files, report.files)
    assert all_files(table) == before
    assert not (directory(clone) / CLONE_MARK).exists()


def test_a_clone_lives_a_life_of_its_own(catalog, other):
    table = filled(catalog)
    lake.clone_table(table, other, "shop.copy")
    clone, before = other.table("shop.copy"), states(table)
    clone.write(pa.table({"id": [9], "dt": ["a"], "n": ["new"]}))
    clone.compact()
    assert len(newest(clone)) == len(newest(table)) + 1
    assert states(table) == before
    assert clone.health(unknown=True).verdict


def test_a_full_clone_has_every_snapshot_tag_branch_and_change(catalog, other):
    table = filled(catalog)
    first = table.snapshots()[0]
    create_tag(table._handle.storage, table._handle.layout, Tag("v1", first))
    assert first.changelog_manifest_list is not None
    lake.clone_table(table, other, "shop.copy", full=True)
    clone = other.table("shop.copy")
    assert states(clone) == states(table)
    assert clone.changes(0).to_arrow().equals(table.changes(0).to_arrow())
    assert clone.scan(tag="v1").to_arrow().equals(table.scan(tag="v1").to_arrow())
    assert clone.system_table("statistics").scan().to_arrow().num_rows == 1


def test_a_full_clone_of_golden_tables_reads_like_them(other):
    golden = golden_folder()
    for name in ("tags_and_branches", "schema_evolved", "deletion_vectors"):
        table = lake.open_table(str(golden / "format" / name / "table"))
        lake.clone_table(table, other, f"shop.{name}", full=True)
        clone = other.table(f"shop.{name}")
        assert states(clone) == states(table), name
        for system in ("tags", "branches"):
            count = table.system_table(system).scan().to_arrow().num_rows
            assert clone.system_table(system).scan().to_arrow().num_rows == count


def test_one_snapshot_comes_with_the_columns_of_then(catalog, other):
    table = filled(catalog)
    table.write(pa.table({"id": [5], "dt": ["a"], "n": ["x"], "more": pa.array([1], pa.int32())}))
    lake.clone_table(table, other, "shop.copy", snapshot=2)
    clone = other.table("shop.copy")
    assert clone.schema.column_names == ["id", "dt", "n"]
    assert states(clone) == {2: states(table)[2]}


@pytest.mark.parametrize("compacts", [False, True])
def test_a_full_clone_asks_of_a_changelog_for_nothing_that_went_with_its_snapshot(other, compacts):
    """For an append table the changelog has the written files; older and compacted ones expire."""
    longer = {
        f"{what}.num-retained.{end}": count
        for what, count in (("snapshot", "1"), ("changelog", "4"))
        for end in ("min", "max")
    }
    rows = KeyedRows({**longer, "compaction.min.file-num": "2"}, keyed=False, partitioned=True)
    table = rows.table
    for number in range(4):
        rows.commit(("+I", "a", number, "old"))
        rows.commit(("+I", "a", number, "more"))
        if compacts:
            table.compact(executor="serial")
        elif number == 1:
            table.drop_partitions([{"p": "a"}])
    for _ in range(2):
        table.expire_snapshots()
    head = table.latest_snapshot().id
    changelogs = changelog_ids(table._handle.storage, table._handle.layout)
    assert changelogs == [*range(changelogs[0], head)]
    lake.clone_table(table, other, "shop.copy", full=True)
    clone = other.table("shop.copy")
    assert (missing(clone), unneeded(clone)) == (set(), set())
    assert newest(clone) == newest(table)
    assert (
        clone.changes(changelogs[0], head)
        .to_arrow()
        .equals(table.changes(changelogs[0], head).to_arrow())
    )


def test_a_full_clone_is_whole_while_a_rollback_to_a_tag_is_under_way(other):
    """Its snapshot exists again, but those between it and the remaining ones do not."""
    rows = KeyedRows()
    for number in range(4):
        rows.commit(("+I", number, "x"))
    rows.tag("one", 1)
    handle, layout = rows.table._handle, rows.table._handle.layout
    content = handle.storage.read(layout.snapshot(1))
    rows.table.expire_snapshots(retain_max=2, retain_min=2)
    handle.storage.create(layout.snapshot(1), content)
    lake.clone_table(rows.table, other, "shop.copy", full=True)
    clone = other.table("shop.copy")
    assert missing(clone) == set()
    assert states(clone) == states(rows.table)


def test_a_tag_is_cloned_though_its_snapshot_has_expired(catalog, other):
    table = filled(catalog)
    handle, first = table._handle, table.snapshots()[0]
    rows = states(table)[1]
    create_tag(handle.storage, handle.layout, Tag("v1", first))
    handle.storage.delete(handle.layout.snapshot(1))
    lake.clone_table(table, other, "shop.copy", tag="v1")
    assert newest(other.table("shop.copy")) == rows


def test_an_empty_table_is_cloned_with_its_schema(catalog, other):
    table = catalog.create_table("shop.empty", [("id", "BIGINT")])
    lake.clone_table(table, other, "shop.empty")
    clone = other.table("shop.empty")
    assert (clone.schema, clone.latest_snapshot()) == (table.schema, None)


def test_a_branch_becomes_a_table(other):
    golden = golden_folder() / "format" / "tags_and_branches" / "table"
    branch = lake.open_table(str(golden), branch="dev")
    lake.clone_table(branch, other, "shop.dev")
    assert newest(other.table("shop.dev")) == newest(branch)


def test_a_dry_run_counts_and_writes_nothing(catalog, other):
    table = filled(catalog)
    planned = lake.clone_table(table, other, "shop.copy", dry_run=True)
    assert other.list_tables("shop") == []
    done = lake.clone_table(table, other, "shop.copy")
    assert (planned.files, planned.bytes) == (done.files, done.bytes)


def test_an_interrupted_clone_goes_on_and_copies_torn_files_again(catalog, other):
    table = filled(catalog)
    target = directory(table).parents[2] / "there" / "shop.db" / "copy"
    lake.clone_table(table, other, "shop.copy")
    whole = all_files(other.table("shop.copy"))
    for path in (target / "schema").iterdir():
        path.unlink()
    said = {"source": table.location, "branch": "main", "what": "the newest snapshot"}
    (target / CLONE_MARK).write_text(json.dumps(said, indent=2))
    torn = next(target.rglob("data-*.parquet"))
    torn.write_bytes(b"\0" * torn.stat().st_size)
    gone = next(target.rglob("manifest-list-*"))
    gone.unlink()
    report = lake.clone_table(table, other, "shop.copy")
    assert report.copied == 2
    assert all_files(other.table("shop.copy")) == whole


def test_a_clone_interrupted_at_its_very_end_is_finished_without_a_touch(catalog, other):
    table = filled(catalog)
    lake.clone_table(table, other, "shop.copy")
    clone = other.table("shop.copy")
    clone.write(pa.table({"id": [9], "dt": ["a"], "n": ["new"]}))
    rows = newest(clone)
    said = {"source": table.location, "branch": "main", "what": "the newest snapshot"}
    (directory(clone) / CLONE_MARK).write_text(json.dumps(said, indent=2))
    (directory(clone) / "schema" / "schema-0").unlink()
    report = lake.clone_table(table, other, "shop.copy")
    assert report.copied == 0
    assert report.snapshot_ids == tuple(each.id for each in clone.snapshots())
    assert schema_ids(clone._handle.storage, clone._handle.layout) == [0, 1]
    assert newest(other.table("shop.copy")) == rows


def test_a_table_or_another_clone_in_the_place_is_left_alone(catalog, other):
    table = filled(catalog)
    other.create_table("shop.copy", [("id", "BIGINT")])
    with pytest.raises(lake.AlreadyExistsError, match=r"shop\.copy"):
        lake.clone_table(table, other, "shop.copy")
    target = directory(table).parents[2] / "there" / "shop.db" / "half"
    target.mkdir()
    (target / CLONE_MARK).write_text("{}")
    drop = re.escape(f"`lake -w {other.location} drop-table shop.half`")
    with pytest.raises(lake.AlreadyExistsError, match=f"another clone.*{drop}"):
        lake.clone_table(table, other, "shop.half")
    (target / CLONE_MARK).unlink()
    (target / "manifest").mkdir()
    (target / "manifest" / "manifest-x").write_text("")
    with pytest.raises(lake.AlreadyExistsError, match=f"files of a former table.*{drop}"):
        lake.clone_table(table, other, "shop.half")


def test_what_cannot_be_cloned_is_refused_by_name(catalog, other, tmp_path):
    table = filled(catalog)
    with pytest.raises(lake.InvalidRequestError, match="full=True"):
        lake.clone_table(table, other, "shop.copy", full=True, tag="v1")
    with pytest.raises(lake.InvalidRequestError, match="system table"):
        lake.clone_table(table.system_table("files"), other, "shop.copy")
    with pytest.raises(lake.NotFoundError):
        lake.clone_table(table, other, "shop.copy", snapshot=99)
    with pytest.raises(lake.NotFoundError, match="create_database"):
        lake.clone_table(table, other, "nowhere.copy")
    external = catalog.create_table(
        "shop.external",
        [("id", "BIGINT")],
        options={
            "data-file.external-paths": f"file:{tmp_path}/elsewhere",
            "data-file.external-paths.strategy": "round-robin",
        },
    )
    external.write(pa.table({"id": [1]}))
    with pytest.raises(lake.UnsupportedError, match="outside of its directory"):
        lake.clone_table(external, other, "shop.copy")
    assert other.list_tables("shop") == []


def test_a_database_is_cloned_table_by_table_and_one_that_fails_stops_no_other(catalog, other):
    filled(catalog)
    for name in ("first", "tmp_x"):
        catalog.create_table(f"shop.{name}", [("id", "BIGINT")]).write(pa.table({"id": [1]}))
    other.create_database("backup")
    other.create_table("backup.first", [("other", "INT")])
    outcomes = [*lake.clone_database(catalog, "shop", other, to="backup", excluding="tmp_.*")]
    assert [(each.table, each.error is None) for each in outcomes] == [
        ("shop.first", False),
        ("shop.orders", True),
    ]
    assert other.list_tables("backup") == ["first", "orders"]


def test_a_name_that_is_no_regular_expression_is_refused(catalog, other):
    with pytest.raises(lake.InvalidRequestError, match="regular expression"):
        list(lake.clone_database(catalog, "shop", other, including="("))


def test_a_catalog_with_a_database_lists_the_clone_and_the_migrated_table(catalog, tmp_path):
    table = filled(catalog)
    there = lake.open_catalog(
        str(tmp_path / "sql"),
        metastore="jdbc",
        uri=f"sqlite:///{tmp_path}/catalog.db",
        options={"external-roots": str(tmp_path / "plain")},
    )
    there.create_database("shop")
    lake.clone_table(table, there, "shop.copy", full=True)
    (tmp_path / "plain").mkdir()
    pq.write_table(pa.table({"id": [1]}), tmp_path / "plain" / "a.parquet")
    lake.migrate_directory(there, str(tmp_path / "plain"), "shop.new")
    assert there.list_tables("shop") == ["copy", "new"]
    assert states(there.table("shop.copy")) == states(table)
    there.table("shop.copy").write(pa.table({"id": [9], "dt": ["a"], "n": ["new"]}))
    with pytest.raises(lake.AlreadyExistsError):
        lake.clone_table(table, there, "shop.copy", full=True)
    with pytest.raises(lake.InvalidRequestError, match="lower case"):
        lake.clone_table(table, there, "shop.Copy")
