"""Units in threads: one more at once than there are cores, so none is idle while one waits."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Barrier, Event, Lock
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakeformat as lake
from lakeformat.environment import SYSTEM
from lakeformat.executor import has_idle_cores, outcomes_of
from lakeformat.files.parquet import reader as parquet_reader


@pytest.fixture(autouse=True)
def _two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)


class Count:
    """Work that counts units running at once; each waits for a number of further units."""

    def __init__(self, others: int) -> None:
        self.most = self._now = 0
        self._lock, self._meeting = Lock(), Barrier(others)

    def __call__(self, unit: int) -> int:
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
        self._meeting.wait(timeout=60)
        with self._lock:
            self._now -= 1
        return unit


def test_threads_work_on_one_unit_more_than_there_are_cores() -> None:
    work = Count(others=3)
    assert sorted(outcomes_of("threads", work, range(9))) == list(range(9))
    assert work.most == 3


def test_no_more_threads_are_started_than_there_are_units() -> None:
    work = Count(others=2)
    assert sorted(outcomes_of("threads", work, range(2))) == [0, 1]
    assert work.most == 2


@pytest.mark.parametrize(("executor", "units"), [("serial", 5), ("threads", 1)])
def test_units_come_one_after_the_other(executor: str, units: int) -> None:
    work = Count(others=1)
    assert list(outcomes_of(executor, work, range(units))) == list(range(units))
    assert work.most == 1


def test_who_is_interrupted_tells_the_units_under_way_and_hears_what_became_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stop, lost = Event(), list[int]()

    def work(unit: int) -> int:
        assert stop.wait(timeout=60)
        return unit

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("lakeformat.executor.wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        list(outcomes_of("threads", work, range(9), stop=stop, lost=lost.append))
    assert sorted(lost) == [0, 1, 2]


class Elsewhere:
    """An executor of the caller."""

    def outcomes(self, work: Any, units: Any, stop: Any) -> Iterator[Any]:
        return map(work, units)


@pytest.mark.parametrize(
    ("executor", "units", "are_idle"),
    [
        ("threads", 1, True),
        ("threads", 2, False),
        ("threads", 100, False),
        ("serial", 1, False),
        (Elsewhere(), 1, False),
    ],
)
def test_cores_are_idle_where_fewer_units_than_cores_run_in_threads(
    executor: Any, units: int, are_idle: bool
) -> None:
    assert has_idle_cores(executor, units) is are_idle


def test_whether_cores_are_idle_goes_along_to_where_a_unit_is_worked_on() -> None:
    busy = replace(SYSTEM, has_idle_cores=False)
    assert not pickle.loads(pickle.dumps(busy)).has_idle_cores
    assert pickle.loads(pickle.dumps(SYSTEM)) is SYSTEM


@pytest.mark.parametrize(("executor", "in_threads"), [("threads", True), ("serial", False)])
def test_columns_are_decoded_in_threads_where_a_compaction_leaves_cores_idle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, executor: str, in_threads: bool
) -> None:
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("db")
    rows = pa.table({"k": [1, 2, 3], "v": ["a", "b", "c"]})
    table = catalog.create_table("db.t", rows.schema, primary_key=["k"], options={"bucket": "1"})
    table.write(rows)
    table.write(rows)
    monkeypatch.setattr(parquet_reader, "FEW_ROWS", 1)
    asked: list[bool] = []
    read = pq.ParquetFile.iter_batches

    def remember(file: pq.ParquetFile, *args: Any, **options: Any) -> Any:
        asked.append(options["use_threads"])
        return read(file, *args, **options)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", remember)
    table.compact(executor=executor)
    assert asked
    assert (True in asked) is in_threads
    assert table.scan().to_arrow().to_pylist() == rows.to_pylist()
