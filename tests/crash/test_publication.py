"""The possible answers of a store to a publication, and the possible failures after it."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.catalog import FileSystemCatalog
from lakeformat.environment import Environment
from lakeformat.errors import UnavailableError
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.snapshot_directory import snapshot_ids
from lakeformat.paimon.table import load_table
from lakeformat.storage import LocalStorage, MemoryStorage
from lakeformat.storage.base import temporary_sibling
from tests.crash.interrupted import Interrupted
from tests.crash.references import left_behind

LAYOUT = TableLayout("wh/shop.db/orders")
NO_WAIT = Environment(sleep_seconds=lambda seconds: None)
_names = itertools.count()


def table_in(storage, **options: str) -> lake.Table:
    """The table on a storage, made if it is not there."""
    catalog = FileSystemCatalog(storage, "wh", NO_WAIT)
    catalog.create_database("shop", exist_ok=True)
    catalog.create_table("shop.orders", [("id", "BIGINT")], options=options, exist_ok=True)
    return load_table(storage, LAYOUT, NO_WAIT)


def ids_in(storage) -> list[int]:
    return sorted(table_in(storage).scan().to_arrow()["id"].to_pylist())


def row(number: int) -> pa.Table:
    return pa.table({"id": [number]})


class Answering(MemoryStorage):
    """A store whose first publications follow ``plan``: their effects and their answers."""

    def __init__(self, *plan: str) -> None:
        super().__init__(f"publication-{next(_names)}")
        self.plan = list(plan)
        self.bodies: list[bytes] = []

    def create(self, path: str, content: bytes) -> bool:
        if "/snapshot-" not in path:
            return super().create(path, content)
        self.bodies.append(content)
        step = self.plan.pop(0) if self.plan else "as it should"
        if step == "nothing done, nothing said":
            raise UnavailableError("no answer")
        done = super().create(path, content)
        if step == "done, nothing said":
            raise UnavailableError("no answer")
        return False if step == "done, said to be taken" else done


@pytest.mark.parametrize(
    ("plan", "tries"),
    [
        (["done, said to be taken"], 1),
        (["done, nothing said"], 1),
        (["nothing done, nothing said"], 2),
        (["nothing done, nothing said", "nothing done, nothing said"], 3),
        (["nothing done, nothing said", "done, said to be taken"], 2),
    ],
)
def test_whatever_the_store_says_a_publication_is_made_once_with_the_same_body(plan, tries):
    """A client library repeats a request by itself: then our own snapshot is the one there."""
    storage = Answering(*plan)
    report = table_in(storage).write(row(1))
    assert (report.snapshot_id, report.attempts, report.replayed) == (1, 1, False)
    assert len(storage.bodies) == tries
    assert len(set(storage.bodies)) == 1
    assert ids_in(storage) == [1]
    assert left_behind(table_in(storage), storage, LAYOUT) == set()


class NoHints(MemoryStorage):
    """Refuse every overwrite: the hints never change."""

    frozen = False

    def overwrite(self, path: str, content: bytes) -> None:
        if self.frozen and path.endswith(("LATEST", "EARLIEST")):
            raise UnavailableError("the store refuses")
        super().overwrite(path, content)


@pytest.mark.parametrize("hints_before", [0, 1])
def test_hints_that_cannot_be_written_cost_no_commit_and_no_answer(hints_before):
    storage = NoHints(f"publication-{next(_names)}")
    table = table_in(storage)
    for number in range(hints_before):
        table.write(row(number))
    storage.frozen = True
    for number in range(hints_before, 4):
        assert table.write(row(number)).snapshot_id == number + 1
    assert ids_in(storage) == [0, 1, 2, 3]
    assert table_in(storage).latest_snapshot().id == 4
    assert snapshot_ids(storage, LAYOUT) == [1, 2, 3, 4]


def test_hints_that_cannot_be_written_are_one_line_with_the_reason(caplog):
    storage = NoHints(f"publication-{next(_names)}")
    table = table_in(storage)
    storage.frozen = True
    table.write(row(1))
    [said] = [each.message for each in caplog.records if each.levelname == "WARNING"]
    assert "the store refuses. No action needed: readers list the directory" in said


@pytest.mark.parametrize("hint", [b"", b"abc", b"99", b"-1", b"\xff", b"1", b"3"])
def test_the_oldest_snapshot_is_found_by_listing_whatever_its_hint_says(hint):
    storage = MemoryStorage(f"publication-{next(_names)}")
    for number in range(3):
        table_in(storage).write(row(number))
    storage.delete(LAYOUT.snapshot(1))
    storage.overwrite(LAYOUT.earliest_hint, hint)
    assert snapshot_ids(storage, LAYOUT) == [2, 3]
    assert [each.id for each in table_in(storage).snapshots()] == [2, 3]


def test_a_file_prepared_for_publication_is_no_snapshot_and_in_nobodys_way():
    storage = MemoryStorage(f"publication-{next(_names)}")
    table_in(storage).write(row(1))
    prepared = temporary_sibling(LAYOUT.snapshot(2), "dead")
    storage.create(prepared, storage.read(LAYOUT.snapshot(1)))
    assert [each.id for each in table_in(storage).snapshots()] == [1]
    assert table_in(storage).write(row(2)).snapshot_id == 2
    assert storage.exists(prepared)


@pytest.mark.parametrize("kept", [0, 1, 100])
def test_a_snapshot_that_is_half_there_is_an_error_and_no_wrong_rows(kept):
    storage = MemoryStorage(f"publication-{next(_names)}")
    table = table_in(storage)
    table.write(row(1))
    storage.overwrite(LAYOUT.snapshot(2), storage.read(LAYOUT.snapshot(1))[:kept])
    with pytest.raises(lake.CorruptTableError, match="snapshot-2"):
        table.scan().to_arrow()
    with pytest.raises(lake.CorruptTableError, match="snapshot-2"):
        table.write(row(2))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("writers", [2, 8, 32])
@pytest.mark.parametrize("on_disk", [False, True], ids=["memory", "disk"])
def test_of_many_writers_for_one_number_each_gets_one_of_its_own(writers, on_disk, tmp_path):
    options = {"commit.max-retries": "10000"}
    if on_disk:
        storage, layout = LocalStorage(), TableLayout(f"{tmp_path}/shop.db/orders")
        catalog = FileSystemCatalog(storage, str(tmp_path), NO_WAIT)
    else:
        storage, layout = MemoryStorage(f"publication-{next(_names)}"), LAYOUT
        catalog = FileSystemCatalog(storage, "wh", NO_WAIT)
    catalog.create_database("shop")
    catalog.create_table("shop.orders", [("id", "BIGINT")], options=options)
    rounds = max(2, 24 // writers)
    start = Barrier(writers)

    def write(writer: int) -> list[int]:
        table = load_table(storage, layout, Environment())
        start.wait(timeout=60)
        reports = [table.write(row(writer * rounds + turn)) for turn in range(rounds)]
        return [report.snapshot_id for report in reports]

    with ThreadPoolExecutor(writers) as threads:
        numbers = sorted(n for won in threads.map(write, range(writers)) for n in won)
    assert numbers == list(range(1, writers * rounds + 1))
    table = load_table(storage, layout, NO_WAIT)
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == list(range(writers * rounds))


def calls_of_a_creation() -> int:
    storage = MemoryStorage(f"publication-{next(_names)}")
    FileSystemCatalog(storage, "wh").create_database("shop")
    watched = Interrupted(storage, 0, lambda: None)
    FileSystemCatalog(watched, "wh").create_table("shop.orders", [("id", "BIGINT")])
    return len(watched.calls)


@pytest.mark.parametrize("moment", range(1, calls_of_a_creation() + 1))
def test_of_two_who_create_a_table_one_is_told_that_it_exists(moment):
    storage = MemoryStorage(f"publication-{next(_names)}")
    FileSystemCatalog(storage, "wh").create_database("shop")
    outcomes = []

    def create(on, column: str) -> None:
        try:
            FileSystemCatalog(on, "wh").create_table("shop.orders", [(column, "BIGINT")])
            outcomes.append(column)
        except lake.AlreadyExistsError:
            outcomes.append("exists")

    create(Interrupted(storage, moment, lambda: create(storage, "rival")), "first")
    [winner] = set(outcomes) - {"exists"}
    assert len(outcomes) == 2
    assert load_table(storage, LAYOUT, NO_WAIT).schema.column_names == [winner]
