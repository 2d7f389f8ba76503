"""Batches of Mixed tables: changes have the place of their start, although they commit late."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lakeformat as lake
from lakeformat.mixed.file_names import FileKind, parse_file_name
from tests.unit.mixed.edited_stores import edit, newest_metadata
from tests.unit.mixed.named_rows import (
    IMPORTED,
    contents,
    file_count,
    names,
    new_catalog,
    new_table,
    optimized,
    up_to_the_begin,
)


@pytest.fixture
def catalog(tmp_path: Path) -> lake.IcebergCatalog:
    return new_catalog(tmp_path)


@pytest.fixture
def table(catalog: lake.IcebergCatalog) -> lake.MixedTable:
    return new_table(catalog)


# The example of the design: a stream corrects a name while a batch imports the source again


def after_the_commit(table: lake.MixedTable, transaction_of_last: int) -> None:
    """T5 and T6: the stream deletes one row of the batch and replaces another one."""
    table.write(names(_2=None), kinds=["-D"])
    assert contents(table) == {1: "john", 3: "bob", 9: "zed"}
    table.write(names(_9="zoe"))
    assert contents(table) == {1: "john", 3: "bob", 9: "zoe"}
    assert table.snapshots()[-1].number == transaction_of_last


def test_an_overwrite_keeps_what_the_stream_has_changed_since_its_begin(table):
    batch = up_to_the_begin(table)
    batch.overwrite(names(**IMPORTED), "table")
    assert contents(table.base) == {1: "join-fixed", 2: "AMY", 9: "zed"}
    assert optimized(table) == {"": 2}
    assert contents(table) == {1: "john", 2: "AMY", 3: "bob", 9: "zed"}
    after_the_commit(table, 6)
    assert optimized(table) == {"": 2}
    table.compact(strategy="full")
    assert contents(table.base) == contents(table) == {1: "john", 3: "bob", 9: "zoe"}


def test_a_write_keeps_what_the_stream_has_changed_since_its_begin(table):
    batch = up_to_the_begin(table)
    batch.write(names(**IMPORTED))
    assert contents(table) == {1: "john", 2: "AMY", 3: "bob", 9: "zed"}
    after_the_commit(table, 7)
    table.compact(strategy="full")
    assert contents(table.base) == contents(table) == {1: "john", 3: "bob", 9: "zoe"}


def test_an_overwrite_of_merged_changes_has_them_merged_again(table, monkeypatch):
    """An optimizer that ignores the batch has merged the stream's rows into the base store."""
    batch = up_to_the_begin(table)
    monkeypatch.setattr("lakeformat.mixed.compact.plan.oldest_open_batch", lambda *given: None)
    table.compact(strategy="full")
    monkeypatch.undo()
    assert optimized(table) == {"": 4}
    assert contents(table.base) == {1: "john", 2: "amy", 3: "bob"}
    batch.overwrite(names(**IMPORTED), "table")
    assert optimized(table) == {"": 2}
    assert contents(table) == {1: "john", 2: "AMY", 3: "bob", 9: "zed"}
    after_the_commit(table, 6)


def test_our_optimizing_merges_nothing_newer_than_a_running_batch(table):
    batch = up_to_the_begin(table)
    report = table.compact(strategy="full")
    assert "newer changes wait for the batch with transaction 2, begun at " in report.sentence
    assert f"`lake end-batch {table.location}` ends a batch of this library" in report.sentence
    assert optimized(table) == {"": 1}
    batch.write(names(**IMPORTED))
    assert "wait" not in table.compact(strategy="full").sentence
    assert contents(table.base) == contents(table) == {1: "john", 2: "AMY", 3: "bob", 9: "zed"}


# Files and records


def test_files_of_a_batch_have_its_transaction_and_amoros_marks(table):
    batch = up_to_the_begin(table)
    begin = table.change.snapshots()[1]
    assert (begin.operation, begin.delta_record_count) == ("append", 0)
    assert "tx.begin.signature" in begin.summary
    batch.write(names(_1="join-fixed"))
    kinds = {
        (name.kind, name.transaction)
        for name in (parse_file_name(each.file.path) for each in table.change.scan().splits())
        if name.transaction
    }
    assert kinds == {(FileKind.INSERT, 2), (FileKind.CHANGE_DELETE, 2)}
    with table.begin() as another:
        another.overwrite(names(_5="eve"), "table")
    overwrite = table.base.snapshots()[-1]
    assert (overwrite.operation, overwrite.summary["txId"]) == ("overwrite", "6")
    [file] = table.base.scan().splits()
    assert parse_file_name(file.file.path).transaction == 6
    assert contents(table) == contents(table.base) == {5: "eve"}


