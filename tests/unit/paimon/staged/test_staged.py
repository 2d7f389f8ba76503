"""``table.staged``: files wait below the table until they are published, once."""

from __future__ import annotations

import itertools
import uuid
from random import Random

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.catalog import FileSystemCatalog
from lakeformat.environment import Environment
from lakeformat.storage import MemoryStorage
from lakeformat.tables.staged.files import StagedFiles

DAY = 86_400_000
_numbers = itertools.count()


class Warehouse:
    """One database in memory; its files and everybody's clock agree on the time."""

    def __init__(self) -> None:
        self.now = 1_700_000_000_000
        self.storage = MemoryStorage(f"staged-{next(_numbers)}", clock=lambda: self.now)
        random = Random(0)
        environment = Environment(
            now_millis=lambda: self.now,
            new_id=lambda: str(uuid.UUID(int=random.getrandbits(128), version=4)),
        )
        self.catalog = FileSystemCatalog(self.storage, "wh", environment)
        self.catalog.create_database("shop")

    def table(self, name="orders", **how):
        return self.catalog.create_table(f"shop.{name}", [("id", "BIGINT NOT NULL")], **how)

    def data_files(self):
        return sorted(name for name in self.storage.files() if "/bucket-" in name)


@pytest.fixture
def warehouse():
    return Warehouse()


@pytest.fixture
def orders(warehouse):
    return warehouse.table()


def prepared(table, *ids):
    with table.new_writer() as writer:
        writer.write(pa.table({"id": list(ids)}))
        return writer.prepare()


def staged(table, *ids, commit=None):
    return table.staged.address(table.staged.add(prepared(table, *ids), commit=commit).name)


def ids(table):
    return sorted(table.scan().to_arrow()["id"].to_pylist())


def test_nobody_sees_it_before_it_is_published(orders):
    address = staged(orders, 1, 2)
    assert orders.latest_snapshot() is None
    assert [(each.rows, each.files) for each in orders.staged.list()] == [(2, 1)]

    report = orders.staged.publish([address])
    assert (report.snapshot_id, ids(orders), orders.staged.list()) == (1, [1, 2], [])


def test_staged_rows_are_read_alone_or_with_the_published_ones(orders):
    orders.write(pa.table({"id": [1]}))
    addresses = [staged(orders, 2, 3), staged(orders, 4)]
    alone = orders.staged.scan(addresses)
    assert sorted(alone.to_arrow()["id"].to_pylist()) == [2, 3, 4]
    assert (alone.count(), alone.snapshot) == (3, None)
    together = orders.staged.scan(addresses, ["id"], where="id <> 3", with_published=True)
    assert sorted(together.to_arrow()["id"].to_pylist()) == [1, 2, 4]
    assert together.snapshot_id == 1


def test_staged_rows_replace_published_rows_of_their_keys(warehouse):
    columns = [("id", "BIGINT NOT NULL"), ("v", "INT")]
    table = warehouse.catalog.create_table("shop.kv", columns, primary_key=["id"])
    table.write(pa.table({"id": [1, 2], "v": pa.array([10, 20], pa.int32())}))
    with table.new_writer() as writer:
        writer.write(pa.table({"id": [2, 3], "v": pa.array([21, 30], pa.int32())}))
        address = table.staged.address(table.staged.add(writer.prepare()).name)
    together = table.staged.scan([address], with_published=True)
    assert sorted(together.to_arrow()["v"].to_pylist()) == [10, 21, 30]


def test_a_condition_hides_no_newer_published_row_of_a_staged_key(warehouse):
    columns = [("id", "BIGINT NOT NULL"), ("v", "BIGINT"), ("at", "BIGINT")]
    options = {"sequence.field": "at"}
    table = warehouse.catalog.create_table("shop.kv", columns, primary_key=["id"], options=options)
    table.write(pa.table({"id": [1], "v": [11], "at": [9]}))
    with table.new_writer() as writer:
        writer.write(pa.table({"id": [1], "v": [10], "at": [5]}))
        address = table.staged.address(table.staged.add(writer.prepare()).name)
    assert table.staged.scan([address], where="v = 10").count() == 1
    assert table.staged.scan([address], where="v = 10", with_published=True).count() == 0


def test_staged_results_that_replace_files_cannot_be_read_before_their_publication(warehouse):
    orders = warehouse.table("compacted")
    for number in range(3):
        orders.write(pa.table({"id": [number]}))
    [file] = orders.scan().splits()[0].files[:1]
    message = lake.CommitMessage(bucket=0, deleted_files=(file.file,))
    address = orders.staged.address(orders.staged.add([message]).name)
    with pytest.raises(lake.UnsupportedError, match="publish it, then read the table"):
        orders.staged.scan([address])


def test_many_become_one_snapshot(orders):
    addresses = [staged(orders, number) for number in range(3)]
    assert orders.staged.publish(addresses).snapshot_id == 1
    assert ids(orders) == [0, 1, 2]


def test_publishing_again_changes_nothing(orders):
    addresses = [staged(orders, 1), staged(orders, 2)]
    first = orders.staged.publish(addresses)
    orders.write(pa.table({"id": [3]}))
    again = orders.staged.publish(addresses[::-1])
    assert (again.replayed, again.snapshot_id) == (True, first.snapshot_id)
    assert ids(orders) == [1, 2, 3]


