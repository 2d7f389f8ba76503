"""An Iceberg table in a directory opens read-only and keeps the contract of tables."""

from __future__ import annotations

import json
import shutil

import pytest

import lakeformat as lake
from lakeformat.tables.table import OPERATIONS
from tests.golden.iceberg import iceberg_table
from tests.golden.relocated import relocate


def opened(name: str, branch: str = "main") -> lake.IcebergTable:
    table = lake.open_table(iceberg_table(name).location, branch=branch)
    assert isinstance(table, lake.IcebergTable)
    return table


def numbers(positions) -> list[int]:
    return [each.number for each in positions]


# What lies in a folder


HAS = {
    "analyze",
    "analyze_partitions",
    "branches",
    "changes",
    "check",
    "commit",
    "compact",
    "compact_deletes",
    "compact_manifests",
    "consumers",
    "delete",
    "drop_partitions",
    "expire_snapshots",
    "health",
    "maintain",
    "partition_rows",
    "remove_orphans",
    "rollback",
    "scan",
    "staged",
    "stream",
    "system_table",
    "tags",
    "truncate",
    "update",
    "upsert",
    "write",
}


def test_it_is_a_table_of_its_format():
    table = opened("six_commits")
    assert table.format == "iceberg"
    assert table.operations == HAS
    assert table.location == f"file://{iceberg_table('six_commits').location}"
    assert table.schema.column_names == ["id", "commit_no"]


@pytest.mark.parametrize("operation", sorted(OPERATIONS - HAS))
def test_each_other_operation_is_refused_by_name(operation):
    with pytest.raises(
        lake.UnsupportedError, match=f"is an Iceberg table, which has no operation '{operation}': "
    ):
        getattr(opened("v1_append"), operation)


@pytest.mark.parametrize("name", ["v1_append", "v2_upgraded_to_v3", "spec_evolution"])
def test_rows_are_added_to_a_table_of_java(tmp_path, name):
    """Totals, sequence numbers and row ids continue those that Java wrote."""
    golden = iceberg_table(name)
    relocate(golden.as_written, tmp_path / "t", golden.expected["original_root"])
    table = lake.open_table(str(tmp_path / "t"))
    before, earlier = table.scan().to_arrow(), table.latest_snapshot()
    report = table.write(before)
    assert table.scan().to_arrow().num_rows == 2 * before.num_rows
    newest = table.latest_snapshot()
    assert (newest.snapshot.parent_id, report.rows) == (earlier.snapshot_id, before.num_rows)
    records = [int(each.summary["total-records"]) for each in (earlier, newest)]
    assert records[1] - records[0] == before.num_rows


def test_a_table_of_a_catalog_opens_by_its_directory_and_by_one_metadata_file():
    golden = iceberg_table("branches_tags")
    assert opened("branches_tags").system_table("metadata_log_entries").scan().count() == 3
    file = f"{golden.location}/{golden.expected['current_metadata']}"
    assert lake.open_table(file).position() == opened("branches_tags").position()


def test_an_older_metadata_file_shows_the_table_as_it_was():
    log = opened("six_commits").system_table("metadata_log_entries").scan().to_arrow().to_pylist()
    [older] = [row["file"] for row in log if row["latest_sequence_number"] == 4]
    table = lake.open_table(older)
    assert table.position().number == 4
    assert table.location == opened("six_commits").location


def test_a_table_that_was_copied_elsewhere_is_refused(tmp_path):
    golden = iceberg_table("v1_append")
    shutil.copytree(golden.location, tmp_path / "copy")
    with pytest.raises(lake.InvalidRequestError, match="The table was moved or copied"):
        lake.open_table(str(tmp_path / "copy"))


def test_an_open_table_sees_a_commit_of_another_program(tmp_path):
    golden = iceberg_table("six_commits")
    relocate(golden.as_written, tmp_path / "t", golden.expected["original_root"])
    newest = tmp_path / "t" / golden.expected["current_metadata"]
    newest.rename(tmp_path / "hidden")
    table = lake.open_table(str(tmp_path / "t"))
    assert table.position().number == 5
    (tmp_path / "hidden").rename(newest)
    assert table.position().number == 6


# Positions


