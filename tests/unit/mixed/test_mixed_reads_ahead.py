"""While the caller has a batch of a Mixed table, a thread reads the next rows; it ends in time."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.errors import CorruptTableError
from lakeformat.mixed.read.key_deletes import KeyDeletes
from lakeformat.mixed.read.live_rows import _NodeRows
from lakeformat.storage.local import LocalStorage

COLUMNS = pa.schema([("k", pa.int64()), ("v", pa.int64())])
ROWS, BATCH_ROWS, SECONDS = 400, 40, 30


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> lake.MixedTable:
    """A table of four nodes, each with many batches and newer changes of some of its rows."""
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    catalog.create_database("db")
    table = catalog.create_table("db.t", COLUMNS, format="mixed", primary_key=["k"])
    assert isinstance(table, lake.MixedTable)
    table.write(pa.table([range(ROWS), [0] * ROWS], schema=COLUMNS))
    table.compact(strategy="full")
    changed = range(0, ROWS, 5)
    table.write(pa.table([changed, [1] * len(changed)], schema=COLUMNS))
    monkeypatch.setattr("lakeformat.iceberg.read.file_rows.BATCH_ROWS", BATCH_ROWS)
    return table


@pytest.fixture
def streams(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The streams of data files that were opened."""
    opened: list[Any] = []
    open_input = LocalStorage.open_input

    def noted(storage: LocalStorage, path: Any) -> Any:
        stream = open_input(storage, path)
        if str(path).endswith(".parquet"):
            opened.append(stream)
        return stream

    monkeypatch.setattr(LocalStorage, "open_input", noted)
    return opened


def readers() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name.startswith("lake-read-ahead")]


@pytest.fixture(autouse=True)
def no_thread_remains() -> Iterator[None]:
    gc.collect()  # reads that other tests have dropped
    yield
    assert readers() == []


def test_the_next_rows_are_read_while_the_keys_of_these_rows_are_searched(table, monkeypatch):
    read, search = _NodeRows._rows, KeyDeletes.deleted
    grew = threading.Condition()
    counts = {"read": 0, "searched": 0}
    threads = set()

    def noted(rows: Any, *given: Any) -> Iterator[Any]:
        for each in read(rows, *given):
            threads.add(threading.current_thread().name)
            with grew:
                counts["read"] += each.batch.num_rows
                grew.notify_all()
            yield each

    def waiting(deletes: KeyDeletes, keys: Any, *given: Any) -> Any:
        counts["searched"] += len(keys[0])
        with grew:  # without another thread this would wait in vain
            assert grew.wait_for(lambda: counts["read"] > counts["searched"], SECONDS)
        assert counts["read"] <= counts["searched"] + BATCH_ROWS
        return search(deletes, keys, *given)

    monkeypatch.setattr(_NodeRows, "_rows", noted)
    with monkeypatch.context() as patched:
        patched.setattr(KeyDeletes, "deleted", waiting)
        batches = table.scan().to_batches()
        next(batches)
        batches.close()
    assert table.scan().to_arrow().sort_by("k")["v"].to_pylist() == [1, 0, 0, 0, 0] * (ROWS // 5)
    assert all(each.startswith("lake-read-ahead") for each in threads)


def test_a_read_that_stops_early_leaves_no_thread_and_no_open_file(table, streams):
    batches = table.scan().to_batches()
    next(batches)
    assert len(readers()) == 1
    assert not all(stream.closed for stream in streams)
    batches.close()
    assert readers() == []
    assert all(stream.closed for stream in streams)
    assert table.scan(limit=1).to_arrow().num_rows == 1


def test_an_error_of_the_thread_has_its_class_and_names_the_file(table, streams):
    *_, split = table.scan().splits()
    path = Path(split.files[-1].path.removeprefix("file://"))
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(CorruptTableError, match=path.name):
        table.scan().to_arrow()
    assert all(stream.closed for stream in streams)


def test_a_search_that_fails_leaves_no_thread_and_no_open_file(table, streams, monkeypatch):
    def fails(*_: Any) -> None:
        raise MemoryError("no room to search")

    monkeypatch.setattr(KeyDeletes, "deleted", fails)
    with pytest.raises(MemoryError, match="no room to search"):
        table.scan().to_arrow()
    assert all(stream.closed for stream in streams)
