"""A retried batch of a stream is committed once, even after its snapshot expired."""

from __future__ import annotations

import time
from dataclasses import replace

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.catalog import FileSystemCatalog
from lakeformat.environment import Environment
from lakeformat.storage import MemoryStorage

DAY = 24 * 60 * 60 * 1000
NOW = int(time.time() * 1000)
ROWS = pa.table({"id": [1]})
ALL = {"retain_max": 1, "retain_min": 1}
_names = iter(range(1_000_000))


@pytest.fixture
def orders() -> lake.Table:
    storage = MemoryStorage(f"stream-note-{next(_names)}", clock=lambda: NOW)
    environment = Environment(now_millis=lambda: NOW)
    catalog = FileSystemCatalog(storage, "wh", environment)
    catalog.create_database("shop")
    return catalog.create_table("shop.orders", [("id", "BIGINT")])


def batch(number: int) -> lake.CommitId:
    return lake.CommitId("spark-a/b", number)


def copy(
    orders: lake.Table,
    number: int,
    *,
    dies: str = "",
    how: type[BaseException] = KeyboardInterrupt,
) -> None:
    with orders.stream_batch(batch(number)) as commit:
        if commit is None:
            return
        if dies == "before":
            raise how
        orders.write(ROWS, commit=commit)
        if dies == "after":
            raise how


def others_commit(orders: lake.Table, count: int = 3) -> None:
    for _ in range(count):
        orders.write(ROWS)
    orders.expire_snapshots(**ALL)


def consumers(orders: lake.Table) -> list[tuple[str, int]]:
    return [(each.id, each.next_snapshot) for each in orders.consumers.list()]


def test_a_batch_is_done_once_its_snapshot_has_expired_too(orders):
    copy(orders, 0)
    others_commit(orders)

    copy(orders, 0)

    assert orders.scan().count() == 4
    assert consumers(orders) == []


@pytest.mark.parametrize(("dies", "rows"), [("before", 4), ("after", 5)])
def test_what_a_stream_that_died_may_have_published_is_kept_until_it_is_back(orders, dies, rows):
    orders.write(ROWS)
    with pytest.raises(KeyboardInterrupt):
        copy(orders, 0, dies=dies)
    others_commit(orders)
    assert consumers(orders) == [("spark-a%2Fb", 1)]
    assert orders.scan().count() == rows

    copy(orders, 0)

    assert orders.scan().count() == 5
    others_commit(orders, 0)
    assert len(orders.snapshots()) == 1


@pytest.mark.parametrize("dies", ["before", "after"])
def test_where_nothing_can_tell_any_more_a_batch_is_refused(orders, dies):
    with pytest.raises(KeyboardInterrupt):
        copy(orders, 0, dies=dies)
    orders.consumers.clear()  # as consumer.expiration-time does
    others_commit(orders)
    before = orders.scan().count()

    for _ in range(2):
        with pytest.raises(
            lake.CommitUndecidableError, match="have expired since its first attempt"
        ):
            copy(orders, 0)

    assert orders.scan().count() == before


def test_a_commit_that_was_refused_keeps_no_snapshot(orders):
    with pytest.raises(lake.InvalidRequestError), orders.stream_batch(batch(0)) as commit:
        orders.write(pa.table({"other": [1]}), commit=commit)

    assert consumers(orders) == []
    others_commit(orders)
    copy(orders, 0)
    assert orders.scan().count() == 4


def test_a_failure_that_is_none_of_ours_keeps_no_snapshot_either(orders):
    with pytest.raises(OSError, match="the source is away"), orders.stream_batch(batch(0)):
        raise OSError("the source is away")

    assert consumers(orders) == []
    copy(orders, 0)
    assert orders.scan().count() == 1


def test_a_failure_behind_the_commit_does_not_let_it_be_forgotten(orders):
    with pytest.raises(lake.UnavailableError):
        copy(orders, 0, dies="after", how=lake.UnavailableError)
    others_commit(orders)

    copy(orders, 0)

    assert (orders.scan().count(), consumers(orders)) == (4, [])


def test_a_try_that_is_refused_says_nothing_of_the_one_before(orders):
    with pytest.raises(KeyboardInterrupt):
        copy(orders, 0, dies="before")
    with pytest.raises(lake.InvalidRequestError), orders.stream_batch(batch(0)) as commit:
        orders.write(pa.table({"other": [1]}), commit=commit)

    assert consumers(orders) == [("spark-a%2Fb", 1)]


def test_batches_before_anything_was_noted_are_found_among_the_snapshots(orders):
    orders.write(ROWS, commit=batch(0))

    copy(orders, 0)
    assert orders.scan().count() == 1
    others_commit(orders)
    copy(orders, 0)
    assert orders.scan().count() == 4


