"""The lease of a batch: a row of a SQL catalog, else a file that only one writer can create."""

from __future__ import annotations

import json
import shutil
import sqlite3
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import lakeformat as lake
from lakeformat.catalog.iceberg.sql_leases import SqlLeases
from lakeformat.cli.app import app
from lakeformat.mixed.batch import end_batch
from lakeformat.mixed.batch import lease as leases
from lakeformat.mixed.batch.begin import BegunBatch
from lakeformat.mixed.batch.lease_files import LeaseFiles
from lakeformat.storage import LocalStorage
from lakeformat.tables.lease import StoredLease
from tests.crash.simulated import NOW_MILLIS, Clock
from tests.unit.mixed.named_rows import contents, names, new_catalog, new_table


def sql_catalog(root: Path) -> Any:
    options = {"metastore": "sql", "uri": f"sqlite:///{root}/catalog.db"}
    return lake.open_catalog(str(root / "warehouse"), format="iceberg", options=options)


@pytest.fixture(params=["file", "sql"])
def place(request: Any) -> str:
    return str(request.param)


@pytest.fixture
def table(tmp_path: Path, place: str) -> lake.MixedTable:
    catalog = new_catalog(tmp_path) if place == "file" else sql_catalog(tmp_path)
    if place == "sql":
        catalog.create_database("db")
    made = new_table(catalog)
    kind = LeaseFiles if place == "file" else SqlLeases
    assert isinstance(leases.leases_of(made._pair), kind)
    return made


def at(table: lake.MixedTable, clock: Clock) -> lake.MixedTable:
    pair = table._pair
    world = replace(pair.base.environment, now_millis=clock)
    return lake.MixedTable(replace(pair, base=replace(pair.base, environment=world)))


@pytest.fixture
def paused(monkeypatch: Any) -> None:
    monkeypatch.setattr(leases.Lease, "keep_renewing", lambda self: None)


def command(table: lake.MixedTable, place: str) -> str:
    """The command that ends a batch; a SQL catalog knows the table by its name."""
    return f"`lake end-batch {'db.t' if place == 'sql' else table.location}`"


def test_a_lease_excludes_a_second_batch_until_it_is_stale(table, place, paused):
    clock = Clock(NOW_MILLIS)
    table = at(table, clock)
    first = table.begin()
    clock.millis += leases.LEASE_MILLIS - 1
    with pytest.raises(lake.LockUnavailableError, match="a batch runs on ") as refused:
        table.begin()
    assert f"If it hangs, {command(table, place)} ends it" in str(refused.value)
    clock.millis += 1
    with table.begin() as second:
        with pytest.raises(lake.LockUnavailableError, match=r"lost its lease .*begin a new"):
            first.write(names(_1="late"))
        second.write(names(_1="b"))
    assert contents(table) == {1: "b"}
    table.begin().abort()


def test_only_one_of_two_holders_takes_a_number(table):
    kept = leases.leases_of(table._pair)
    assert kept.newest() is None
    assert [kept.take(StoredLease(1, owner, 10**15)) for owner in "ab"] == [True, False]
    assert kept.newest() == StoredLease(1, "a", 10**15)
    assert kept.take(StoredLease(2, "c", 10**15))
    assert not kept.renew(StoredLease(1, "a", 10**16))
    assert kept.renew(StoredLease(2, "c", 5))
    assert kept.newest() == StoredLease(2, "c", 5)


# A batch that is ended from another process


def test_a_batch_that_hangs_is_ended_from_another_process(table):
    table.write(names(_1="a"))
    batch = table.begin()
    plan = table.end_batch(dry_run=True)
    assert (plan.dry_run, plan.transactions) == (True, (2,))
    assert plan.reason.startswith("would end 1 batch with transaction 2, and the lease ")
    report = table.end_batch()
    assert report.reason.endswith("a later commit of the batch is refused")
    with pytest.raises(lake.LockUnavailableError, match="lost its lease"):
        batch.overwrite(names(_1="late"), "table")
    table.write(names(_1="b"))
    assert "wait" not in table.compact(strategy="full", executor="serial").sentence
    table.delete("id = 1")
    assert contents(table) == {}
    assert table.end_batch().reason == "no batch runs, so there is none to end"


