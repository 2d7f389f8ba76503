"""The search for an earlier commit: its range, and its answer after snapshots expired."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.catalog import FileSystemCatalog
from lakeformat.environment import Environment
from lakeformat.storage import MemoryStorage
from tests.crash.simulated import Clock

ROWS = pa.table({"id": [1]})
MINUTE = 60_000
_names = iter(range(1_000_000))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def orders(clock) -> lake.Table:
    storage = MemoryStorage(f"identity-{next(_names)}")
    environment = Environment(now_millis=clock, sleep_seconds=lambda seconds: None)
    catalog = FileSystemCatalog(storage, "wh", environment)
    catalog.create_database("shop")
    return catalog.create_table("shop.orders", [("id", "BIGINT")])


def snapshots_read(table: lake.Table, action) -> set[int]:
    storage, read = table._handle.storage, []
    original = storage.read
    storage.read = lambda path, *limit: read.append(path) or original(path, *limit)
    try:
        action()
    finally:
        del storage.read
    return {int(path.rpartition("-")[2]) for path in read if "/snapshot/snapshot-" in path}


def minute_by_minute(orders, clock, count: int) -> None:
    for _ in range(count):
        clock.millis += MINUTE
        orders.write(ROWS)


def test_a_try_that_says_when_it_began_does_not_read_older_history(orders, clock):
    minute_by_minute(orders, clock, 60)
    commit = lake.CommitId("run", 1, first_try_millis=clock.millis)
    read = snapshots_read(orders, lambda: orders.write(ROWS, commit=commit))
    assert min(read) == 60 - 10 - 1, "ten minutes for clocks that differ, and the one before"


def test_a_retry_finds_the_first_try_however_many_commits_came_after(orders, clock):
    began = clock.millis
    orders.write(ROWS, commit=lake.CommitId("run", 1, first_try_millis=began))
    minute_by_minute(orders, clock, 30)
    again = orders.write(ROWS, commit=lake.CommitId("run", 1, first_try_millis=began))
    assert (again.replayed, again.snapshot_id) == (True, 1)


def test_a_first_try_whose_snapshot_may_have_expired_is_undecidable(orders, clock):
    began = clock.millis
    commit = lake.CommitId("run", 1, first_try_millis=began)
    orders.write(ROWS, commit=commit)
    minute_by_minute(orders, clock, 5)
    for number in (1, 2, 3):
        orders._handle.storage.delete(orders._handle.layout.snapshot(number))
    with pytest.raises(lake.CommitUndecidableError, match="snapshot 3 and older ones have expired"):
        orders.write(ROWS, commit=commit)
    assert orders.latest_snapshot().id == 6
    assert not [path for path in orders._handle.storage.files() if path.endswith("-7")]


class TestTheHeadBeforeTheFirstTry:
    """While it exists, older expired snapshots do not matter for this commit."""

    def expire_all_but_the_newest(self, orders):
        for number in range(1, orders.latest_snapshot().id):
            orders._handle.storage.delete(orders._handle.layout.snapshot(number))

    def test_a_first_try_right_after_an_expiry_publishes(self, orders, clock):
        minute_by_minute(orders, clock, 3)
        self.expire_all_but_the_newest(orders)
        by_clock = lake.CommitId("run", 1, first_try_millis=clock.millis)
        with pytest.raises(lake.CommitUndecidableError):
            orders.write(ROWS, commit=by_clock)

        head = orders.latest_snapshot().identity
        commit = lake.CommitId("run", 1, first_try_millis=clock.millis, first_try_head=head)
        assert orders.write(ROWS, commit=commit).snapshot_id == 4
        assert orders.write(ROWS, commit=commit).replayed

    def test_an_older_commit_of_this_identity_is_found_as_ever(self, orders, clock):
        """A run that was deleted and made again under its name."""
        earlier = lake.CommitId("run", 1, first_try_millis=clock.millis)
        orders.write(ROWS, commit=earlier)
        minute_by_minute(orders, clock, 1)
        head = orders.latest_snapshot().identity
        commit = lake.CommitId("run", 1, first_try_millis=clock.millis, first_try_head=head)
        assert orders.write(ROWS, commit=commit).snapshot_id == 1

    def test_once_it_has_expired_too_the_clock_decides(self, orders, clock):
        minute_by_minute(orders, clock, 2)
        head = orders.latest_snapshot().identity
        commit = lake.CommitId("run", 1, first_try_millis=clock.millis, first_try_head=head)
        orders.write(ROWS, commit=commit)
        minute_by_minute(orders, clock, 3)
        self.expire_all_but_the_newest(orders)
        with pytest.raises(lake.CommitUndecidableError):
            orders.write(ROWS, commit=commit)

    def test_another_snapshot_of_its_number_is_not_taken_for_it(self, orders, clock):
        minute_by_minute(orders, clock, 3)
        head = orders.latest_snapshot().identity
        commit = lake.CommitId("run", 1, first_try_millis=clock.millis, first_try_head=head)
        orders.rollback(snapshot=1, as_latest=False)
        orders.write(ROWS, commit=commit)
        minute_by_minute(orders, clock, 3)
        assert (orders.write(ROWS, commit=commit).replayed, orders.latest_snapshot().id) == (
            True,
            5,
        )

    def test_it_is_a_text(self):
        with pytest.raises(
            lake.InvalidRequestError, match="first_try_head must be the identity of"
        ):
            lake.CommitId("run", 1, first_try_head=3)


def test_without_a_time_what_has_expired_counts_as_never_published(orders, clock):
    minute_by_minute(orders, clock, 3)
    orders._handle.storage.delete(orders._handle.layout.snapshot(1))
    assert orders.write(ROWS, commit=lake.CommitId("run", 1)).snapshot_id == 4


def test_two_identities_are_equal_whenever_they_began():
    assert lake.CommitId("run", 1, first_try_millis=10**12) == lake.CommitId("run", 1)
    with pytest.raises(lake.InvalidRequestError, match="first_try_millis"):
        lake.CommitId("run", 1, first_try_millis="yesterday")
    with pytest.raises(lake.InvalidRequestError, match="in epoch milliseconds"):
        lake.CommitId("run", 1, first_try_millis=1_700_000_000)


def test_a_commit_gives_up_when_its_time_is_over(clock):
    storage = MemoryStorage(f"identity-{next(_names)}")
    world = Environment(now_millis=lambda: clock.millis, sleep_seconds=lambda seconds: None)
    catalog = FileSystemCatalog(storage, "wh", world)
    catalog.create_database("shop")
    options = {"commit.timeout": "1 min", "commit.max-retries": "1000"}
    orders = catalog.create_table("shop.orders", [("id", "BIGINT")], options=options)
    original = storage.create

    def beaten(path, content):
        clock.millis += 20_000
        storage.create = original
        catalog.table("shop.orders").write(ROWS)
        storage.create = beaten
        return original(path, content)

    storage.create = beaten
    with pytest.raises(lake.CommitConflictError, match="attempts within"):
        orders.write(ROWS)


class TestOneIdentityForTwoCommits:
    """It names one commit: another operation with it is refused, not taken for a replay."""

    IDENTITY = lake.CommitId("run", 1)

    def test_rows_after_a_truncation(self, orders):
        orders.write(ROWS)
        orders.truncate(commit=self.IDENTITY)
        with pytest.raises(
            lake.InvalidRequestError, match=r"as OVERWRITE \(TRUNCATE\); this commit is"
        ):
            orders.write(ROWS, commit=self.IDENTITY)

    def test_an_overwrite_after_rows(self, orders):
        orders.write(ROWS, commit=self.IDENTITY)
        with pytest.raises(lake.InvalidRequestError, match="as APPEND; this commit is OVERWRITE"):
            orders.write(ROWS, overwrite={}, commit=self.IDENTITY)

    def test_a_truncation_is_repeated_without_harm(self, orders):
        orders.write(ROWS)
        orders.truncate(commit=self.IDENTITY)
        orders.write(ROWS)
        assert orders.truncate(commit=self.IDENTITY).replayed
        assert orders.scan().count() == 1


def test_a_first_try_that_is_still_to_come_is_refused(orders, clock):
    later = lake.CommitId("run", 1, first_try_millis=clock.millis + 3_600_000)
    with pytest.raises(lake.InvalidRequestError, match="which is in the future"):
        orders.write(ROWS, commit=later)


def test_a_replay_reports_what_the_first_try_did(orders):
    first = orders.write(ROWS, commit=lake.CommitId("run", 1))
    again = orders.write(ROWS, commit=lake.CommitId("run", 1))
    told = ("rows", "files", "bytes", "kind", "snapshot_id")
    assert [getattr(again, name) for name in told] == [getattr(first, name) for name in told]
