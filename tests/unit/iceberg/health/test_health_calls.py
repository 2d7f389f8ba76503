"""The health of a table reads manifest lists and manifests in parallel, a few at a time."""

from __future__ import annotations

import threading
from typing import Any

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.iceberg.health import health
from lakeformat.storage.memory import MemoryStorage
from lakeformat.tables.parallel import in_parallel

COMMITS = 12


@pytest.fixture
def table() -> lake.IcebergTable:
    """A table of many commits; the first half of its files is only in older snapshots."""
    catalog = lake.open_catalog("memory://health-calls/warehouse", format="iceberg")
    catalog.create_database("shop")
    table = catalog.create_table("shop.orders", [("id", "BIGINT")])
    assert isinstance(table, lake.IcebergTable)
    for number in range(COMMITS):
        if number == COMMITS // 2:
            table.truncate()
        table.write(pa.table({"id": [number]}))
    return table


def test_history_is_read_outside_of_the_main_thread_in_small_windows(
    table: lake.IcebergTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = table.health()
    assert (whole.files.files, whole.storage.time_travel_files) == (COMMITS // 2, COMMITS // 2)
    readers: dict[str, set[int]] = {}
    at_once: list[int] = []
    read = MemoryStorage.read

    def noted(storage: MemoryStorage, path: str, *limit: Any) -> bytes:
        readers.setdefault(path, set()).add(threading.get_ident())
        return read(storage, path, *limit)

    def counted(act: Any, items: Any) -> list[Any]:
        at_once.append(sum(len(each) if isinstance(each, pa.Table) else 1 for each in items))
        return in_parallel(act, items)

    monkeypatch.setattr(health, "_TOGETHER", 4)
    monkeypatch.setattr(health, "in_parallel", counted)
    monkeypatch.setattr(MemoryStorage, "read", noted)
    found = table.health()
    assert (found.files, found.storage) == (whole.files, whole.storage)
    in_threads = {path for path, found in readers.items() if threading.get_ident() not in found}
    manifests = {path for path in readers if path.endswith("-m0.avro")}
    lists = {path for path in readers if path.rpartition("/")[2].startswith("snap-")}
    assert len(lists) == COMMITS + 1
    assert len(lists - in_threads) == 1  # the newest
    assert len(manifests) >= COMMITS
    assert manifests <= in_threads
    assert at_once[1:5] == [4, 4, 4, 1]  # the lists