def test_a_lease_with_a_wrong_time_is_named_and_ended(table, place):
    kept = leases.leases_of(table._pair)
    kept.take(StoredLease(1, "forger", 2**63 - 1))
    with pytest.raises(lake.LockUnavailableError) as refused:
        table.delete("id = 1")
    said = str(refused.value)
    assert "of the owner 'forger' ends at " in said
    assert "a batch takes a lease for 60 s only. So the lease is forged" in said
    assert kept.place(1) in said
    assert f"{command(table, place)}; with --dry-run" in said
    lease = f"the lease {kept.place(1)} (owner 'forger', valid until "
    assert table.end_batch(dry_run=True).reason.startswith(f"would end {lease}")
    ended = table.end_batch()
    assert ended.owner == "forger"
    assert ended.reason.startswith(f"ended {lease}")
    assert ended.reason.endswith(", under which no batch has begun")
    table.begin().abort()


def test_the_command_ends_a_batch_and_shows_it_before(tmp_path):
    table = new_table(new_catalog(tmp_path))
    batch = table.begin()
    shown = CliRunner().invoke(app, ["end-batch", table.location, "--dry-run"])
    assert shown.stdout.startswith("would end 1 batch with transaction 1")
    assert table.end_batch(dry_run=True).transactions == (1,)
    ended = CliRunner().invoke(app, ["end-batch", table.location, "--json"])
    assert json.loads(ended.stdout)[0]["transactions"] == [1]
    with pytest.raises(lake.LockUnavailableError):
        batch.write(names(_1="late"))


@pytest.mark.parametrize("method", ["write", "overwrite"])
def test_a_batch_changes_nothing_in_a_table_that_was_created_again(
    table, tmp_path, place, paused, method
):
    """Both batches have the same transaction and the same number of the lease."""
    is_file = place == "file"
    catalog = (
        lake.open_catalog(str(tmp_path), format="iceberg") if is_file else sql_catalog(tmp_path)
    )
    table.write(names(_1="a"))
    old = table.begin()
    catalog.drop_table("db.t", purge=True)
    again = new_table(catalog)
    again.write(names(_5="new"))
    new = again.begin()
    assert new.transaction == old.transaction
    old._pair = again._pair  # which has no metadata of the dropped table in memory
    old._begun = replace(old._begun, pair=again._pair)
    late = names(_1="late")
    work = {"write": old.write, "overwrite": partial(old.overwrite, partitions="table")}[method]
    with pytest.raises(lake.TableReplacedError, match=r"was dropped and created again, with"):
        work(late)
    old.abort()
    new.write(names(_6="b"))
    assert contents(again) == {5: "new", 6: "b"}


@pytest.mark.parametrize("method", ["update", "overwrite"])
@pytest.mark.parametrize("place", ["file"], indirect=True)
def test_a_batch_is_refused_if_one_that_it_ended_is_published_later(table, monkeypatch, method):
    """The first batch is paused between the check of its lease and its commit."""
    table.write(names(_1="a"))
    first, second = table.begin(), []
    require_open = BegunBatch.require_open

    def paused(begun, change):
        require_open(begun, change)
        if not second:
            first._begun.lease.release()
            second.append(table.begin())

    monkeypatch.setattr(BegunBatch, "require_open", paused)
    first.overwrite(names(_2="first"), "table")
    late = second[0]
    assert {row["id"] for row in late.scan().to_arrow().to_pylist()} == {1}
    work = partial(late.update, "id = 1", {"name": "second"})
    if method == "overwrite":
        work = partial(late.overwrite, names(_1="second"), "table")
    with pytest.raises(lake.CommitConflictError, match="the earlier batch with transaction 2 has"):
        work()
    assert contents(table) == {2: "first"}


def test_an_overwrite_that_is_ended_between_its_check_and_its_commit_is_refused(table, monkeypatch):
    table.write(names(_1="a"))
    batch, reports = table.begin(), []
    require_open = BegunBatch.require_open

    def paused(begun, change):
        require_open(begun, change)
        if not reports:
            reports.append(table.end_batch())

    monkeypatch.setattr(BegunBatch, "require_open", paused)
    begin = table.position()
    with pytest.raises(lake.LockUnavailableError, match="lost its lease"):
        batch.overwrite(names(_2="late"), "table")
    assert (reports[0].transactions, reports[0].published) == ((batch.transaction,), ())
    assert contents(table) == {1: "a"}
    assert [*table.changes(begin).to_arrow()["id"]] == []  # a reader of changes goes on
    table.compact(strategy="full", executor="serial")
    assert contents(table) == contents(table.base) == {1: "a"}