def test_write_with_overwrite_begins_and_replaces_in_one_call(table):
    table.write(names(_1="a", _2="b"))
    commit = lake.CommitId("load", 1)
    report = table.write(names(_2="c", _3="d"), overwrite="table", commit=commit)
    assert (report.rows, report.kind) == (2, "overwrite")
    assert contents(table) == {2: "c", 3: "d"}
    table.write(names(_4="e"))
    snapshots = len(table.snapshots())
    again = table.write(names(_2="c", _3="d"), overwrite="table", commit=commit)
    assert (again.replayed, again.snapshot_id) == (True, report.snapshot_id)
    assert len(table.snapshots()) == snapshots
    assert contents(table) == {2: "c", 3: "d", 4: "e"}
    assert table.write(names(), overwrite="table").rows == 0
    assert contents(table) == {}
    with pytest.raises(lake.InvalidRequestError, match="an overwrite stores every row"):
        table.write(names(_1="a"), kinds=["+I"], overwrite="table")


DAYS = pa.schema([("k", pa.int64()), ("p", pa.string()), ("v", pa.string())])


def days(*given: tuple[int, str, str]) -> pa.Table:
    keys, parts, values = zip(*given, strict=True) if given else ((), (), ())
    return pa.table([keys, parts, values], schema=DAYS)


def of_days(table: lake.MixedTable) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.scan().to_arrow().to_pylist())


@pytest.mark.parametrize(
    ("how", "left"),
    [
        ({"partitions": "partitions"}, [(7, "x", "n"), (1, "y", "a"), (1, "z", "a")]),
        ({"partitions": "table"}, [(7, "x", "n")]),
        ({"partitions": {"p": "x"}}, [(7, "x", "n"), (1, "y", "a"), (1, "z", "a")]),
        ({"where": "p in ('x', 'y')"}, [(7, "x", "n"), (1, "z", "a")]),
        ({"partitions": [{"p": "x"}, {"p": "y"}]}, [(7, "x", "n"), (1, "z", "a")]),
    ],
    ids=["of new rows", "table", "named", "condition", "several"],
)
def test_an_overwrite_replaces_whole_partitions_of_both_stores(catalog, how, left):
    """Rows of ``x`` and ``y`` are in the base store, those of ``z`` only in the change store."""
    table = catalog.create_table(
        "db.days", DAYS, format="mixed", primary_key=["k", "p"], partition_by=["p"]
    )
    table.write(days((1, "x", "a"), (1, "y", "a")))
    table.compact(strategy="full")
    table.write(days((2, "x", "b"), (1, "z", "a")))
    with table.begin() as batch:
        table.write(days((3, "x", "later")))
        batch.overwrite(days((7, "x", "n")), **how)
    assert of_days(table) == sorted([*left, (3, "x", "later")])
    table.compact(strategy="full")
    assert of_days(table) == of_days(table.base) == sorted([*left, (3, "x", "later")])


@pytest.mark.parametrize("is_merged", [False, True])
def test_partitions_of_new_rows_with_another_path_are_not_overwritten(catalog, tmp_path, is_merged):
    """Rows from before a rename of the partition field would remain, and lose their changes."""
    columns = [("id", "BIGINT"), ("name", "STRING")]
    table = catalog.create_table(
        "db.t", columns, format="mixed", primary_key=["id"], partition_by=["name"]
    )
    table.write(names(_1="x", _2="y"))
    if is_merged:
        table.compact(strategy="full")
    for store in ("t", "t_change_"):
        place = tmp_path / "db" / store
        [spec] = json.loads(newest_metadata(place).read_text())["partition-specs"]
        renamed = {"spec-id": 1, "fields": [{**spec["fields"][0], "name": "label"}]}
        edit(place, **{"partition-specs": [spec, renamed], "default-spec-id": 1})
    table = catalog.table("db.t")
    table.delete("id = 1")
    with pytest.raises(
        lake.UnsupportedError, match=r"are also in 'name=x', from before the rename"
    ):
        table.write(names(_7="x"), overwrite="partitions")
    assert contents(table) == {2: "y"}
    table.write(names(_7="z"), overwrite="partitions")
    table.write(names(_8="x"), overwrite={"name": "x"})
    assert contents(table) == {2: "y", 7: "z", 8: "x"}
    table.write(names(_9="x"), overwrite="table")
    # The changes under the earlier name, which the table keeps for days, are overwritten.
    table.write(names(_10="x"), overwrite="partitions")
    assert contents(table) == {10: "x"}


