"""``table.staged``: files wait below the table until they are published, once."""

from __future__ import annotations

import itertools
import uuid
from dataclasses import replace
from random import Random

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.catalog import FileSystemCatalog
from lakeformat.environment import Environment
from lakeformat.storage import MemoryStorage
from tests.counting import CountingStorage

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


def test_one_that_is_gone_is_named(orders):
    addresses = [staged(orders, 1), staged(orders, 2)]
    orders.staged.publish(addresses[:1])
    with pytest.raises(lake.NotFoundError, match="it was already published, discarded"):
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


@pytest.fixture
def keyed(warehouse):
    return warehouse.table("keyed", primary_key=["id"], options={"bucket": "1"})


def test_rows_of_one_bucket_are_staged_by_one_writer(keyed):
    addresses = [staged(keyed, 1), staged(keyed, 1)]
    with pytest.raises(lake.InvalidRequestError, match=r"both have rows for bucket 0"):
        keyed.staged.publish(addresses)
    assert keyed.latest_snapshot() is None


def test_new_keys_of_one_dynamic_bucket_are_staged_by_one_writer(warehouse):
    columns = [("id", "BIGINT NOT NULL"), ("at", "BIGINT")]
    options = {"sequence.field": "at"}
    table = warehouse.catalog.create_table("shop.kv", columns, primary_key=["id"], options=options)
    addresses = []
    for number in (1, 2):
        with table.new_writer() as writer:
            writer.write(pa.table({"id": [number], "at": [1]}))
            addresses.append(table.staged.address(table.staged.add(writer.prepare()).name))
    addresses.sort()
    with pytest.raises(lake.InvalidRequestError, match="new keys of the dynamic bucket 0") as told:
        table.staged.publish(addresses)
    assert f"discard the second one: table.staged.discard([{addresses[1]!r}]" in str(told.value)
    assert table.latest_snapshot() is None
    table.staged.publish(addresses[:1])
    table.staged.discard(addresses[1:], dry_run=False)
    assert len(ids(table)) == 1


def test_rows_that_others_have_numbered_alike_are_not_published(keyed):
    address = staged(keyed, 1)
    keyed.write(pa.table({"id": [1]}))
    with pytest.raises(lake.InvalidRequestError, match=r"snapshot 1 .* bucket 0") as refused:
        keyed.staged.publish([address])
    assert f"discard the result: table.staged.discard([{address!r}], dry_run=False)" in str(
        refused.value
    )
    assert keyed.latest_snapshot().id == 1


def test_compactions_meanwhile_do_no_harm(keyed):
    for _ in "ab":
        keyed.write(pa.table({"id": [1]}))
    address = staged(keyed, 2)
    keyed.compact()
    keyed.staged.publish([address])
    assert ids(keyed) == [1, 2]


@pytest.mark.parametrize("rival", [False, True], ids=["cut", "cut and written"])
def test_results_are_refused_after_a_rollback_of_the_snapshot_they_were_staged_on(keyed, rival):
    keyed.write(pa.table({"id": [1]}))
    keyed.write(pa.table({"id": [2]}))
    address = staged(keyed, 1)
    keyed.rollback(snapshot=1, as_latest=False)
    if rival:
        keyed.write(pa.table({"id": [1]}))
    with pytest.raises(lake.InvalidRequestError, match=r"deleted snapshot 2") as refused:
        keyed.staged.publish([address])
    assert f"table.staged.discard([{address!r}], dry_run=False)" in str(refused.value)
    assert keyed.latest_snapshot().id == (2 if rival else 1)


def test_a_rollback_of_later_snapshots_does_no_harm(keyed):
    keyed.write(pa.table({"id": [1]}))
    address = staged(keyed, 2)
    keyed.write(pa.table({"id": [3]}))
    keyed.rollback(snapshot=1, as_latest=False)
    keyed.staged.publish([address])
    assert ids(keyed) == [1, 2]


def test_results_whose_base_has_expired_are_published(keyed):
    for _ in "ab":
        keyed.write(pa.table({"id": [1]}))
    address = staged(keyed, 2)
    keyed.compact()
    keyed.expire_snapshots(retain_max=1, retain_min=1)
    assert keyed.latest_snapshot().id == len(list(keyed.snapshots())) + 2
    keyed.staged.publish([address])
    assert ids(keyed) == [1, 2]