@pytest.mark.parametrize("method", ["write", "overwrite"])
def test_the_end_of_a_batch_that_publishes_meanwhile_says_so(table, monkeypatch, method):
    table.write(names(_1="a"))
    batch = table.begin()
    late = names(_2="late")
    work = {"write": batch.write, "overwrite": partial(batch.overwrite, partitions="table")}[method]
    ends = end_batch.end_dead_batches

    def late_end(pair):
        with monkeypatch.context() as patch:  # it has checked its lease before
            patch.setattr(leases.Lease, "require", lambda self, work: None)
            work(late)
        ends(pair)

    monkeypatch.setattr(end_batch, "end_dead_batches", late_end)
    report = table.end_batch()
    assert (report.transactions, report.published) == ((), (batch.transaction,))
    assert report.reason == "the batch with transaction 2 had published its commit"
    assert contents(table) == ({2: "late"} if method == "overwrite" else {1: "a", 2: "late"})


@pytest.mark.parametrize("place", ["sql"], indirect=True)
def test_a_drop_removes_the_row_of_the_lease(table, tmp_path):
    catalog = sql_catalog(tmp_path)
    table.begin().abort()
    catalog.drop_table("db.t")
    kept = new_table(catalog)
    kept.begin().abort()
    with sqlite3.connect(tmp_path / "catalog.db") as database:
        found = database.execute("SELECT table_uuid FROM lake_leases").fetchall()
    database.close()
    assert found == [(kept.base._handle.load().metadata.table_uuid,)]


def test_a_dead_batch_is_ended_although_its_lease_was_lost(table, tmp_path, place, paused):
    """As after the database of the catalog was restored from a backup."""
    table.begin().abort()
    dead = table.begin()
    dead.write = None  # its process has died
    if place == "file":
        shutil.rmtree(tmp_path / "db/t/_lake/lease")
    else:
        with sqlite3.connect(tmp_path / "catalog.db") as database:
            database.execute("DELETE FROM lake_leases")
        database.close()
    leases.leases_of(table._pair).take(StoredLease(1, "other", 0))
    assert table.end_batch().transactions == (dead.transaction,)
    assert table.end_batch(dry_run=True).transactions == ()


@pytest.mark.parametrize("member", ["number = 9223372036854775807", "expires_millis = 'soon'"])
@pytest.mark.parametrize("place", ["sql"], indirect=True)
def test_a_row_that_no_batch_has_written_is_named(table, tmp_path, member):
    table.begin().abort()
    with sqlite3.connect(tmp_path / "catalog.db") as database:
        database.execute(f"UPDATE lake_leases SET {member}")
    for call in (table.begin, table.end_batch):
        with pytest.raises(lake.CorruptTableError, match=r"no batch has written\. Stop .*delete"):
            call()
    with database:
        database.execute("DELETE FROM lake_leases")
    database.close()
    table.begin().abort()


# Storages on which two writers could create one file


@pytest.fixture
def weak(monkeypatch: Any) -> None:
    create = LocalStorage.create

    def refuse(self: LocalStorage, path: str, content: bytes) -> bool:
        if "/_lake/lease/" in path:
            raise lake.UnsupportedError(
                f"Cannot publish {path}: the store has no conditional write"
            )
        return create(self, path, content)

    monkeypatch.setattr(LocalStorage, "create", refuse)


@pytest.mark.parametrize("place", ["file"], indirect=True)
def test_a_batch_is_refused_without_a_lease_that_only_one_can_take(table, weak):
    table.write(names(_1="a"))
    with pytest.raises(
        lake.UnsupportedError, match=r"no batch began, because its lease .*In a SQL cat"
    ):
        table.delete("id = 1")
    assert contents(table) == {1: "a"}
    assert len(table.snapshots()) == 1


@pytest.mark.parametrize("place", ["sql"], indirect=True)
def test_a_sql_catalog_keeps_leases_for_any_storage_and_over_a_rename(table, weak, tmp_path):
    table.write(names(_1="a"))
    table.update("id = 1", {"name": "b"})
    catalog = sql_catalog(tmp_path)
    number = leases.leases_of(table._pair).newest().number
    catalog.rename_table("db.t", "db.u")
    renamed = catalog.table("db.u")
    with renamed.begin() as batch:
        assert batch._begun.lease.number == number + 1
    assert contents(renamed) == {1: "b"}
    assert not (tmp_path / "warehouse/db/t/_lake/lease").exists()