def test_a_note_that_was_cut_short_is_made_up_for_by_the_snapshots(orders):
    with pytest.raises(KeyboardInterrupt):
        copy(orders, 0, dies="after")
    storage, layout = orders._handle.storage, orders._handle.layout
    storage.overwrite(layout.stream("spark-a%2Fb"), b"")
    others_commit(orders)

    copy(orders, 0)

    assert orders.scan().count() == 4
    assert consumers(orders) == []


def test_an_older_batch_than_the_last_one_is_refused(orders):
    copy(orders, 0)
    copy(orders, 1)
    others_commit(orders)

    with pytest.raises(
        lake.InvalidRequestError, match=r"arrived after commit 1 of the same stream"
    ):
        copy(orders, 0)

    assert orders.scan().count() == 5


def of_checkpoint(orders: lake.Table, number: int, checkpoint: str | None, dies: str = "") -> None:
    with orders.stream_batch(batch(number), checkpoint=checkpoint) as commit:
        if dies == "fails":
            raise OSError
        if dies == "before":
            raise KeyboardInterrupt
        if commit is not None:
            orders.write(ROWS, commit=commit)
        if dies:
            raise KeyboardInterrupt


@pytest.mark.parametrize("number", [0, 1])
def test_a_published_batch_of_another_checkpoint_is_refused(orders, number):
    for each in (0, 1):
        of_checkpoint(orders, each, "first")

    with pytest.raises(
        lake.InvalidRequestError,
        match=r"already begun commit 1 from another .* set 'query' to a new",
    ):
        of_checkpoint(orders, number, "second")

    of_checkpoint(orders, number, "first")
    of_checkpoint(orders, 2, "first")
    assert orders.scan().count() == 3


@pytest.mark.parametrize(("one", "other"), [(None, "first"), ("first", None), ("first", "first")])
def test_without_another_checkpoint_a_batch_is_repeated(orders, one, other):
    of_checkpoint(orders, 0, one)
    of_checkpoint(orders, 0, other)

    assert orders.scan().count() == 1


def test_an_interrupted_batch_of_another_checkpoint_is_refused_only_if_published(orders):
    with pytest.raises(KeyboardInterrupt):
        of_checkpoint(orders, 0, "first", dies="before")
    of_checkpoint(orders, 0, "second")
    with pytest.raises(KeyboardInterrupt):
        of_checkpoint(orders, 1, "second", dies="after")

    with pytest.raises(lake.InvalidRequestError, match=r"already begun commit 1 from another"):
        of_checkpoint(orders, 1, "third")

    of_checkpoint(orders, 1, "second")
    assert (orders.scan().count(), consumers(orders)) == (2, [])


@pytest.mark.parametrize("number", [0, 1])
def test_a_failed_batch_keeps_the_checkpoint_of_the_batch_before(orders, number):
    for each in (0, 1):
        of_checkpoint(orders, each, "first")
    with pytest.raises(OSError):
        of_checkpoint(orders, 2, "first", dies="fails")
    assert consumers(orders) == []

    with pytest.raises(lake.InvalidRequestError, match=r"already begun commit 1 from another"):
        of_checkpoint(orders, number, "second")

    of_checkpoint(orders, 1, "first")
    of_checkpoint(orders, 2, "first")
    assert orders.scan().count() == 3


def test_an_interrupted_batch_belongs_to_the_checkpoint_that_repeats_it(orders):
    with pytest.raises(KeyboardInterrupt):
        of_checkpoint(orders, 0, "first", dies="before")
    with pytest.raises(KeyboardInterrupt):
        of_checkpoint(orders, 0, "second", dies="after")

    with pytest.raises(lake.InvalidRequestError, match=r"already begun commit 0 from another"):
        of_checkpoint(orders, 0, "first")

    of_checkpoint(orders, 0, "second")
    assert (orders.scan().count(), consumers(orders)) == (1, [])


def test_a_damaged_note_is_named(orders):
    copy(orders, 0)
    storage, layout = orders._handle.storage, orders._handle.layout
    storage.overwrite(layout.stream("spark-a%2Fb"), b"{")

    with pytest.raises(lake.CorruptTableError, match=r"stream-spark-a.* delete the file"):
        copy(orders, 1)


def test_removing_orphan_files_leaves_notes_alone(orders):
    with pytest.raises(KeyboardInterrupt):
        copy(orders, 0, dies="after")
    with orders.new_writer() as crashed:
        crashed.write(ROWS)
        crashed.prepare()
    handle = orders._handle
    later = replace(handle, environment=Environment(now_millis=lambda: NOW + 30 * DAY))
    handle.storage._clock = later.environment.now_millis
    assert lake.Table(later).remove_orphans("1 d", dry_run=False).removed_files == 1

    copy(orders, 0)

    assert orders.scan().count() == 1


def test_the_old_name_of_stream_batch_warns(orders):
    with pytest.deprecated_call(match="Table.stream_batch"), orders.remembered(batch(0)) as commit:
        assert commit is not None
