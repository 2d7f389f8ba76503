"""``table.staged``: files wait in the table's directory until they are published, once."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.errors import InvalidRequestError, NotFoundError
from lakeformat.iceberg.orphans import remove
from lakeformat.iceberg.table.table import IcebergTable
from lakeformat.storage import MemoryStorage
from lakeformat.tables.staged.files import StagedFiles
from tests.crash.simulated import simulated
from tests.unit.iceberg.compact.made_deletes import delete_by_key
from tests.unit.iceberg.path_table import ROOT, handle_on, path_table
from tests.unit.iceberg.write.made_tables import ids_of, made_table, referenced_files, stored_files

DAY = 24 * 3600 * 1000


@pytest.fixture
def storage(clock) -> MemoryStorage:
    return MemoryStorage("t", clock=clock)


@pytest.fixture
def orders(storage, clock) -> IcebergTable:
    made_table(storage, partition={"k": "identity"})
    return opened(storage, clock)


def opened(storage, clock) -> IcebergTable:
    return IcebergTable(handle_on(storage, replace(simulated(), now_millis=clock)))


def rows(*ids: int) -> pa.Table:
    keys = pa.array([f"k{each % 3}" for each in ids], pa.string())
    return pa.table({"id": pa.array(ids, pa.int64()), "k": keys})


def prepared(table, *ids):
    with table.new_writer() as writer:
        writer.write(rows(*ids))
        return writer.prepare()


def staged(table, *ids, commit=None):
    return table.staged.address(table.staged.add(prepared(table, *ids), commit=commit).name)


def ids(table):
    return ids_of(table._handle)


def scanned(table, *addresses, **how):
    return sorted(table.staged.scan(addresses, **how).to_arrow()["id"].to_pylist())


@pytest.mark.parametrize("version", [1, 2, 3])
def test_no_reader_sees_staged_rows_before_they_are_published(storage, version):
    table = IcebergTable(made_table(storage, version))
    addresses = [staged(table, 1, 2), staged(table, 3)]
    assert table.latest_snapshot() is None
    assert [(each.rows, each.files) for each in table.staged.list()] == [(2, 1), (1, 1)]
    report = table.staged.publish(addresses)
    assert (report.kind, report.rows, len(table.snapshots())) == ("append", 3, 1)
    assert (ids(table), table.staged.list()) == ([1, 2, 3], [])
    assert stored_files(storage) == referenced_files(table._handle)


def test_staged_rows_are_read_alone_or_with_the_published_ones(orders):
    orders.write(rows(1))
    addresses = [staged(orders, 2, 3), staged(orders, 4)]
    assert scanned(orders, *addresses) == [2, 3, 4]
    assert orders.staged.scan(addresses).count() == 3
    assert scanned(orders, *addresses, where="k <> 'k0'", with_published=True) == [1, 2, 4]


def test_earlier_deletes_do_not_apply_to_staged_rows(orders):
    orders.write(rows(1, 4))
    delete_by_key(orders._handle, 1, partition={"k_part": "k1"})
    assert scanned(orders, staged(orders, 1), with_published=True) == [1, 4]


def test_staged_rows_take_the_place_of_those_of_an_earlier_commit(orders):
    first = orders.staged.publish([staged(orders, 1, 2)], commit=lake.CommitId("run", 1))
    second = lake.CommitId("run", 2, replaces=first.snapshot_id)
    orders.staged.publish([staged(orders, 2, 5)], commit=second)
    assert ids(orders) == [2, 5]


def test_files_staged_while_a_removal_of_orphans_searches_are_kept(orders, clock, monkeypatch):
    orders.write(rows(9))
    messages = prepared(orders, 1)  # by a writer that has been running for a month
    clock.millis += 30 * DAY
    search = remove._find

    def staged_meanwhile(*arguments):
        search(*arguments)
        orders.staged.add(messages)

    monkeypatch.setattr(remove, "_find", staged_meanwhile)
    assert orders.remove_orphans(dry_run=False).removed_files == 0


def test_a_branch_has_staged_rows_of_its_own(orders, clock):
    orders.write(rows(9))
    orders.branches.create("audit")
    audit = IcebergTable(replace(orders._handle, branch="audit"))
    address = staged(audit, 1)
    clock.millis += 30 * DAY
    assert orders.staged.list() == []
    assert orders.remove_orphans(dry_run=False).removed_files == 0
    audit.staged.publish([address])
    assert (ids(audit), ids(orders)) == ([1, 9], [9])


def test_rows_are_not_discarded_because_another_publication_of_them_has_failed(orders):
    address, who = staged(orders, 1), lake.CommitId("run", 1)
    orders.write(rows(9), commit=who)
    [result] = orders.staged.list()
    orders.staged._files.claim(result.name, "nightly", orders._handle.environment)
    with pytest.raises(InvalidRequestError, match="published other files before"):
        orders.staged.publish([address], commit=who)
    [report] = orders.staged.discard([address], dry_run=False)
    assert report.outcome == "claimed"


def test_rows_of_an_interrupted_discard_are_not_published(orders, storage):
    address = staged(orders, 1)
    [result] = orders.staged.list()
    orders.staged._files.begin_discard(result.name, orders._handle.environment)
    with pytest.raises(InvalidRequestError, match="discard it again, then stage the rows again"):
        orders.staged.publish([address])
    assert orders.staged.discard([address], dry_run=False)[0].outcome == "discarded"
    assert [each for each in storage.files() if "/_lake/" in each] == []


def test_a_publication_that_was_interrupted_protects_rows_for_a_day(orders, storage, clock):
    address = staged(orders, 1)
    [result] = orders.staged.list()
    orders.staged._files.claim(result.name, "nightly", orders._handle.environment)
    clock.millis += DAY
    assert orders.staged.discard([address], dry_run=False)[0].outcome == "claimed"
    clock.millis += 1
    assert orders.staged.discard([address], dry_run=False)[0].outcome == "discarded"
    assert [each for each in storage.files() if "/_lake/" in each] == []


def test_of_published_rows_only_the_note_is_discarded(orders, monkeypatch):
    address = staged(orders, 1)
    with monkeypatch.context() as patched:
        patched.setattr(StagedFiles, "delete", lambda *_: None)
        patched.setattr(StagedFiles, "claim", lambda *_: "none")
        orders.staged.publish([address])
    orders.write(rows(2), overwrite="table")  # an older snapshot still has the file
    [report] = orders.staged.discard([address], dry_run=False)
    assert report.outcome == "published"
    assert report.reason.endswith(".parquet is in the table already")
    assert (ids(orders), orders.staged.list()) == ([2], [])


def test_a_result_of_another_table_is_refused(orders, storage, clock):
    address = staged(orders, 1)
    path_table(storage, **{"table-uuid": "anew"})  # dropped and created again
    again = opened(storage, clock)
    assert again.staged.list() == []
    with pytest.raises(InvalidRequestError, match="is not a staged result of"):
        again.staged.publish([address])


def test_a_result_that_is_missing_or_damaged_is_named(orders, storage):
    with pytest.raises(NotFoundError, match="is not a staged result: it was already published"):
        orders.staged.publish([orders.staged.address("ab12")])
    address = staged(orders, 1)
    [path] = [each for each in storage.files() if "/_lake/staged/" in each]
    assert path.startswith(f"{ROOT}/_lake/staged/4f2b/staged-")
    storage.overwrite(path, b"{}")
    for refused in (lambda: orders.staged.publish([address]), orders.remove_orphans):
        with pytest.raises(InvalidRequestError, match="not a staged result of this version"):
            refused()


def test_staged_rows_are_checked_before_they_are_published(orders):
    orders.write(rows(1))
    address = staged(orders, 2, 4)
    report = orders.check(staged=[address], min_rows=2, not_null=["id"], unique=["id", "k"])
    assert (report.rows, report.staged) == (2, (address,))
    assert report.snapshot_id == orders.latest_snapshot().id
    assert [each.name for each in report.failed] == ["unique(k)"]  # a published row has k1, too


def test_rows_that_the_commit_will_replace_do_not_repeat_staged_values(orders):
    orders.write(rows(9))
    replaced = orders.write(rows(1, 2)).snapshot_id
    address = staged(orders, 2, 3)
    found = orders.check(staged=[address], unique=["id"]).failed
    assert len(found) == 1
    assert orders.check(staged=[address], replaces=replaced, unique=["id"]).failed == ()