def test_positions_are_sequence_numbers_in_the_order_of_commits():
    table = opened("six_commits")
    newest = table.position()
    found = table.positions(limit=99)
    assert found == sorted(found)
    assert (found[-1], numbers(found)) == (newest, list(range(1, newest.number + 1)))
    assert table.positions(limit=2) == found[-2:]
    assert table.positions(after=found[0], upto=found[2], limit=9) == found[1:3]
    assert table.advance(found[0], 2) == found[2]
    assert table.advance(found[2]) == newest


def test_a_kept_position_is_found_again_with_its_snapshot():
    table = opened("six_commits")
    second = table.snapshots()[1]
    kept = json.loads(json.dumps(str(second.position)))
    assert kept == f"main/2@{second.snapshot_id}"
    assert table.position(kept).is_exactly(second.position)
    since = table.since(table.position(kept))
    assert [each.position.number for each in since.snapshots] == [3, 4, 5, 6]
    assert (since.missed, since.rewound) == (False, False)


def test_a_snapshot_id_is_its_position():
    table = opened("six_commits")
    second = table.snapshots()[1]
    assert table.position(second.snapshot_id).is_exactly(second.position)


def test_snapshots_that_expired_unseen_were_missed():
    table = opened("expired")
    oldest = table.snapshots()[0]
    assert table.since(table.position("main/1")).missed
    assert not table.since(oldest.position.before).missed
    assert not table.since(table.position(f"main/1@{oldest.snapshot.parent_id}")).missed


def test_a_position_that_a_rollback_removed_is_rewound():
    table = opened("branches_tags")
    kept = {each.snapshot_id for each in table.snapshots()}
    everything = table.system_table("snapshots").scan().to_arrow().to_pylist()
    [*_, left] = [row["snapshot_id"] for row in everything if row["snapshot_id"] not in kept]
    since = table.since(table.position(f"main/9@{left}"))
    assert (since.snapshots, since.rewound) == ((), True)
    oldest = table.snapshots()[0]
    assert table.since(table.position(f"main/{oldest.position.number}@{left}")).rewound
    assert not table.since(oldest.position).rewound


def test_positions_of_two_branches_do_not_compare():
    dev, main = opened("branches_tags", "dev"), opened("branches_tags")
    assert dev.latest_snapshot().operation == "overwrite"
    with pytest.raises(lake.InvalidRequestError, match="of different histories"):
        main.since(dev.position())


def test_a_branch_that_does_not_exist_is_named_with_those_that_do():
    with pytest.raises(lake.NotFoundError, match=r"no branch 'deb'; its branches are .*'dev'\?"):
        opened("branches_tags", "deb")
    with pytest.raises(lake.NotFoundError, match="'first' is a tag of"):
        opened("branches_tags", "first")


def test_snapshots_of_version_1_have_ids_and_no_positions():
    table = opened("v1_append")
    first = table.snapshots()[0]
    assert table.scan(snapshot=first.snapshot_id).count() == 2
    for ask in (table.position, lambda: table.positions(limit=2)):
        with pytest.raises(lake.UnsupportedError, match="format version 1 do not number"):
            ask()


def test_snapshots_have_positions_from_the_upgrade_to_version_2_on():
    table = opened("spec_evolution_v1_void")
    listed = table.positions(limit=9)
    assert listed[-1] == table.position()
    assert 0 < len(listed) < len(table.snapshots())
    assert [each.position for each in table.since(listed[0]).snapshots] == listed[1:]
    with pytest.raises(lake.UnsupportedError, match="upgrade the table to version 2"):
        table.since(listed[0].before)


# Reading


def test_a_scan_takes_a_position_a_snapshot_id_a_sequence_number_a_tag_and_a_time():
    table = opened("six_commits")
    second = table.snapshots()[1]
    for chosen in (second.position, second.snapshot_id, 2):
        assert table.scan(snapshot=chosen).count() == 20
    assert table.scan(as_of=second.timestamp_ms).count() == 20
    assert table.scan(["id"], where="id < 5", limit=3).to_arrow().num_rows == 3
    tagged = opened("branches_tags").scan(tag="first").to_arrow()
    assert sorted(tagged["id"].to_pylist()) == [1, 2]