def test_partitions_and_all_rows_are_deleted_from_both_stores(catalog):
    table = catalog.create_table(
        "db.days", DAYS, format="mixed", primary_key=["k", "p"], partition_by=["p"]
    )
    table.write(days((1, "x", "a"), (1, "y", "a"), (1, "z", "a")))
    table.compact(strategy="full")
    table.write(days((2, "x", "b"), (2, "w", "b")))
    commit = lake.CommitId("drop", 1)
    first = table.drop_partitions([{"p": "x"}, {"p": "w"}], commit=commit)
    assert of_days(table) == [(1, "y", "a"), (1, "z", "a")]
    table.write(days((3, "x", "c")))
    again = table.drop_partitions([{"p": "x"}, {"p": "w"}], commit=commit)
    assert (again.replayed, again.snapshot_id) == (True, first.snapshot_id)
    assert of_days(table) == [(1, "y", "a"), (1, "z", "a"), (3, "x", "c")]
    commits = len(table.snapshots())
    with pytest.raises(lake.InvalidRequestError, match="'k' is not a partition column"):
        table.drop_partitions([{"k": 1}])
    assert len(table.snapshots()) == commits
    table.truncate()
    assert of_days(table) == []
    table.compact(strategy="full")
    assert of_days(table) == of_days(table.base) == []


@pytest.mark.parametrize("where", ["p = 'x'", lake.col("p") == "x"])
def test_an_overwrite_replaces_the_partitions_that_meet_a_condition(catalog, where):
    parted = catalog.create_table(
        "db.days", DAYS, format="mixed", primary_key=["k", "p"], partition_by=["p"]
    )
    parted.write(days((1, "x", "a"), (1, "y", "a")))
    with parted.begin() as batch:
        told = """'p=z', which is not one of the partitions to overwrite, "p" = 'x': leave"""
        with pytest.raises(lake.InvalidRequestError, match=told):
            batch.overwrite(days((1, "z", "b")), where=where)
        batch.overwrite(days((2, "x", "b")), where=where)
    assert of_days(parted) == [(1, "y", "a"), (2, "x", "b")]


def test_what_an_overwrite_cannot_replace_is_refused_before_anything_is_written(catalog, table):
    parted = catalog.create_table(
        "db.days", DAYS, format="mixed", primary_key=["k", "p"], partition_by=["p"]
    )
    parted.write(days((1, "x", "a")))
    before = file_count(parted)
    with parted.begin() as batch:
        with pytest.raises(lake.UnsupportedError, match="not decide a condition on k"):
            batch.overwrite(days((1, "x", "b")), where="k = 1")
        with pytest.raises(lake.InvalidRequestError, match="belong to the partition 'p=y', which"):
            batch.overwrite(days((1, "y", "b")), where="p = 'x'")
        with pytest.raises(lake.InvalidRequestError, match="belong to the partition 'p=y', which"):
            batch.overwrite(days((1, "y", "b")), [{"p": "x"}, {"p": "z"}])
        with pytest.raises(lake.InvalidRequestError, match="needs one of two arguments"):
            batch.overwrite(days((1, "y", "b")))
        with pytest.raises(lake.InvalidRequestError, match=r"2 new rows .* such as k=1, p='x'"):
            batch.overwrite(days((1, "x", "b"), (2, "x", "b"), (1, "x", "c")), "table")
        with pytest.raises(
            lake.InvalidRequestError, match="column 'k' is required, but is null in 1 of 2"
        ):
            batch.overwrite(days((1, "x", "b"), (None, "x", "b")), "table")
    assert file_count(parted) == before
    assert of_days(parted) == [(1, "x", "a")]


# DELETE and UPDATE


def test_a_condition_deletes_and_updates_merged_rows(table):
    table.write(names(_1="a", _2="b", _3="c"))
    table.compact(strategy="full")
    table.write(names(_2="B", _4="d"))
    planned = table.delete("name in ('b', 'c', 'd')", dry_run=True)
    assert (planned.rows, planned.snapshot_id, len(table.snapshots())) == (2, None, 3)
    heard: list[int] = []
    report = table.delete(
        "name in ('b', 'c', 'd')", on_progress=lambda each: heard.append(each.done)
    )
    assert (report.rows, report.method) == (2, "rows by key")
    assert report.reason == f"2 rows deleted, published as snapshot {report.snapshot_id}"
    assert heard == [*range(len(heard))]
    assert contents(table) == {1: "a", 2: "B"}
    upper = {"name": lambda rows: pc.utf8_upper(rows["name"])}
    assert table.update("id = 1", upper).rows == 1
    assert table.update(None, {"name": "z"}).rows == 2
    assert contents(table) == {1: "z", 2: "z"}
    table.compact(strategy="full")
    assert contents(table.base) == contents(table) == {1: "z", 2: "z"}