def published_on_a_branch(warehouse, orders):
    """A result that was staged on dev, and was committed there by its messages."""
    orders.write(pa.table({"id": [1]}))
    orders.branches.create("dev", snapshot=1)
    dev = warehouse.catalog.table("shop.orders$branch_dev")
    messages = prepared(dev, 2)
    address = dev.staged.address(dev.staged.add(messages).name)
    dev.commit(messages)
    return dev, address


def test_files_that_main_needs_are_kept_by_a_discard_on_a_branch(warehouse, orders):
    dev, address = published_on_a_branch(warehouse, orders)
    orders.branches.fast_forward("dev")
    dev.rollback(snapshot=1, as_latest=False, force=True)
    [report] = dev.staged.discard([address], dry_run=False)
    assert (report.outcome, report.left, dev.staged.list()) == ("published", (), [])
    assert "another branch, a tag or a changelog of" in report.reason
    assert (ids(orders), ids(dev)) == ([1, 2], [1])


def test_files_of_an_interrupted_publication_are_kept_for_a_branch(warehouse, orders, monkeypatch):
    orders.write(pa.table({"id": [1]}))
    address = staged(orders, 2)
    with monkeypatch.context() as patched:
        patched.setattr(type(orders.staged._files), "delete", lambda *_: None)
        orders.staged.publish([address])
    orders.branches.create("dev", snapshot=2)
    orders.rollback(snapshot=1, as_latest=False, force=True)
    warehouse.now += 2 * DAY
    [report] = orders.staged.discard(older_than="1 d", dry_run=False)
    assert report.outcome == "published"
    assert (ids(orders), ids(warehouse.catalog.table("shop.orders$branch_dev"))) == ([1], [1, 2])


def test_a_result_that_no_branch_has_is_discarded_beside_branches(warehouse, orders):
    dev, _ = published_on_a_branch(warehouse, orders)
    before = warehouse.data_files()
    [report] = orders.staged.discard([staged(orders, 3)], dry_run=False)
    assert (report.outcome, warehouse.data_files()) == ("discarded", before)
    assert ids(dev) == [1, 2]


def test_another_branch_is_read_once_for_all_results_of_a_discard(warehouse, orders):
    orders.write(pa.table({"id": [1]}))
    orders.branches.create("dev", snapshot=1)
    counting = CountingStorage(warehouse.storage)
    counted = FileSystemCatalog(counting, "wh").table("shop.orders")
    addresses = [staged(orders, number) for number in range(2, 5)]
    counting.calls.clear()
    reports = counted.staged.discard(addresses, dry_run=False)
    assert [report.outcome for report in reports] == ["discarded"] * 3
    reads = [path for call, path in counting.calls if "/branch-dev/" in path and call == "read"]
    assert len(reads) == len(set(reads)) > 0


def test_a_file_outside_of_the_table_stops_a_discard_before_any_deletion(warehouse, orders):
    """The files of the sound result, which comes first, are kept, too."""
    good = staged(orders, 2)
    [message] = prepared(orders, 3)
    file = replace(message.new_files[0], external_path="file:/elsewhere/bucket-0/f.parquet")
    bad = orders.staged.add([replace(message, new_files=(file,))])
    before = warehouse.data_files()
    with pytest.raises(lake.LakeError, match=r"elsewhere"):
        orders.staged.discard([good, orders.staged.address(bad.name)], dry_run=False)
    assert warehouse.data_files() == before
    assert len(orders.staged.list()) == 2


def test_a_publication_on_a_branch_does_not_count_for_main(warehouse, orders):
    """A repeated publication looks only for rows that are in its own branch."""
    dev, _ = published_on_a_branch(warehouse, orders)
    commit = lake.CommitId("nightly", 1)
    first, second = staged(orders, 3), staged(orders, 4)
    orders.staged.publish([first], commit=commit)
    dev.commit(orders.staged.named([second])[0].messages)
    with pytest.raises(lake.InvalidRequestError, match=r"has published other files before"):
        orders.staged.publish([first, second], commit=commit)
    assert (ids(orders), ids(dev)) == ([1, 3], [1, 2, 4])