def test_what_broke_off_after_publication_is_finished(orders, monkeypatch):
    address = staged(orders, 1)
    with monkeypatch.context() as patched:
        patched.setattr(StagedFiles, "delete", lambda *args: None)
        orders.staged.publish([address])
    assert len(orders.staged.list()) == 1
    assert orders.staged.publish([address]).replayed
    assert (orders.staged.list(), ids(orders)) == ([], [1])


def test_an_identity_stages_once(orders, warehouse):
    who = lake.CommitId("run", 1)
    first = orders.staged.add(prepared(orders, 1), commit=who)
    second = prepared(orders, 1)
    again = orders.staged.add(second, commit=who)
    assert again == first
    orders.abort(second)
    orders.staged.publish([orders.staged.address(first.name)], commit=who)
    assert (ids(orders), len(warehouse.data_files())) == ([1], 1)


def test_an_identity_of_something_else_publishes_nothing(orders):
    who = lake.CommitId("run", 1)
    orders.write(pa.table({"id": [1]}), commit=who)
    address = staged(orders, 2)
    with pytest.raises(lake.InvalidRequestError, match="published other files before"):
        orders.staged.publish([address], commit=who)
    assert (ids(orders), len(orders.staged.list())) == ([1], 1)
    assert orders.staged.publish([address]).snapshot_id == 2, "no claim was left behind"


def test_one_that_is_gone_is_named(orders):
    addresses = [staged(orders, 1), staged(orders, 2)]
    orders.staged.publish(addresses[:1])
    with pytest.raises(lake.NotFoundError, match="published under another identity"):
        orders.staged.publish(addresses)
    assert ids(orders) == [1]


def test_one_of_another_table_is_refused(warehouse, orders):
    address = staged(warehouse.table("others"), 1)
    with pytest.raises(lake.InvalidRequestError, match="is not a staged result of"):
        orders.staged.publish([address])


@pytest.mark.parametrize("content", [b"", b"{}", b'{"version": 9}', b"\xff"])
def test_a_damaged_one_is_named(warehouse, orders, content):
    address = staged(orders, 1)
    [path] = [name for name in warehouse.storage.files() if "/staged/" in name]
    warehouse.storage.overwrite(path, content)
    with pytest.raises(lake.InvalidRequestError, match="not a staged result of this version"):
        orders.staged.publish([address])
    with pytest.raises(lake.InvalidRequestError, match="not a staged result of this version"):
        orders.remove_orphans()


def test_orphan_removal_leaves_its_files_however_old_they_are(warehouse, orders):
    orders.write(pa.table({"id": [0]}))
    address = staged(orders, 1)
    prepared(orders, 2)  # a crashed writer's
    warehouse.now += 30 * DAY
    assert orders.remove_orphans("1 d", dry_run=False).removed_files == 1
    orders.staged.publish([address])
    assert ids(orders) == [0, 1]


def test_what_is_given_up_goes_with_its_files(warehouse, orders):
    old = staged(orders, 1)
    warehouse.now += 2 * DAY
    staged(orders, 2)
    looked = orders.staged.discard(older_than="1 d")
    assert [(each.staged, each.outcome) for each in looked] == [(old, "discarded")]
    assert (len(orders.staged.list()), len(warehouse.data_files())) == (2, 2)

    orders.staged.discard(older_than="1 d", dry_run=False)
    assert (len(orders.staged.list()), len(warehouse.data_files())) == (1, 1)


def test_what_is_being_published_is_not_given_up(warehouse, orders):
    address = staged(orders, 1)
    [result] = orders.staged.list()
    orders.staged._files.claim(result.name, "somebody", orders._handle.environment)
    [report] = orders.staged.discard([address], dry_run=False)
    assert (report.outcome, "'somebody'" in report.reason) == ("claimed", True)
    orders.staged.publish([address])
    assert ids(orders) == [1]


def test_of_what_is_published_only_the_note_is_given_up(orders, monkeypatch):
    address = staged(orders, 1)
    with monkeypatch.context() as patched:
        patched.setattr(StagedFiles, "delete", lambda *_: None)
        patched.setattr(StagedFiles, "claim", lambda *_: "none")
        orders.staged.publish([address])
    [report] = orders.staged.discard([address], dry_run=False)
    assert (report.outcome, ids(orders), orders.staged.list()) == ("published", [1], [])


@pytest.fixture
def keyed(warehouse):
    return warehouse.table("keyed", primary_key=["id"], options={"bucket": "1"})


def test_rows_of_one_bucket_are_staged_by_one_writer(keyed):
    addresses = [staged(keyed, 1), staged(keyed, 1)]
    with pytest.raises(lake.InvalidRequestError, match="two staged results have rows for bucket 0"):
        keyed.staged.publish(addresses)
    assert keyed.latest_snapshot() is None


def test_rows_that_others_have_numbered_alike_are_not_published(keyed):
    address = staged(keyed, 1)
    keyed.write(pa.table({"id": [1]}))
    with pytest.raises(lake.InvalidRequestError, match=r"snapshot 1 .* has written to bucket 0"):
        keyed.staged.publish([address])
    assert keyed.latest_snapshot().id == 1


def test_compactions_meanwhile_do_no_harm(keyed):
    for _ in "ab":
        keyed.write(pa.table({"id": [1]}))
    address = staged(keyed, 2)
    keyed.compact()
    keyed.staged.publish([address])
    assert ids(keyed) == [1, 2]