def test_a_deleted_row_that_a_stream_has_changed_meanwhile_remains(table):
    table.write(names(_1="old", _2="old", _3="old"))
    with table.begin() as batch:
        table.write(names(_1="new"))
        assert batch.update("name = 'old' and id < 3", {"name": "updated"}).rows == 2
    with table.begin() as batch:
        table.write(names(_3="new"))
        assert batch.delete("name != 'new'").rows == 2
    assert contents(table) == {1: "new", 3: "new"}


def test_an_update_moves_rows_to_another_partition(catalog):
    table = catalog.create_table(
        "db.days", DAYS, format="mixed", primary_key=["k"], partition_by=["p"]
    )
    table.write(days((1, "x", "a"), (2, "x", "b"), (1, "y", "other")))
    assert table.update("k = 1 and p = 'x'", {"p": "y"}).rows == 1
    assert of_days(table) == [(1, "y", "a"), (2, "x", "b")]


def test_an_update_moves_no_row_that_a_stream_has_changed_meanwhile(catalog):
    """The delete of the stream is in the old partition, where it reaches no moved row."""
    table = catalog.create_table(
        "db.days", DAYS, format="mixed", primary_key=["k"], partition_by=["p"]
    )
    table.write(days((1, "x", "a"), (2, "x", "b"), (3, "y", "c")))
    with table.begin() as batch:
        table.write(days((1, "x", "stream")))
        with pytest.raises(lake.CommitConflictError, match=r"moves rows out of the partition 'p=x"):
            batch.update("p = 'x'", {"p": "y"})
    assert of_days(table) == [(1, "x", "stream"), (2, "x", "b"), (3, "y", "c")]
    with table.begin() as batch:
        table.write(days((4, "y", "stream")))  # not in a partition that rows leave
        assert batch.update("p = 'x'", {"p": "y"}).rows == 2
    with table.begin() as batch:
        table.write(days((4, "y", "again")))
        assert batch.update("k < 5", {"p": "y", "v": "z"}).rows == 4  # moves no row
    assert of_days(table) == [(1, "y", "z"), (2, "y", "z"), (3, "y", "z"), (4, "y", "again")]


def test_an_update_moves_rows_beside_a_stream_that_changes_other_keys_of_the_node(catalog):
    table = catalog.create_table(
        "db.days",
        DAYS,
        format="mixed",
        primary_key=["k"],
        partition_by=["p"],
        options={"change.file-index.hash-bucket": "1"},
    )
    table.write(days((1, "x", "a"), (2, "x", "b")))
    with table.begin() as batch:
        table.write(days((2, "x", "stream"), (3, "x", "stream")))
        assert batch.update("k = 1", {"p": "y"}).rows == 1
    assert of_days(table) == [(1, "y", "a"), (2, "x", "stream"), (3, "x", "stream")]


def test_a_repeated_delete_publishes_once(table):
    table.write(names(_1="a", _2="b"))
    commit = lake.CommitId("clean", 1)
    first = table.delete("id = 1", commit=commit)
    table.write(names(_1="again"))
    snapshots = len(table.snapshots())
    again = table.delete("id = 1", commit=commit)
    assert (again.replayed, again.snapshot_id) == (True, first.snapshot_id)
    with table.begin() as batch:
        assert batch.delete("id = 1", commit=commit).replayed
    assert contents(table) == {1: "again", 2: "b"}
    assert len(table.snapshots()) == snapshots + 2


def test_arguments_that_do_not_fit_begin_no_batch(table):
    table.write(names(_1="a"))
    snapshots = len(table.snapshots())
    for wrong, message in (
        (lambda: table.delete(None), "where is None, but must be a condition"),
        (lambda: table.delete("nme = 'a'"), "nme"),
        (lambda: table.update("id = 1", {"id": 2}), "'id' is part of the key of "),
        (lambda: table.update("id = 1", {}), "set must map columns to values"),
        (lambda: table.update("id = 1", {"name": 3.5}), "name"),
    ):
        with pytest.raises(lake.InvalidRequestError, match=message):
            wrong()
    assert len(table.snapshots()) == snapshots
