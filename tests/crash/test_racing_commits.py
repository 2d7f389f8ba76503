"""A rival commits at every moment of a commit: no row is lost, and a twin adds none."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.catalog import FileSystemCatalog
from lakeformat.environment import Environment
from lakeformat.errors import CommitOutcomeUnknownError, UnavailableError
from lakeformat.paimon.commit.deltas import delta_of
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.snapshot import CommitKind
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot
from lakeformat.paimon.read.plan import plan_files
from lakeformat.paimon.table import load_table
from lakeformat.storage import MemoryStorage
from tests import paper
from tests.crash.interrupted import Interrupted
from tests.crash.references import left_behind, metadata_files, referenced_metadata

ROOT = "wh/shop.db/orders"
IDENTITY = lake.CommitId("run", 7)
_names = itertools.count()


def with_a_table(storage):
    FileSystemCatalog(storage, "wh").create_database("shop")
    FileSystemCatalog(storage, "wh").create_table("shop.orders", [("id", "BIGINT")])
    return storage


def new_storage() -> MemoryStorage:
    return with_a_table(MemoryStorage(f"race-{next(_names)}"))


def table_in(storage) -> lake.Table:
    return load_table(storage, TableLayout(ROOT), Environment(sleep_seconds=lambda seconds: None))


def write(storage, number: int, commit: lake.CommitId | None = None) -> lake.CommitReport:
    return table_in(storage).write(pa.table({"id": [number]}), commit=commit)


def ids_in(storage) -> list[int]:
    return sorted(table_in(storage).scan().to_arrow()["id"].to_pylist())


def calls_of_a_write(commit: lake.CommitId | None = None) -> int:
    watched = Interrupted(new_storage(), 0, lambda: None)
    write(watched, 1, commit)
    return len(watched.calls)


def nothing_is_left_behind_in(storage) -> bool:
    return left_behind(table_in(storage), storage, TableLayout(ROOT)) == set()


@pytest.mark.parametrize("commit", [None, IDENTITY], ids=["anonymous", "identified"])
@pytest.mark.parametrize("moment", range(1, calls_of_a_write(IDENTITY) + 1))
def test_a_rival_at_any_moment_costs_nobody_a_row(moment, commit):
    storage = new_storage()
    interrupted = Interrupted(storage, moment, lambda: write(storage, 2))
    report = write(interrupted, 1, commit)
    assert not report.replayed
    assert ids_in(storage) == ([1, 2] if interrupted.happened else [1])
    assert [s.id for s in table_in(storage).snapshots()] == list(range(1, len(ids_in(storage)) + 1))
    assert nothing_is_left_behind_in(storage)


@pytest.mark.parametrize("moment", range(1, calls_of_a_write(IDENTITY) + 1))
def test_a_twin_at_any_moment_publishes_nothing_twice(moment):
    storage = new_storage()
    report = write(Interrupted(storage, moment, lambda: write(storage, 1, IDENTITY)), 1, IDENTITY)
    assert ids_in(storage) == [1]
    assert report.snapshot_id == 1
    assert nothing_is_left_behind_in(storage), "the slower twin left its files"


@pytest.mark.parametrize("moment", range(1, calls_of_a_write(IDENTITY) + 1))
def test_a_twin_behind_a_rival_is_still_found(moment):
    storage = new_storage()

    def rival_and_twin():
        write(storage, 2)
        write(storage, 1, IDENTITY)
        write(storage, 3)

    write(Interrupted(storage, moment, rival_and_twin), 1, IDENTITY)
    assert ids_in(storage).count(1) == 1


def days() -> TableHandle:
    """Two files of two commits, in a table that merges manifests with every commit."""
    orders = paper.paper_table(options={"manifest.merge-min-count": "2"})
    for name in "ab":
        paper.commit(orders, paper.message(orders, paper.file(name)))
    return orders


def append(orders: TableHandle, name: str = "x") -> None:
    paper.commit(orders, paper.message(orders, paper.file(name)))


def overwrite(orders: TableHandle, name: str = "x") -> None:
    paper.commit(orders, paper.message(orders, paper.file(name)), overwrite={}, user=name)


def compact(orders: TableHandle, name: str = "x") -> None:
    old, new = [paper.file("a"), paper.file("b")], [paper.file(name, rows=20)]
    paper.commit(orders, paper.message(orders, compact_before=old, compact_after=new))


def append_without_merging(orders: TableHandle, name: str) -> None:
    append(paper.with_options(orders, {}), name)


def serially(orders: TableHandle) -> list[str]:
    """The live files if each snapshot in turn applies its kind."""
    live: list[str] = []
    for number in range(1, paper.head(orders).id + 1):
        snapshot = read_snapshot(orders.storage, orders.layout, number)
        delta = delta_of(orders, snapshot)
        if snapshot.commit_kind is CommitKind.OVERWRITE:
            live = []
        elif snapshot.commit_kind is CommitKind.COMPACT:
            live = [name for name in live if name not in "ab"]
        live += delta.filter(~delta.is_delete).file_name.texts()
    return sorted(live)


def rows_of(orders: TableHandle) -> int:
    return sum(entry.file.row_count for entry in plan_files(orders, paper.head(orders)))


class Unanswered:
    """One attempt to publish is neither done nor answered."""

    def __init__(self, storage: MemoryStorage) -> None:
        self._storage, self._calls = storage, 3

    def __getattr__(self, name):
        return getattr(self._storage, name)

    def create(self, path, content):
        if "snapshot-" in path and self._calls:
            self._calls -= 1
            raise UnavailableError("no answer")
        return self._storage.create(path, content)


def longest(acts, seen_by=lambda storage: storage) -> int:
    """The most storage calls one of them takes."""
    counts = []
    for act in acts:
        orders = days()
        watched = Interrupted(seen_by(orders.storage), 0, lambda: None)
        act(replace(orders, storage=watched))
        counts.append(len(watched.calls))
    return max(counts)


ACTS = [append, overwrite, compact]
RIVALS = [append, append_without_merging, overwrite, compact]


def is_published(act, orders: TableHandle, name: str) -> bool:
    """True if it succeeded; otherwise it conflicted with the other commit."""
    try:
        act(orders, name)
    except lake.CommitConflictError:
        return False
    return True


def race(orders: TableHandle, storage, moment: int, act, rival) -> None:
    """One change through a storage, and at some moment another one beside it.

    Only a compaction whose files were deleted is refused, and then the other succeeded.
    """
    of_rival = []
    interrupted = Interrupted(
        storage, moment, lambda: of_rival.append(is_published(rival, orders, "r"))
    )
    ours = is_published(act, replace(orders, storage=interrupted), "x")

    assert paper.head(orders).id == 2 + ours + sum(of_rival)
    assert ours or (act is compact and rival in (overwrite, compact))
    assert all(of_rival) or (rival is compact and act in (overwrite, compact) and ours)
    assert paper.live(orders) == serially(orders)
    assert paper.head(orders).total_record_count == rows_of(orders)


@pytest.mark.sampled(36)
@pytest.mark.parametrize("rival", RIVALS)
@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("moment", range(1, longest(ACTS) + 1))
def test_the_table_is_as_if_one_change_had_come_after_the_other(moment, act, rival):
    orders = days()
    race(orders, orders.storage, moment, act, rival)
    assert metadata_files(orders) == referenced_metadata(orders), "nothing is left of lost attempts"


@pytest.mark.sampled(30)
@pytest.mark.parametrize("rival", [append_without_merging, overwrite])
@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("moment", range(1, longest(ACTS, Unanswered) + 1))
def test_so_it_is_after_an_attempt_without_answer(moment, act, rival):
    """Files of that attempt may remain; no referenced file is missing."""
    orders = days()
    race(orders, Unanswered(orders.storage), moment, act, rival)
    assert referenced_metadata(orders) <= metadata_files(orders)


class Silent(MemoryStorage):
    """Publishes, but for some calls neither the publication nor a look at it is answered."""

    calls_without_answer = 0

    def create(self, path, content):
        created = super().create(path, content)
        self._answer(path)
        return created

    def read(self, path, *limit):
        self._answer(path)
        return super().read(path, *limit)

    def _answer(self, path):
        if "snapshot-" in path and self.calls_without_answer:
            self.calls_without_answer -= 1
            raise UnavailableError("no answer")


def test_while_the_outcome_is_unknown_every_file_stays():
    storage = with_a_table(Silent(f"race-{next(_names)}"))
    storage.calls_without_answer = 1000

    with pytest.raises(CommitOutcomeUnknownError):
        write(storage, 1, IDENTITY)

    storage.calls_without_answer = 0
    assert ids_in(storage) == [1]
    assert nothing_is_left_behind_in(storage)
    assert write(storage, 1, IDENTITY).replayed


@pytest.mark.parametrize("commit", [None, IDENTITY], ids=["anonymous", "identified"])
def test_a_commit_that_got_through_unanswered_is_found_by_the_next_attempt(commit):
    storage = with_a_table(Silent(f"race-{next(_names)}"))
    storage.calls_without_answer = 6  # three times published, three times read back

    report = write(storage, 1, commit)

    assert (report.snapshot_id, report.attempts, report.replayed) == (1, 2, False)
    assert ids_in(storage) == [1]
    assert nothing_is_left_behind_in(storage)


class ArrivesLate(MemoryStorage):
    """The first publication is neither done nor answered; it lands when the next one comes."""

    late: tuple[str, bytes] | None = None
    enabled = False

    def create(self, path, content):
        if not self.enabled or "snapshot-" not in path:
            return super().create(path, content)
        if self.late is None:
            self.late = (path, content)
        if content == self.late[1]:
            raise UnavailableError("no answer")
        super().create(*self.late)
        return super().create(path, content)


def test_a_publication_that_arrives_late_is_recognised_as_ours():
    storage = with_a_table(ArrivesLate(f"race-{next(_names)}"))
    storage.enabled = True

    report = write(storage, 1)

    assert (report.snapshot_id, report.replayed) == (1, False)
    assert ids_in(storage) == [1]


def test_a_failure_after_a_doubtful_attempt_removes_no_file_that_may_be_published():
    storage = with_a_table(FailsAfterDoubt(f"race-{next(_names)}"))
    storage.enabled = True

    with pytest.raises(CommitOutcomeUnknownError):
        write(storage, 1)

    storage.enabled = False
    storage.create(*storage.late)
    assert ids_in(storage) == [1]


class FailsAfterDoubt(ArrivesLate):
    """After a publication without answer, nothing can be written any more."""

    def open_output(self, path):
        if self.late is not None and self.enabled:
            raise UnavailableError("the disk is full")
        return super().open_output(path)


class LosesTheAnswer(MemoryStorage):
    """The first publication fails without an answer; another writer takes its number."""

    rival: Callable[[], None] | None = None

    def create(self, path, content):
        if self.rival is not None and "snapshot-" in path:
            rival, self.rival = self.rival, None
            rival()
            raise UnavailableError("no answer")
        return super().create(path, content)


def test_a_publication_whose_number_a_rival_took_is_lost_and_tried_again():
    storage = with_a_table(LosesTheAnswer(f"race-{next(_names)}"))
    storage.rival = lambda: write(storage, 2)
    report = write(storage, 1)
    assert (report.snapshot_id, report.attempts) == (2, 2)
    assert ids_in(storage) == [1, 2]


def test_a_commit_that_always_loses_leaves_nothing_behind():
    storage = new_storage()
    table = table_in(storage)
    options = {"commit.max-retries": "2"}
    FileSystemCatalog(storage, "wh").create_table("shop.other", [("id", "BIGINT")], options=options)
    layout = TableLayout("wh/shop.db/other")

    class AlwaysBeaten(Interrupted):
        def __getattr__(self, name):
            if name != "create":
                return getattr(storage, name)

            def create(path, content):
                load_table(storage, layout, Environment()).write(pa.table({"id": [0]}))
                return storage.create(path, content)

            return create

    before = {path for path in storage.files() if path.startswith(layout.root)}
    beaten = load_table(
        AlwaysBeaten(storage, 0, lambda: None),
        layout,
        Environment(sleep_seconds=lambda seconds: None),
    )
    with pytest.raises(lake.CommitConflictError, match=r"in each of 3 attempts\. These files"):
        beaten.write(pa.table({"id": [1]}))
    rows = load_table(storage, layout, Environment()).scan()
    assert rows.to_arrow()["id"].to_pylist() == [0, 0, 0]
    written = {path for path in storage.files() if path.startswith(layout.root)} - before
    assert len([path for path in written if path.endswith(".parquet")]) == 3
    assert len([path for path in written if "/manifest-list-" in path]) == 6
    assert table.latest_snapshot() is None


class Locked(MemoryStorage):
    """Another process holds the lock of the table."""

    calls = 0

    def create(self, path, content):
        if "snapshot-" in path:
            self.calls += 1
            raise lake.LockUnavailableError("held by somebody else")
        return super().create(path, content)


def test_a_lock_that_is_not_to_be_had_ends_the_commit_at_once_and_leaves_nothing():
    storage = with_a_table(Locked(f"race-{next(_names)}"))
    before = set(storage.files())
    with pytest.raises(lake.LockUnavailableError):
        write(storage, 1, IDENTITY)
    assert (storage.calls, set(storage.files())) == (1, before)
