"""The ends of batches of Mixed tables: commits, aborts, leases, and what other programs can do."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.iceberg.table import load_iceberg_table
from lakeformat.mixed.batch import begin as begins
from lakeformat.mixed.batch import lease as leases
from lakeformat.mixed.compact import compact as compactions
from lakeformat.mixed.compact import plan as plans
from lakeformat.storage import LocalStorage
from tests.crash.simulated import NOW_MILLIS, Clock
from tests.unit.mixed.aged_table import COLUMNS, HOUR, AgedTable
from tests.unit.mixed.edited_stores import edit, newest_metadata
from tests.unit.mixed.named_rows import (
    IMPORTED,
    contents,
    file_count,
    names,
    new_catalog,
    new_table,
    up_to_the_begin,
)


@pytest.fixture
def table(tmp_path: Path) -> lake.MixedTable:
    return new_table(new_catalog(tmp_path))


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


def test_the_command_ends_a_batch_with_a_stale_lease(table, paused):
    clock = Clock(NOW_MILLIS)
    table = at(table, clock)
    batch = table.begin()
    clock.millis += leases.LEASE_MILLIS
    assert table.end_batch().transactions == (batch.transaction,)
    with pytest.raises(
        lake.LockUnavailableError, match=r"has already ended\. .*`lake end-batch` or"
    ):
        batch.write(names(_1="late"))
    assert contents(table) == {}


def test_a_compaction_ends_a_batch_with_a_stale_lease(table, paused):
    clock = Clock(NOW_MILLIS)
    table = at(table, clock)
    table.write(names(_1="a"))
    batch = table.begin()
    table.write(names(_1="b"))
    assert "wait" in table.compact(strategy="full").sentence
    clock.millis += leases.LEASE_MILLIS
    assert "wait" not in table.compact(strategy="full").sentence
    with pytest.raises(
        lake.LockUnavailableError, match=r"transaction 2 on .* has already ended\. "
    ):
        batch.write(names(_1="late"))
    assert contents(table) == contents(table.base) == {1: "b"}
    table.begin().abort()  # the refused batch holds no lease any more


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


def test_a_batch_that_is_forgotten_is_renewed_no_longer(table):
    batch = table.begin()
    lease = batch._begun.lease
    assert not lease._ended.is_set()
    del batch
    assert lease._ended.is_set()


def test_a_batch_reads_an_overwrite_that_ended_right_before_its_begin(table, monkeypatch):
    table.write(names(_1="a"))
    take = begins.take_lease

    def take_later(*given: Any) -> Any:
        monkeypatch.setattr(begins, "take_lease", take)
        table.write(names(_2="b"), overwrite="table")
        return take(*given)

    monkeypatch.setattr(begins, "take_lease", take_later)
    with table.begin() as batch:
        assert contents(batch) == {2: "b"}


def test_a_compaction_ends_no_batch_that_has_committed(table):
    table.write(names(_1="a"))
    table.write(names(_1="b"), overwrite="table")
    commits = len(table.change.snapshots())
    table.compact(strategy="full")
    assert len(table.change.snapshots()) == commits


# What optimizers and expiries of others can do to a batch


def test_a_write_of_which_newer_changes_are_merged_is_refused(table, monkeypatch):
    batch = up_to_the_begin(table)
    monkeypatch.setattr("lakeformat.mixed.compact.plan.oldest_open_batch", lambda *given: None)
    table.compact(strategy="full")
    with pytest.raises(lake.CommitConflictError, match=r"has merged changes up to .* 4, so"):
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


@pytest.fixture
def foreign(monkeypatch) -> None:
    """A batch of another program, such as Amoro: it has no lease, and nothing ends it."""
    monkeypatch.setattr(leases.Lease, "require", lambda self, work: None)
    monkeypatch.setattr("lakeformat.mixed.batch.begin.leased_batches", lambda metadata: {})


def two_batches(table: lake.MixedTable) -> tuple[Any, Any]:
    table.write(names(_1="a"))
    first = table.begin()
    first._begun.lease.release()
    return first, table.begin()


def test_an_older_batch_does_not_replace_the_rows_of_a_later_overwrite(table, foreign):
    first, second = two_batches(table)
    second.overwrite(names(_1="second"), "table")
    with pytest.raises(lake.CommitConflictError, match="the later batch with transaction 3"):
        first.overwrite(names(_1="first"), "table")
    with pytest.raises(lake.CommitConflictError, match="has merged changes up to seq"):
        first.write(names(_1="first"))
    assert contents(table) == {1: "second"}


def test_an_overwrite_does_not_mix_with_the_changes_of_an_older_batch(table, foreign):
    first, second = two_batches(table)
    first.write(names(_1="first", _2="first"))
    with pytest.raises(lake.CommitConflictError, match="the older batch with transaction 2"):
        second.overwrite(names(_1="second"), "table")
    second.abort()
    with table.begin() as third:
        third.overwrite(names(_1="third"), "table")
    assert contents(table) == {1: "third"}


def test_an_overwrite_whose_base_snapshots_have_expired_is_refused(table, tmp_path):
    table.write(names(_1="a"))
    table.compact(strategy="full")
    batch = table.begin()
    table.write(names(_2="b"), overwrite=None)
    base = load_iceberg_table(LocalStorage(), str(tmp_path / "db/t"))
    base.write(names(_9="other"))
    kept = json.loads(newest_metadata(tmp_path / "db/t").read_text())
    edit(tmp_path / "db/t", snapshots=kept["snapshots"][-1:])
    table = lake.open_table(table.location)
    with pytest.raises(lake.CommitConflictError, match="base snapshots since its start"):
        replaced_pair(batch, table).overwrite(names(_1="b"), "table")


@pytest.mark.parametrize("is_amoro", [False, True], ids=["lake", "amoro"])
def test_a_batch_reads_the_base_snapshot_that_an_expiry_keeps(tmp_path, monkeypatch, is_amoro):
    """An optimizing is published after the batch has read the metadata, and before its start.

    Amoro's optimizer, which does not wait for the batch, publishes another one after the start.
    """
    aged = AgedTable(tmp_path)
    aged.write((1, "x", "a"))
    aged.merge()
    aged.now += HOUR
    aged.write((1, "x", "b"))

    publish = begins.publish_change

    def merge_around(*given: Any, **named: Any) -> Any:
        monkeypatch.setattr(begins, "publish_change", publish)
        aged.merge()
        begun = publish(*given, **named)
        if is_amoro:
            aged.write((1, "x", "stream"))
            with monkeypatch.context() as amoro:
                amoro.setattr(plans, "oldest_open_batch", lambda *state: None)
                amoro.setattr(compactions, "end_dead_batches", lambda pair: None)
                aged.merge()
        return begun

    monkeypatch.setattr(begins, "publish_change", merge_around)
    with aged.table.begin() as batch:
        aged.now += HOUR
        batch._begun.lease._write(aged.now + leases.LEASE_MILLIS)
        aged.table.expire_snapshots(older_than="90 min")
        assert batch.scan().to_arrow().to_pylist() == [{"k": 1, "p": "x", "v": "b"}]
        if is_amoro:
            batch.overwrite(pa.table([[1], ["x"], ["c"]], schema=COLUMNS), "table")
        else:
            batch.update(None, {"v": "c"})
    assert aged.rows() == [(1, "x", "stream" if is_amoro else "c")]
