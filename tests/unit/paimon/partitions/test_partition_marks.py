"""Marking partitions as done, and looking at what a drop would delete."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from itertools import count
from pathlib import Path

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.environment import SYSTEM
from lakeformat.paimon.partitions import mark_done
from lakeformat.paimon.partitions.partition_reports import DonePartition
from lakeformat.storage.local import LocalStorage
from tests.counting import CountingStorage

START = 1_700_000_000_000


@pytest.fixture
def table(tmp_path) -> lake.Table:
    ticks = count(START)
    world = replace(SYSTEM, now_millis=lambda: next(ticks))
    catalog = lake.open_catalog(str(tmp_path), environment=world)
    catalog.create_database("shop")
    table = catalog.create_table(
        "shop.orders",
        [("id", "BIGINT"), ("dt", "STRING"), ("h", "INT")],
        partition_by=["dt", "h"],
    )
    hours = pa.array([1, 2, 1], pa.int32())
    table.write(pa.table({"id": [1, 2, 3], "dt": ["a", "a", "b"], "h": hours}))
    return table


def root(table: lake.Table) -> Path:
    return Path(table.location.removeprefix("file://"))


def mark(table: lake.Table, **how) -> DonePartition:
    [done] = table.mark_partitions_done([{"dt": "a", "h": 1}], **how).partitions
    return done


def test_a_success_file_says_when_a_partition_was_marked_first_and_last(table):
    assert mark(table).repeated is False
    path = root(table) / "dt=a" / "h=1" / "_SUCCESS"
    first = json.loads(path.read_text())
    assert first["creationTime"] <= first["modificationTime"]
    assert mark(table).repeated is True
    again = json.loads(path.read_text())
    assert again["creationTime"] == first["creationTime"]
    assert again["modificationTime"] > first["modificationTime"]


def test_the_success_file_is_written_as_java_writes_it(table):
    mark(table)
    content = (root(table) / "dt=a" / "h=1" / "_SUCCESS").read_text()
    times = json.loads(content)
    assert content == (
        f'{{\n  "creationTime" : {times["creationTime"]},\n'
        f'  "modificationTime" : {times["modificationTime"]}\n}}'
    )


@pytest.mark.parametrize("torn", [b"", b"{", b'{"modificationTime": 1}', b"[]"])
def test_a_mark_that_a_crash_has_torn_is_written_anew(table, torn):
    mark(table)
    path = root(table) / "dt=a" / "h=1" / "_SUCCESS"
    path.write_bytes(torn)
    assert mark(table).repeated is False
    assert json.loads(path.read_text())["creationTime"]


def test_a_done_partition_is_a_directory_of_its_name_and_rows_stay_as_they_are(table):
    done = mark(table, actions=["done-partition", "success-file"])
    assert (root(table) / "dt=a" / "h=1.done").is_dir()
    assert len(done.marks) == 2
    assert table.scan().to_arrow().num_rows == 3
    assert mark(table, actions=["done-partition"]).rows == 1


def test_a_dry_run_says_where_and_writes_nothing(table, caplog):
    """A sensor makes a dry run at each check, so a dry run logs nothing, too."""
    caplog.set_level("INFO")
    done = mark(table, dry_run=True)
    assert caplog.messages == []
    assert done.marks[0].endswith("dt=a/h=1/_SUCCESS")
    assert not (root(table) / "dt=a" / "h=1" / "_SUCCESS").exists()


@pytest.mark.parametrize("action", ["mark-event", "http-report", "custom"])
def test_actions_that_need_a_service_are_refused_by_name_before_anything_is_marked(table, action):
    with pytest.raises(lake.UnsupportedError, match=action):
        mark(table, actions=["success-file", action])
    assert not (root(table) / "dt=a" / "h=1" / "_SUCCESS").exists()


@pytest.mark.parametrize(
    ("partitions", "why"),
    [
        ([{"dt": "a"}], "'h' is missing"),
        ([{"dt": "a", "h": 1, "x": 1}], "not a partition column"),
        ([{"dt": "a", "h": "one"}], "not a value"),
        ({"dt": "a", "h": 1}, "must list the partitions"),
        ([], "must list the partitions"),
        ("dt=a", "must list the partitions"),
    ],
)
def test_what_names_no_whole_partition_is_refused(table, partitions, why):
    with pytest.raises(lake.InvalidRequestError) as error:
        table.mark_partitions_done(partitions)
    assert why in str(error.value)


def test_an_unknown_action_is_refused_with_those_there_are(table):
    with pytest.raises(lake.InvalidRequestError, match="success-file"):
        mark(table, actions=["sucess-file"])


def test_a_partition_without_rows_is_marked_only_if_that_is_meant(table):
    with pytest.raises(lake.NotFoundError, match="allow_empty"):
        table.mark_partitions_done([{"dt": "z", "h": 1}])
    [done] = table.mark_partitions_done([{"dt": "z", "h": 1}], allow_empty=True).partitions
    assert (done.partition, done.rows) == ("dt=z/h=1", 0)
    assert (root(table) / "dt=z" / "h=1" / "_SUCCESS").exists()


@pytest.mark.parametrize("partitions", [3, 12])
def test_each_mark_is_one_read_and_one_write_and_the_table_is_read_once(tmp_path, partitions):
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    columns = [("id", "BIGINT"), ("h", "INT")]
    table = catalog.create_table("shop.orders", columns, partition_by=["h"])
    hours = [*range(partitions)]
    table.write(pa.table({"id": hours, "h": pa.array(hours, pa.int32())}))
    counting = CountingStorage(table._handle.storage)
    handle = replace(table._handle, storage=counting)
    done = mark_done.mark_partitions_done(handle, [{"h": hour} for hour in hours]).partitions
    assert [(each.partition, each.rows) for each in done] == [(f"h={h}", 1) for h in hours]
    of_marks = Counter(name for name, path in counting.calls if path.endswith("_SUCCESS"))
    assert of_marks == {"read": partitions, "overwrite": partitions}
    assert len(counting.calls) - of_marks.total() == 7  # of the head, its lists and manifest


def test_a_padded_partition_and_those_of_one_directory_are_marked_with_their_own_rows(tmp_path):
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    columns = [("id", "BIGINT"), ("c", "CHAR(3)"), ("s", "STRING")]
    table = catalog.create_table("shop.orders", columns, partition_by=["c", "s"])
    table.write(pa.table({"id": [1, 2, 3], "c": ["a  "] * 3, "s": [None, "", ""]}))
    for value, rows in ((None, 1), ("", 2)):
        [done] = table.mark_partitions_done([{"c": "a", "s": value}]).partitions
        assert done.rows == rows


BOTH = ["success-file", "done-partition"]


def marks(table: lake.Table) -> list[str]:
    found = [*root(table).rglob("_SUCCESS"), *root(table).rglob("*.done")]
    return sorted(str(path.relative_to(root(table))) for path in found)


def test_a_drop_deletes_the_marks_of_the_dropped_partitions(table):
    hours = [{"dt": "a", "h": 1}, {"dt": "a", "h": 2}, {"dt": "b", "h": 1}]
    table.mark_partitions_done(hours, actions=BOTH)
    table.drop_partitions([{"dt": "a"}])
    assert marks(table) == ["dt=b/h=1.done", "dt=b/h=1/_SUCCESS"]
    assert mark(table, allow_empty=True, dry_run=True).repeated is False  # as a sensor asks
    table.truncate()
    assert marks(table) == []


def test_a_repeated_drop_deletes_marks_that_are_left_but_none_of_a_partition_with_new_rows(table):
    commit = lake.CommitId("drop", 1)
    table.drop_partitions([{"dt": "a"}], commit=commit)
    hours = pa.array([1], pa.int32())
    table.write(pa.table({"id": [9], "dt": ["a"], "h": hours}))
    table.mark_partitions_done(
        [{"dt": "a", "h": 1}, {"dt": "a", "h": 2}], actions=BOTH, allow_empty=True
    )
    assert table.drop_partitions([{"dt": "a"}], commit=commit).replayed
    assert marks(table) == ["dt=a/h=1.done", "dt=a/h=1/_SUCCESS"]


def test_a_drop_on_a_branch_keeps_the_marks_of_main(table):
    table.branches.create("trial")
    mark(table)
    trial = lake.open_table(table.location, branch="trial")
    trial.write(pa.table({"id": [9], "dt": ["a"], "h": pa.array([1], pa.int32())}))
    trial.drop_partitions([{"dt": "a"}])
    assert marks(table) == ["dt=a/h=1/_SUCCESS"]


def test_a_partition_is_not_marked_through_a_branch(table):
    """Programs that wait for the mark would read main, which does not have the rows."""
    table.branches.create("trial", snapshot=1)
    trial = lake.open_table(table.location, branch="trial")
    with pytest.raises(lake.InvalidRequestError, match=r"from main, but this is branch 'trial'"):
        mark(trial)
    assert marks(table) == []
    assert mark(trial, dry_run=True).repeated is False
    mark(table)
    assert mark(trial, dry_run=True).repeated is True


def test_marks_that_cannot_be_deleted_are_logged_and_the_drop_succeeds(table, monkeypatch, caplog):
    mark(table)

    delete = LocalStorage.delete

    def fail(storage, path):
        if path.endswith("_SUCCESS"):
            raise lake.UnavailableError("the storage is away")
        delete(storage, path)

    monkeypatch.setattr(LocalStorage, "delete", fail)
    table.drop_partitions([{"dt": "a", "h": 1}])
    [warning] = caplog.messages
    assert "its marks were not: the storage is away. Delete the file file:///" in warning
    assert marks(table) == ["dt=a/h=1/_SUCCESS"]


def test_marks_that_cannot_be_found_are_logged_and_the_drop_succeeds(table, monkeypatch, caplog):
    def fail(*args):
        raise lake.UnavailableError("the storage is away")

    monkeypatch.setattr(mark_done, "changed_partitions", fail)
    table.drop_partitions([{"dt": "a", "h": 1}])
    [warning] = caplog.messages
    assert "but their marks may still exist: the storage is away. Delete" in warning


def test_a_drop_can_be_looked_at_first(table):
    plan = table.plan_drop_partitions([{"dt": "a"}])
    assert [each.path for each in plan.partitions] == ["dt=a/h=1", "dt=a/h=2"]
    assert plan.to_dict()["partitions"][0]["rows"] == 1
    table.drop_partitions([{"dt": "a"}])
    assert table.plan_drop_partitions([{"dt": "a"}]).partitions == ()


def test_system_tables_refuse_what_belongs_to_the_table(table):
    files = table.system_table("files")
    for call in (
        files.expire_partitions,
        files.analyze,
        files.compact_manifests,
        files.rewrite_file_indexes,
        lambda: files.mark_partitions_done([{}]),
        lambda: files.plan_drop_partitions([{}]),
    ):
        with pytest.raises(lake.UnsupportedError, match="system table"):
            call()