def test_a_branch_is_read_at_its_own_newest_snapshot():
    rows = opened("branches_tags", "dev").scan().to_arrow()
    assert sorted(rows["id"].to_pylist()) == [2, 3]


def test_a_branch_is_read_as_it_was_at_a_time():
    dev = opened("branches_tags", "dev")
    first, second = (each.timestamp_ms for each in dev.snapshots()[:2])
    assert dev.scan(as_of=second).count() > dev.scan(as_of=first).count() == 2
    with pytest.raises(lake.NotFoundError, match=r"'dev'.* had no snapshot at 1970-01-01.*: its h"):
        dev.scan(as_of=1)


def test_partitions_are_chosen_by_the_values_of_their_columns():
    table = opened("hour_action")
    clicks = table.scan(partitions={"action": "click"}).to_arrow()
    assert set(clicks["action"].to_pylist()) == {"click"}
    assert clicks.num_rows == table.scan(where="action = 'click'").count()


def test_a_watermark_is_refused_by_name():
    with pytest.raises(lake.UnsupportedError, match="which has no watermarks: use as_of"):
        opened("v1_append").scan(watermark=1)


def test_a_snapshot_that_does_not_exist_is_named():
    with pytest.raises(lake.NotFoundError, match="has no snapshot 12345"):
        opened("six_commits").scan(snapshot=12345)


def test_a_table_without_a_snapshot_has_no_rows_and_is_at_its_beginning():
    table = lake.open_table(f"{iceberg_table('hour_action').location}/metadata/v1.metadata.json")
    assert (table.scan().count(), table.latest_snapshot()) == (0, None)
    assert table.position() == table.position().before
    assert table.since(table.position()).snapshots == ()
    for name in ("files", "entries", "manifests", "partitions", "snapshots", "refs"):
        assert table.system_table(name).scan().count() == 0


# System tables


def test_a_system_table_shows_the_chosen_snapshot_and_columns():
    table = opened("six_commits")
    files = table.system_table("FILES")
    assert files.scan(["file_path"], snapshot=2).to_arrow().shape == (2, 1)
    assert files.scan().count() == 6
    with pytest.raises(lake.InvalidRequestError, match=r"\$files has no column 'level'"):
        files.scan(["level"])
    with pytest.raises(lake.InvalidRequestError, match="did you mean 'file_path'"):
        files.scan(["file_paths"])


def test_a_system_table_of_the_whole_table_takes_no_snapshot():
    with pytest.raises(lake.InvalidRequestError, match=r"\$refs describes the whole table"):
        opened("six_commits").system_table("refs").scan(snapshot=2)


def test_an_unknown_system_table_is_named_with_those_that_exist():
    with pytest.raises(lake.InvalidRequestError, match=r"no system table \$file of .*'files'\?"):
        opened("six_commits").system_table("file")


# Snapshots, as every format has them


def test_snapshots_have_the_members_of_any_format():
    table = opened("mor_position_deletes")
    kinds = {(each.operation, each.commit_kind) for each in table.snapshots()}
    assert kinds == {("append", "APPEND"), ("delete", "OVERWRITE"), ("overwrite", "OVERWRITE")}
    rows, total = table.scan().count(), 0
    for each in table.snapshots():
        total += each.delta_record_count
    assert total == rows
    newest = table.latest_snapshot()
    assert newest.id == int(newest.identity) == newest.snapshot_id
    assert table.latest_snapshot(newest) is newest
    assert (newest.watermark, newest.commit_user, newest.changelog_record_count) == (None,) * 3


def test_the_id_at_a_position_is_that_of_its_snapshot():
    table = opened("six_commits")
    first, second = table.snapshots()[:2]
    assert table.snapshot_id_at(second.position) == second.id
    assert table.snapshot_id_at(second.position.before) == first.id
    assert table.snapshot_id_at(first.position.before) == 0


@pytest.mark.parametrize("name", ["write", "delete", "update", "compact", "tags", "snapshots"])
def test_a_system_table_has_only_rows_and_names_the_table_for_anything_else(name):
    files = opened("six_commits").system_table("files")
    with pytest.raises(
        lake.UnsupportedError, match=rf"^\$files of file:.* is read-only: .* for '{name}'$"
    ):
        getattr(files, name)
    assert not hasattr(files, "shape")
