"""Pairs of stores are opened as one table; half a pair is refused, and so are plain commits."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import lakeformat as lake
from lakeformat.catalog.iceberg.path import PathMetastore
from lakeformat.cli.app import app
from lakeformat.iceberg.table import load_iceberg_table
from lakeformat.storage import LocalStorage
from lakeformat.tables.table import OPERATIONS
from tests.golden.mixed import MixedTable, mixed_copy, mixed_table
from tests.unit.mixed.edited_stores import edit, newest_metadata

runner = CliRunner()


@pytest.fixture
def pair(tmp_path: Path) -> MixedTable:
    return mixed_copy("keyed_int", tmp_path / "db")


def refusal(golden: MixedTable) -> str:
    with pytest.raises(lake.CorruptTableError) as refused:
        lake.open_table(golden.location)
    return str(refused.value)


# Half a pair


def test_a_base_store_without_its_change_store_is_refused_with_a_way_to_its_rows(pair):
    shutil.rmtree(pair.root / "t_change_")
    message = refusal(pair)
    assert re.search(r"/t is the base store of a Mixed table, but .*/t_change_ does not", message)
    [way] = re.findall(r"lake\.open_table\('(.*)'\)", message)
    assert lake.open_table(way.removeprefix("file:")).scan().count() == 0


def test_a_link_in_place_of_the_change_store_is_refused(pair, tmp_path):
    change = pair.root / "t_change_"
    change.rename(tmp_path / "elsewhere")
    change.symlink_to(tmp_path / "elsewhere")
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    for way in (lambda: lake.open_table(pair.location), lambda: catalog.table("db.t")):
        with pytest.raises(lake.InvalidRequestError, match="/db/t_change_: it is a symbolic link"):
            way()


def test_a_table_that_is_no_change_store_is_not_taken_for_one(pair):
    edit(pair.root / "t_change_", properties={"mixed-format.table-store": "base"})
    assert "its property 'mixed-format.table-store' is 'base', not 'change'" in refusal(pair)


def test_stores_with_different_keys_are_refused(pair):
    edit(pair.root / "t_change_", properties={"mixed-format.primary-key-fields": "name"})
    assert "have different keys: id in the base store, name in" in refusal(pair)


def test_a_key_that_is_no_column_is_refused(pair):
    for store in ("t", "t_change_"):
        edit(pair.root / store, properties={"mixed-format.primary-key-fields": "id,no"})
    table = lake.open_table(pair.location)
    with pytest.raises(lake.CorruptTableError, match="names 'no', which is not a column"):
        table.scan()


def test_a_column_that_was_added_to_the_base_store_alone_is_refused(pair):
    schema = json.loads(newest_metadata(pair.root / "t").read_text())["schemas"][0]
    schema["fields"].append({"id": 4, "name": "more", "required": False, "type": "int"})
    edit(pair.root / "t", schemas=[schema], **{"last-column-id": 4})
    message = refusal(pair)
    assert "the column with the id 4 is 'more' with the type int in the Mixed table" in message
    assert "but no column in its change store" in message


def test_a_column_that_the_change_store_has_alone_is_left_out(pair):
    """The change store is altered first, so it may be ahead."""
    schema = json.loads(newest_metadata(pair.root / "t_change_").read_text())["schemas"][0]
    schema["fields"].append({"id": 4, "name": "more", "required": False, "type": "int"})
    edit(pair.root / "t_change_", schemas=[schema], **{"last-column-id": 4})
    assert lake.open_table(pair.location).scan().to_arrow().column_names == ["id", "name", "n"]


@pytest.mark.parametrize("identifier", ["db.", "db.a/../../b"])
def test_a_name_that_leads_elsewhere_is_refused(pair, identifier):
    edit(pair.root / "t", properties={"mixed-format.change.identifier": identifier})
    assert "is not the name of a table: correct the property" in refusal(pair)


def test_a_branch_of_a_pair_is_refused(pair):
    with pytest.raises(lake.UnsupportedError, match="stores have the branch 'main' only, not 'x'"):
        lake.open_table(pair.location, branch="x")


# Files and records that do not fit


def plain(golden: MixedTable, store: str) -> lake.IcebergTable:
    """One store, opened as a program that does not know Mixed tables opens it."""
    return load_iceberg_table(LocalStorage(), str(golden.root / store))


def test_a_file_that_another_program_added_to_the_change_store_is_named(pair):
    plain(pair, "t_change_").write(pa.table({"id": pa.array([77], pa.int32())}))
    with pytest.raises(lake.CorruptTableError, match="a program that does not know Mixed tables"):
        lake.open_table(pair.location).scan().count()


def test_a_file_that_another_program_added_to_the_base_store_is_older_than_every_change(pair):
    rows = {"id": pa.array([1, 77], pa.int32()), "name": ["old", "kept"], "n": [0, 0]}
    before = lake.open_table(pair.location).scan().to_arrow()
    plain(pair, "t").write(pa.table(rows))
    found = lake.open_table(pair.location).scan().to_arrow()
    assert found.num_rows == before.num_rows + 1
    assert found.filter(pa.compute.equal(found["id"], 77))["name"].to_pylist() == ["kept"]


def test_a_mark_without_its_record_is_refused(tmp_path):
    golden = mixed_copy("t1_t6_overwrite", tmp_path)
    edit(golden.root / "t", statistics=[])
    with pytest.raises(lake.CorruptTableError, match=r"has 'optimized-sequence\.exist', but"):
        lake.open_table(golden.location).scan()


def test_a_record_that_has_expired_is_not_taken_for_an_empty_one(tmp_path):
    golden = mixed_copy("t1_t6_overwrite", tmp_path)
    newest = json.loads(newest_metadata(golden.root / "t").read_text())["snapshots"][-1]
    newest["summary"] = {"operation": "append"}
    edit(golden.root / "t", snapshots=[newest | {"parent-snapshot-id": 5}])
    with pytest.raises(lake.CorruptTableError, match="records which changes are merged"):
        lake.open_table(golden.location).scan()


# Operations


def test_a_mixed_table_has_the_operations_that_it_can_do_and_refuses_the_others_by_name():
    table = lake.open_table(mixed_table("keyed_int").location)
    assert table.format == "mixed"
    assert table.operations == {
        "changes",
        "check",
        "commit",
        "compact",
        "consumers",
        "delete",
        "drop_partitions",
        "end_batch",
        "expire_snapshots",
        "health",
        "maintain",
        "plan_optimizing",
        "remove_orphans",
        "scan",
        "stream",
        "system_table",
        "truncate",
        "update",
        "upsert",
        "write",
    }
    assert table.instead.keys() >= OPERATIONS - table.operations
    for name in table.instead.keys() - {"rollback"}:
        with pytest.raises(lake.UnsupportedError, match=f"a Mixed table, which has no .*'{name}'"):
            getattr(table, name)
    with pytest.raises(lake.UnsupportedError, match="is a Mixed table, which has no operation"):
        table.rollback()
    with pytest.raises(lake.UnsupportedError, match="'rescale': set the"):
        _ = table.rescale
    with pytest.raises(AttributeError, match="a Mixed table has no attribute 'no_such'"):
        _ = table.no_such
    with pytest.raises(
        lake.NotFoundError,
        match=r"base, change; did you mean 'files'\? Each store has the system tables of I",
    ):
        table.system_table("file")


def test_stores_are_read_alone_and_never_written():
    golden = mixed_table("t1_t6_overwrite")
    table = lake.open_table(golden.location)
    assert table.base.scan().count() == 3
    assert table.change.scan().count() == len(golden.expected["change_rows"])
    for store, kind in ((table.base, "base"), (table.change, "change")):
        with pytest.raises(lake.UnsupportedError, match=f"is the {kind} store of a Mixed table"):
            store.write(pa.table({"id": pa.array([1], pa.int32())}))
        with pytest.raises(lake.UnsupportedError, match="plain Iceberg commits would damage"):
            store.compact()
    change = lake.open_table(str(golden.root / "t_change_"))
    assert isinstance(change, lake.IcebergTable)
    with pytest.raises(lake.UnsupportedError, match="is the change store of a Mixed table"):
        change.expire_snapshots()


def test_the_base_store_has_no_consumers_because_those_of_the_table_are_in_its_directory(pair):
    table = lake.open_table(pair.location)
    table.consumers.set("mirror", after=table.position())
    for way in (
        lambda: lake.open_table(pair.location).base.consumers,
        lambda: table.base.stream(consumer="mirror"),
        lambda: table.base.expire_snapshots(dry_run=True),
        lambda: table.base.maintain(dry_run=True),
    ):
        with pytest.raises(lake.UnsupportedError, match="is the base store of a Mixed table"):
            way()
    listed = runner.invoke(app, ["consumer", "list", f"{pair.location}$base"])
    assert "read the store without a consumer" in str(listed.exception)
    assert table.base.stream("latest") is not None
    assert [each.id for each in table.consumers.list()] == ["mirror"]


def test_each_store_is_a_view_of_the_table_by_name(pair):
    catalog = lake.open_catalog(str(pair.root.parent), format="iceberg")
    table = catalog.table("db.t")
    for name, store in (("base", table.base), ("change", table.change)):
        rows = store.scan().to_arrow()
        assert catalog.table(f"db.t${name}").scan().to_arrow().equals(rows)
        command = ["scan", f"{pair.location}${name}", "--format", "csv"]
        printed = runner.invoke(app, command, catch_exceptions=False).output
        assert len(printed.splitlines()) == 1 + rows.num_rows
    with pytest.raises(lake.NotFoundError, match="only snapshots, files, base, change"):
        catalog.table("db.t$other")


def test_a_duplicate_of_a_key_is_found_by_a_check():
    late = lake.open_table(mixed_table("late_low_tx").location)
    assert [each.name for each in late.check(unique=["id"]).failed] == ["unique(id)"]
    good = lake.open_table(mixed_table("minor_major_full").location)
    assert good.check(unique=[["k", "p"]], not_null=["k"]).failed == ()
    with pytest.raises(lake.UnsupportedError, match="has no staged results"):
        good.check(staged=["x"], not_null=["k"])


def test_a_property_of_the_optimizing_that_is_wrong_is_named(pair):
    edit(pair.root / "t", properties={"self-optimizing.major.trigger.duplicate-ratio": "much"})
    table = lake.open_table(pair.location)
    with pytest.raises(lake.InvalidRequestError, match="'much', not a number of at least 0"):
        table.plan_optimizing()
    edit(
        pair.root / "t",
        properties={
            "self-optimizing.major.trigger.duplicate-ratio": "0.2",
            "base.file-index.hash-bucket": "3",
        },
    )
    with pytest.raises(lake.InvalidRequestError, match="set it to a power of two"):
        lake.open_table(pair.location).plan_optimizing()


# History


def test_positions_name_states_of_both_stores():
    table = lake.open_table(mixed_table("minor_major_full").location)
    snapshots = table.snapshots()
    positions = [each.position for each in snapshots]
    assert positions == sorted(positions)
    assert len({each.numbers for each in positions}) == len(positions)
    assert table.position() == positions[-1] == table.advance(0)
    kept = table.position(str(positions[2]))
    since = table.since(kept)
    assert [each.position for each in since.snapshots] == positions[3:]
    assert (since.missed, since.rewound) == (False, False)
    assert table.positions(after=positions[0], upto=positions[3], limit=2) == positions[2:4]
    assert table.advance(positions[0], 2) == positions[2]
    assert table.snapshot_id_at(positions[1]) == snapshots[1].snapshot_id
    assert table.position(snapshots[1].snapshot_id) == positions[1]
    assert table.since(positions[-1]).snapshots == ()
    assert {each.commit_kind for each in snapshots} == {"APPEND", "COMPACT"}


def test_a_state_is_chosen_by_position_snapshot_or_time_and_others_are_refused():
    table = lake.open_table(mixed_table("t1_t6_overwrite").location)
    third = table.snapshots()[2]
    rows = table.scan(snapshot=third.position).to_arrow()
    assert table.scan(snapshot=third.snapshot_id).to_arrow() == rows
    assert table.scan(as_of=third.time_millis).to_arrow() == rows
    with pytest.raises(lake.NotFoundError, match=r"has no snapshots at position main/9\.9"):
        table.scan(snapshot=lake.Position((9, 9)))
    with pytest.raises(lake.NotFoundError, match="had no snapshot at"):
        table.scan(as_of=1)
    with pytest.raises(lake.NotFoundError, match=r"history of .* has no snapshot 5"):
        table.scan(snapshot=5)
    with pytest.raises(lake.InvalidRequestError, match="3 is not a position of the Mixed table"):
        table.position("3")
    with pytest.raises(lake.UnsupportedError, match="which has no tags: choose a state"):
        table.scan(tag="v1")
    with pytest.raises(lake.InvalidRequestError, match="pass either snapshot or as_of"):
        table.scan(snapshot=third.position, as_of=third.time_millis)
    with pytest.raises(lake.InvalidRequestError, match="read it with the scan that made it"):
        next(table.scan().read(table.scan(snapshot=third.position).splits()[0]))


def test_expired_snapshots_of_a_store_are_missed_and_lost_ones_are_rewound(tmp_path):
    golden = mixed_copy("keyed_int", tmp_path)
    table = lake.open_table(golden.location)
    first, *_, last = table.snapshots()
    metadata = json.loads(newest_metadata(golden.root / "t_change_").read_text())
    edit(golden.root / "t_change_", snapshots=metadata["snapshots"][3:], **{"snapshot-log": []})
    again = lake.open_table(golden.location)
    assert again.since(first.position).missed
    assert not again.since(last.position).missed
    other = lake.Position(last.position.numbers, "main", "1-")
    assert again.since(other).rewound


# Commands and catalogs


def show(*arguments: str) -> str:
    shown = runner.invoke(app, [*arguments], env={"COLUMNS": "200"})
    assert shown.exit_code == 0, shown.output
    return shown.output


def test_commands_show_merged_rows_and_the_metadata_of_both_stores():
    golden = mixed_table("multi_key_buckets")
    table = lake.open_table(golden.location)
    lines = show("scan", golden.location, "--json").splitlines()
    assert len(lines) == table.scan().count()
    files = json.loads(show("files", golden.location, "--json"))
    assert {each["store"] for each in files} == {"base", "change"}
    assert "t_change_/data/" in show("files", golden.location)
    assert show("snapshots", golden.location).count("COMPACT") == 2
    assert "MIXED_ICEBERG" in show("options", golden.location)
    shown = show("plan", golden.location, "--last-minor", "2200-01-01")
    assert "no partition of 1 is due" in shown
    [planned] = json.loads(show("plan", golden.location, "--last-minor", "1", "--json"))
    assert planned["type"] == "minor"
    [partition] = planned["partitions"]
    assert {each["node"] for each in partition["tasks"]} == {"(1,1)", "(15,6)"}
    assert (
        partition["decision"]["reason"]
        == "10 fragments and deletes, and the minor interval has passed"
    )
    refused = runner.invoke(app, ["plan", str(golden.root / "t_change_")])
    assert "is not a Mixed table" in str(refused.exception)
    refused = runner.invoke(app, ["compact", golden.location, "--where", "no = 1"])
    assert "is a Mixed table, whose compact does not take where: leave it out" in str(
        refused.exception
    )
    refused = runner.invoke(app, ["manifests", golden.location])
    place = f"file://{golden.location}"
    advice = f"name one of its stores, as '{place}$base' or '{place}$change'"
    assert advice in str(refused.exception)
    assert show("manifests", f"{place}$change")
    refused = runner.invoke(app, ["schemas", golden.location])
    assert "name one of its stores" not in str(refused.exception)


def test_a_catalog_opens_the_pair_by_the_name_of_its_base_store_and_drops_both(pair):
    catalog = lake.open_catalog(str(pair.root.parent), format="iceberg")
    table = catalog.table("db.t")
    assert isinstance(table, lake.MixedTable)
    assert table.scan().count() == len(pair.steps[-1]["merged_rows"])
    assert catalog.table("db.t$files").scan().to_arrow().num_rows == 15
    for drop in (catalog.drop_table, catalog.plan_drop_table):
        with pytest.raises(lake.UnsupportedError, match=r"drop 'db\.t', which drops both stores"):
            drop("db.t_change_", purge=True)
    with pytest.raises(lake.UnsupportedError, match=r"rename 'db\.t' in a catalog of directories"):
        catalog.rename_table("db.t", "db.u")
    with pytest.raises(lake.UnsupportedError, match="cannot be altered or renamed alone"):
        catalog.rename_table("db.t_change_", "db.u")
    assert not catalog.drop_new_table("db.t")
    planned = catalog.plan_drop_table("db.t", purge=True)
    both = [path for path in pair.root.rglob("*") if path.is_file()]
    assert planned.files > len([*(pair.root / "t_change_/data").iterdir()])
    assert planned.files <= len(both)
    assert [each.table for each in catalog.plan_drop_database("db", cascade=True, purge=True)] == [
        "db.t"
    ]
    catalog.drop_table("db.t", purge=True)
    assert [*pair.root.iterdir()] == []


def test_a_catalog_lists_a_pair_once_and_reads_no_other_table_for_that(pair, monkeypatch):
    catalog = lake.open_catalog(str(pair.root.parent), format="iceberg")
    for name in ("a", "b_change_", "c", "c_change_"):
        catalog.create_table(f"db.{name}", [("k", "BIGINT")])
    read, pointer = [], PathMetastore.pointer
    monkeypatch.setattr(
        PathMetastore, "pointer", lambda self, name: read.append(name.table) or pointer(self, name)
    )
    assert catalog.list_tables("db") == ["a", "b_change_", "c", "c_change_", "t"]
    # t_change_ is read, because a plain table of this name would be listed; c names no c_change_.
    assert sorted(read) == ["c", "t", "t_change_"]
    assert catalog.table("db.t_change_").latest_snapshot() is not None


def test_a_change_store_stays_listed_without_a_base_store_that_names_it(pair):
    catalog = lake.open_catalog(str(pair.root.parent), format="iceberg")
    edit(pair.root / "t", properties={"mixed-format.change.identifier": "db.a/b"})
    assert catalog.list_tables("db") == ["t", "t_change_"]
    edit(pair.root / "t", properties={"mixed-format.change.identifier": "db.other"})
    assert catalog.list_tables("db") == ["t", "t_change_"]
    newest_metadata(pair.root / "t").write_text("{")
    assert catalog.list_tables("db") == ["t", "t_change_"]
    shutil.rmtree(pair.root / "t")
    assert catalog.list_tables("db") == ["t_change_"]


def test_a_change_store_that_a_crash_left_is_dropped_alone_and_a_new_pair_at_once(pair):
    catalog = lake.open_catalog(str(pair.root.parent), format="iceberg")
    shutil.rmtree(pair.root / "t")
    catalog.drop_table("db.t_change_", purge=True)
    catalog.create_table("db.t", [("k", "BIGINT")], format="mixed", primary_key=["k"])
    assert catalog.drop_new_table("db.t")
    catalog.create_table("db.t", [("k", "BIGINT")], format="mixed", primary_key=["k"])
    catalog.drop_database("db", cascade=True, purge=True)
    assert catalog.list_databases() == []


def test_a_table_of_a_catalog_whose_metadata_is_damaged_is_still_dropped(tmp_path):
    catalog = lake.open_catalog(
        str(tmp_path), format="iceberg", metastore="sql", uri=f"sqlite:///{tmp_path}/c.db"
    )
    catalog.create_database("db")
    table = catalog.create_table("db.t", [("k", "BIGINT")])
    for path in Path(table.location.removeprefix("file://")).rglob("*.metadata.json"):
        path.write_text("{")
    catalog.drop_table("db.t")
    assert catalog.list_tables("db") == []


def test_a_table_without_a_key_is_an_iceberg_table_with_every_operation(tmp_path):
    golden = mixed_copy("unkeyed", tmp_path / "db")
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    assert catalog.list_tables("db") == ["t"]
    for table in (lake.open_table(golden.location), catalog.table("db.t")):
        assert isinstance(table, lake.IcebergTable)
        found = table.scan().to_arrow().sort_by("id").to_pylist()
        rows = [
            (row["id"], row["op"] and row["op"].isoformat("T", "microseconds")) for row in found
        ]
        wanted = [(row["id"], row["op"]) for row in golden.steps[-1]["merged_rows"]]
        assert rows == sorted(wanted, key=lambda row: row[0])
    row = {"id": pa.array([700], pa.int32()), "op": pa.array([0], pa.timestamp("us"))}
    table.write(pa.table(row))
    assert table.scan(where="id = 700").count() == 1
    table.delete("id = 700")
    assert table.scan(where="id = 700").count() == 0
    assert table.maintain().failed == ()
    assert table.scan().to_arrow().num_rows == len(wanted)
    catalog.drop_table("db.t", purge=True)
    assert [*golden.root.iterdir()] == []
