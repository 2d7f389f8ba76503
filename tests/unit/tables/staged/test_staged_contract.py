"""Staged results of a table of any format: hidden until they are published, and published once."""

from __future__ import annotations

import itertools
import uuid
from dataclasses import dataclass, replace
from random import Random

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.catalog import FileSystemCatalog
from lakeformat.environment import Environment
from lakeformat.iceberg.table.table import IcebergTable
from lakeformat.storage import MemoryStorage
from lakeformat.tables.staged.files import StagedFiles
from tests.crash.simulated import Clock, simulated
from tests.unit.iceberg.path_table import handle_on
from tests.unit.iceberg.write.made_tables import made_table

DAY = 86_400_000
_numbers = itertools.count()


@dataclass(frozen=True)
class Place:
    """An empty table in memory, its files, and the time of both."""

    table: lake.Table | IcebergTable
    storage: MemoryStorage
    clock: Clock

    def data_files(self) -> list[str]:
        return [name for name in self.storage.files() if name.endswith(".parquet")]


def paimon_place() -> Place:
    clock, random = Clock(), Random(0)
    storage = MemoryStorage(f"staged-{next(_numbers)}", clock=clock)
    environment = Environment(
        now_millis=clock,
        new_id=lambda: str(uuid.UUID(int=random.getrandbits(128), version=4)),
    )
    catalog = FileSystemCatalog(storage, "wh", environment)
    catalog.create_database("shop")
    return Place(catalog.create_table("shop.orders", [("id", "BIGINT NOT NULL")]), storage, clock)


def iceberg_place() -> Place:
    clock = Clock()
    storage = MemoryStorage("t", clock=clock)
    made_table(storage)
    handle = handle_on(storage, replace(simulated(), now_millis=clock))
    return Place(IcebergTable(handle), storage, clock)


@pytest.fixture(params=[paimon_place, iceberg_place], ids=["paimon", "iceberg"])
def place(request) -> Place:
    return request.param()


@pytest.fixture
def orders(place):
    return place.table


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def prepared(table, *ids):
    with table.new_writer() as writer:
        writer.write(rows(*ids))
        return writer.prepare()


def staged(table, *ids, commit=None):
    return table.staged.address(table.staged.add(prepared(table, *ids), commit=commit).name)


def ids(table):
    return sorted(table.scan().to_arrow()["id"].to_pylist())


def test_no_reader_sees_rows_before_they_are_published_as_one_snapshot(orders):
    addresses = [staged(orders, 1, 2), staged(orders, 3)]
    assert orders.latest_snapshot() is None
    assert {(each.rows, each.files) for each in orders.staged.list()} == {(2, 1), (1, 1)}
    orders.staged.publish(addresses)
    assert (len(orders.snapshots()), ids(orders), orders.staged.list()) == (1, [1, 2, 3], [])


def test_published_rows_are_not_published_again(orders):
    addresses = [staged(orders, 1), staged(orders, 2)]
    first = orders.staged.publish(addresses)
    orders.write(rows(3))
    again = orders.staged.publish(addresses[::-1])
    assert (again.replayed, again.snapshot_id) == (True, first.snapshot_id)
    assert ids(orders) == [1, 2, 3]


def test_a_publication_that_could_not_delete_its_notes_is_finished_by_the_next(orders, monkeypatch):
    address = staged(orders, 1)
    with monkeypatch.context() as patched:
        patched.setattr(StagedFiles, "delete", lambda *_: None)
        orders.staged.publish([address])
    assert len(orders.staged.list()) == 1
    assert orders.staged.publish([address]).replayed
    assert (orders.staged.list(), ids(orders)) == ([], [1])


def test_an_identity_stages_once(orders, place):
    who = lake.CommitId("run", 1)
    first, second = staged(orders, 1, commit=who), prepared(orders, 1)
    assert orders.staged.add(second, commit=who) == orders.staged.find(who)
    orders.abort(second)
    orders.staged.publish([first], commit=who)
    assert (ids(orders), len(place.data_files())) == ([1], 1)


def test_an_identity_that_has_published_other_files_publishes_nothing(orders):
    who = lake.CommitId("run", 1)
    orders.write(rows(1), commit=who)
    address = staged(orders, 2)
    with pytest.raises(lake.InvalidRequestError, match="published other files before"):
        orders.staged.publish([address], commit=who)
    assert (ids(orders), len(orders.staged.list())) == ([1], 1)
    orders.staged.publish([address])
    assert ids(orders) == [1, 2], "no claim was left behind"


def test_files_of_staged_rows_are_no_orphans_however_old_they_are(orders, place):
    orders.write(rows(9))
    address = staged(orders, 1)
    prepared(orders, 2)  # of a writer that has crashed
    place.clock.millis += 30 * DAY
    assert orders.remove_orphans("1 d", dry_run=False).removed_files == 1
    orders.staged.publish([address])
    assert (ids(orders), len(place.data_files())) == ([1, 9], 2)


def test_discarded_rows_are_deleted_with_their_files(orders, place):
    old = staged(orders, 1)
    place.clock.millis += 2 * DAY
    staged(orders, 2)
    planned = orders.staged.discard(older_than="1 d")
    assert [(each.staged, each.outcome) for each in planned] == [(old, "discarded")]
    assert (len(orders.staged.list()), len(place.data_files())) == (2, 2)
    orders.staged.discard(older_than="1 d", dry_run=False)
    assert (len(orders.staged.list()), len(place.data_files())) == (1, 1)


def test_rows_that_are_being_published_are_not_discarded(orders):
    address = staged(orders, 1)
    [result] = orders.staged.list()
    orders.staged._files.claim(result.name, "nightly", orders._handle.environment)
    [report] = orders.staged.discard([address], dry_run=False)
    assert (report.outcome, "'nightly'" in report.reason) == ("claimed", True)
    orders.staged.publish([address])
    assert ids(orders) == [1]


def test_of_published_rows_only_the_note_is_discarded(orders, monkeypatch):
    address = staged(orders, 1)
    with monkeypatch.context() as patched:
        patched.setattr(StagedFiles, "delete", lambda *_: None)
        patched.setattr(StagedFiles, "claim", lambda *_: "none")
        orders.staged.publish([address])
    orders.write(rows(2))
    [report] = orders.staged.discard([address], dry_run=False)
    assert report.outcome == "published"
    assert (ids(orders), orders.staged.list()) == ([1, 2], [])
