"""The next item is prepared while the reader works, one item ahead, without leftovers."""

from __future__ import annotations

import gc
import threading
import traceback
from collections.abc import Iterator
from contextlib import closing
from typing import IO

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.paimon.merge.deduplicate import Deduplicate
from lakeformat.paimon.merge.streams import FEWEST
from lakeformat.storage.memory import MemoryStorage
from lakeformat.tables.read_ahead import read_ahead

SECONDS = 30
"""Nothing here takes so long unless it hangs."""


class Numbers:
    """0, 1, 2 and so on, with who asked for them; it fails at the number ``fails_at``."""

    def __init__(self, count: int, fails_at: int | None = None) -> None:
        self.count, self.fails_at = count, fails_at
        self.made = 0
        self.makers: set[int] = set()
        self.is_closed = False
        self.grew = threading.Condition()

    def __iter__(self) -> Iterator[int]:
        try:
            for number in range(self.count):
                self.makers.add(threading.get_ident())
                if number == self.fails_at:
                    raise ValueError(f"no number {number}")
                with self.grew:
                    self.made += 1
                    self.grew.notify_all()
                yield number
        finally:
            self.is_closed = True

    def wait_for(self, made: int) -> None:
        with self.grew:
            assert self.grew.wait_for(lambda: self.made >= made, SECONDS)


def readers() -> list[threading.Thread]:
    """The threads that read ahead."""
    return [each for each in threading.enumerate() if each.name.startswith("lake-read-ahead")]


@pytest.fixture(autouse=True)
def no_thread_stays():
    gc.collect()  # reads that other tests have dropped
    yield
    assert readers() == []


@pytest.mark.parametrize("count", [0, 1, 2, 100])
def test_the_same_items_come_in_the_same_order(count):
    assert list(read_ahead(iter(Numbers(count)))) == list(range(count))


def test_one_other_thread_makes_all_items():
    numbers = Numbers(100)
    list(read_ahead(iter(numbers)))
    assert len(numbers.makers) == 1
    assert threading.get_ident() not in numbers.makers


def test_the_next_item_is_made_while_its_reader_works_and_no_other():
    numbers = Numbers(100)
    with closing(read_ahead(iter(numbers))) as items:
        assert numbers.made == 0
        for number in items:
            # If nobody made the next one meanwhile, this would wait in vain.
            numbers.wait_for(min(number + 2, numbers.count))
            assert numbers.made <= number + 2


def test_an_error_comes_in_the_place_of_its_item_and_says_where_it_was_raised():
    numbers = Numbers(100, fails_at=3)
    items = read_ahead(iter(numbers))
    assert [next(items) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="no number 3") as caught:
        next(items)
    assert "__iter__" in [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert readers() == []
    assert list(items) == []


@pytest.mark.parametrize("taken", [0, 1, 5])
def test_a_reader_that_stops_early_ends_the_thread_and_closes_the_items(taken):
    numbers = Numbers(100)
    items = read_ahead(iter(numbers))
    for _ in range(taken):
        next(items)
    items.close()
    assert readers() == []
    assert numbers.made <= taken + 1
    assert numbers.is_closed == (taken > 0)


def test_a_reader_that_raises_ends_the_thread():
    numbers = Numbers(100)

    def fails_at_once() -> None:
        for _ in read_ahead(iter(numbers)):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fails_at_once()
    assert readers() == []
    assert numbers.is_closed


RUNS = 3
KEYS = 20 * FEWEST


@pytest.fixture
def table(monkeypatch):
    """Every key in every one of some runs, in many rounds."""
    monkeypatch.setattr("lakeformat.paimon.merge.streams.CHUNK_ROWS", RUNS * FEWEST)
    catalog = lake.open_catalog("memory://read-ahead/wh")
    catalog.create_database("shop", exist_ok=True)
    catalog.drop_table("shop.t", missing_ok=True)
    columns = [("k", "INT"), ("v", "INT")]
    table = catalog.create_table("shop.t", columns, primary_key=["k"], options={"bucket": "1"})
    for run in range(RUNS):
        numbers = pa.array(range(KEYS), pa.int32())
        table.write(pa.table({"k": numbers, "v": pa.array([run] * KEYS, pa.int32())}))
    return table


@pytest.fixture
def streams(monkeypatch):
    """The streams of data files that were opened."""
    opened: list[IO[bytes]] = []
    open_input = MemoryStorage.open_input

    def noted(storage, path):
        stream = open_input(storage, path)
        if path.endswith(".parquet"):
            opened.append(stream)
        return stream

    monkeypatch.setattr(MemoryStorage, "open_input", noted)
    return opened


def are_closed(streams: list[IO[bytes]]) -> bool:
    assert len(streams) == RUNS
    return all(stream.closed for stream in streams)


def test_a_scan_that_stops_early_leaves_no_thread_and_no_open_file(table, streams):
    batches = table.scan().to_batches()
    next(batches)
    assert len(readers()) == 1
    assert not are_closed(streams)
    batches.close()
    assert readers() == []
    assert are_closed(streams)


def test_a_merge_that_fails_leaves_no_thread_and_no_open_file(table, streams, monkeypatch):
    def fails(*_):
        raise MemoryError("no room to merge")

    monkeypatch.setattr(Deduplicate, "merge", fails)
    with pytest.raises(MemoryError, match="no room to merge"):
        table.scan().to_arrow()
    assert readers() == []
    assert are_closed(streams)


def test_a_limit_ends_the_thread_too(table, streams):
    assert table.scan(limit=1).to_arrow().num_rows == 1
    assert readers() == []
    assert are_closed(streams)
