"""Batches of Mixed tables: changes have the place of their begin, although they commit late."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lakeformat as lake
from lakeformat.iceberg.table import load_iceberg_table
from lakeformat.mixed.batch import lease as leases
from lakeformat.mixed.file_names import FileKind, parse_file_name
from lakeformat.storage import LocalStorage
from tests.crash.simulated import NOW_MILLIS, Clock
from tests.unit.mixed.edited_stores import edit, newest_metadata

NAMES = pa.schema([("id", pa.int64()), ("name", pa.string())])


@pytest.fixture
def catalog(tmp_path: Path) -> lake.IcebergCatalog:
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    catalog.create_database("db")
    return catalog


@pytest.fixture
def table(catalog: lake.IcebergCatalog) -> lake.MixedTable:
    made = catalog.create_table("db.t", NAMES, format="mixed", primary_key=["id"])
    assert isinstance(made, lake.MixedTable)
    return made


def names(**given: str | None) -> pa.Table:
    """Rows by id: ``names(_1="amy")``."""
    ids = [int(each[1:]) for each in given]
    return pa.table([ids, pa.array(given.values(), pa.string())], schema=NAMES)


def contents(table: Any, **how: Any) -> dict[int, str]:
    found = table.scan(["id", "name"], **how).to_arrow().to_pydict()
    assert len({*found["id"]}) == len(found["id"]), found
    return dict(zip(found["id"], found["name"], strict=True))


def optimized(table: lake.MixedTable) -> dict[str, int]:
    return {**table.scan()._state.merged.sequences}


def file_count(table: lake.MixedTable) -> int:
    root = Path(table.location.removeprefix("file://")).parent
    return sum("_lake" not in path.parts for path in root.rglob("*.parquet"))


# The example of the design: a stream corrects a name while a batch imports the source again


def up_to_the_begin(table: lake.MixedTable) -> Any:
    """T1 to T4: the batch begins at T2, and the stream writes further rows."""
    table.write(names(_1="join", _2="amy"))
    batch = table.begin()
    table.write(names(_1="john"))
    table.write(names(_3="bob"))
    assert batch.transaction == 2
    assert contents(batch) == {1: "join", 2: "amy"}
    assert contents(table) == {1: "john", 2: "amy", 3: "bob"}
    return batch


def after_the_commit(table: lake.MixedTable, transaction_of_last: int) -> None:
    """T5 and T6: the stream deletes one row of the batch and replaces another one."""
    table.write(names(_2=None), kinds=["-D"])
    assert contents(table) == {1: "john", 3: "bob", 9: "zed"}
    table.write(names(_9="zoe"))
    assert contents(table) == {1: "john", 3: "bob", 9: "zoe"}
    assert table.snapshots()[-1].number == transaction_of_last


IMPORTED = {"_1": "join-fixed", "_2": "AMY", "_9": "zed"}


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
    ],
    ids=["of new rows", "table", "named", "condition"],
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


def test_what_an_overwrite_cannot_replace_is_refused_before_anything_is_written(catalog, table):
    parted = catalog.create_table(
        "db.days", DAYS, format="mixed", primary_key=["k", "p"], partition_by=["p"]
    )
    parted.write(days((1, "x", "a")))
    before = file_count(parted)
    with parted.begin() as batch:
        with pytest.raises(lake.UnsupportedError, match="but k is not the value of a partition"):
            batch.overwrite(days((1, "x", "b")), where="k = 1")
        with pytest.raises(lake.InvalidRequestError, match="belong to the partition 'p=y', which"):
            batch.overwrite(days((1, "y", "b")), where="p = 'x'")
        with pytest.raises(lake.InvalidRequestError, match="needs either the partitions to"):
            batch.overwrite(days((1, "y", "b")))
        with pytest.raises(lake.InvalidRequestError, match="such as k = 1, p = 'x' in 2 rows"):
            batch.overwrite(days((1, "x", "b"), (2, "x", "b"), (1, "x", "c")), "table")
        with pytest.raises(lake.InvalidRequestError, match="column 'k' is required, but 1 of 2"):
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


# The end of a batch


def test_a_batch_makes_one_commit(table):
    with table.begin() as batch:
        batch.write(names(_1="a"))
        with pytest.raises(lake.InvalidRequestError, match="has ended: a batch makes one commit"):
            batch.write(names(_1="b"))
    assert contents(table) == {1: "a"}


def test_a_repeated_commit_publishes_once_and_ends_its_batch(table):
    commit = lake.CommitId("fix", 1)
    for _ in range(2):
        with table.begin() as batch:
            report = batch.write(names(_1="a"), commit=commit)
    assert report.replayed
    table.write(names(_2="b"))
    assert "wait" not in table.compact(strategy="full").sentence
    assert contents(table.base) == {1: "a", 2: "b"}


@pytest.mark.parametrize("how", ["abort", "without a commit", "an error", "no rows"])
def test_optimizing_waits_no_longer_for_a_batch_that_ended_without_a_file(table, how):
    table.write(names(_1="a"))
    if how == "abort":
        table.begin().abort()
    elif how == "without a commit":
        with table.begin():
            pass
    elif how == "an error":
        with pytest.raises(ZeroDivisionError), table.begin():
            1 / 0  # noqa: B018
    else:
        with table.begin() as batch:
            batch.write(names())
    table.write(names(_2="b"))
    assert "wait" not in table.compact(strategy="full").sentence
    assert contents(table.base) == {1: "a", 2: "b"}


# Leases


def at(table: lake.MixedTable, clock: Clock) -> lake.MixedTable:
    """The table in a process with its own clock; no thread renews its leases."""
    pair = table._pair
    world = replace(pair.base.environment, now_millis=clock)
    return lake.MixedTable(replace(pair, base=replace(pair.base, environment=world)))


@pytest.fixture
def paused(monkeypatch) -> None:
    """No lease is renewed between commits, as in a process that is paused."""
    monkeypatch.setattr(leases.Lease, "keep_renewing", lambda self: None)


def test_only_one_batch_runs_at_a_time(table):
    with table.begin() as batch:
        with pytest.raises(lake.LockUnavailableError, match=r"a batch runs on .*until .*retry"):
            table.begin()
        batch.write(names(_1="a"))
        table.begin().abort()
    with table.begin():
        pass


def test_a_batch_whose_lease_was_taken_over_cannot_commit(table, paused):
    clock = Clock(NOW_MILLIS)
    table = at(table, clock)
    first = table.begin()
    clock.millis += leases.LEASE_MILLIS - 1
    with pytest.raises(lake.LockUnavailableError, match="a batch runs on"):
        table.begin()
    clock.millis += 1
    with table.begin() as second:
        before = file_count(table)
        for commit in (
            lambda: first.write(names(_1="late")),
            lambda: first.overwrite(names(_1="late"), "table"),
        ):
            with pytest.raises(lake.LockUnavailableError, match=r"lost its lease .*begin a new"):
                commit()
        assert file_count(table) == before
        second.write(names(_1="b"))
    assert contents(table) == {1: "b"}


def test_a_compaction_ends_a_batch_with_a_stale_lease(table, paused):
    clock = Clock(NOW_MILLIS)
    table = at(table, clock)
    table.write(names(_1="a"))
    batch = table.begin()
    table.write(names(_1="b"))
    assert "wait" in table.compact(strategy="full").sentence
    clock.millis += leases.LEASE_MILLIS
    assert "wait" not in table.compact(strategy="full").sentence
    with pytest.raises(lake.LockUnavailableError, match=r"transaction 2 on .* has already ended: "):
        batch.write(names(_1="late"))
    assert contents(table) == contents(table.base) == {1: "b"}


def test_a_lease_is_renewed_while_a_batch_runs(table, monkeypatch):
    monkeypatch.setattr(leases, "LEASE_MILLIS", 60)
    clock = Clock(NOW_MILLIS)
    batch = at(table, clock).begin()
    path = Path(table.location.removeprefix("file://")) / "_lake/lease/lease-0000000001"
    written = path.read_bytes()
    clock.millis += 40
    for _ in range(500):
        if path.read_bytes() not in (written, b""):
            break
        leases.threading.Event().wait(0.01)
    assert b"%d" % (NOW_MILLIS + 100) in path.read_bytes()
    batch.abort()
    assert path.read_bytes().endswith(b'"expiresMillis": 0}')


# What optimizers and expiries of others can do to a batch


def test_a_write_of_which_newer_changes_are_merged_is_refused(table, monkeypatch):
    batch = up_to_the_begin(table)
    monkeypatch.setattr("lakeformat.mixed.compact.plan.oldest_open_batch", lambda *given: None)
    table.compact(strategy="full")
    with pytest.raises(
        lake.CommitConflictError, match=r"has the rows up to the change with .* 4, so"
    ):
        batch.write(names(**IMPORTED))
    batch.abort()
    assert contents(table) == {1: "john", 2: "amy", 3: "bob"}


def test_changes_that_expired_under_a_batch_are_named(table, tmp_path, monkeypatch):
    """An optimizer that ignores the batch merges newer changes, and an expiry deletes them."""
    batch = up_to_the_begin(table)
    monkeypatch.setattr("lakeformat.mixed.compact.plan.oldest_open_batch", lambda *given: None)
    table.compact(strategy="full")
    change = load_iceberg_table(LocalStorage(), str(tmp_path / "db/t_change_"))
    change.truncate()
    before = contents(table)
    with pytest.raises(lake.SnapshotExpiredError, match=r"has deleted files .*Begin a new batch"):
        batch.overwrite(names(**IMPORTED), "table")
    batch.abort()
    assert contents(table) == before == {1: "john", 2: "amy", 3: "bob"}


def test_a_batch_whose_begin_has_expired_is_refused(table, tmp_path):
    batch = up_to_the_begin(table)
    change = tmp_path / "db/t_change_"
    kept = json.loads(newest_metadata(change).read_text())["snapshots"]
    edit(change, snapshots=[each for each in kept if each["sequence-number"] > 2])
    table = lake.open_table(table.location)
    before = file_count(table)
    batch = replaced_pair(batch, table)
    with pytest.raises(lake.CommitConflictError, match="is no longer in the history of the change"):
        batch.write(names(**IMPORTED))
    assert file_count(table) == before


def replaced_pair(batch: Any, table: lake.MixedTable) -> Any:
    """The batch in a process that has no metadata in memory."""
    batch._pair = table._pair
    batch._begun = replace(batch._begun, pair=table._pair)
    return batch
