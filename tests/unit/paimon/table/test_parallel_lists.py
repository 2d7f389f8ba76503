"""Lists of snapshots, tags and branches read their files in parallel, in the usual order."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.storage.memory import MemoryStorage

NUMBERS = range(1, 13)
LISTS: dict[str, Callable[[lake.Table], list[Any]]] = {
    "snapshots": lambda table: [each.id for each in table.snapshots()],
    "$snapshots": lambda table: _column(table, "snapshots", "snapshot_id"),
    "tags": lambda table: [each.snapshot_id for each in table.tags.list()],
    "$tags": lambda table: _column(table, "tags", "snapshot_id"),
    "branches": lambda table: [each.first_snapshot for each in table.branches.list()],
    "$branches": lambda table: [
        int(name[1:]) for name in _column(table, "branches", "branch_name")
    ],
}


def _column(table: lake.Table, name: str, column: str) -> list[Any]:
    return table.system_table(name).scan().to_arrow()[column].to_pylist()


def made_table(storage: str, **options: str) -> lake.Table:
    catalog = lake.open_catalog(f"memory://{storage.replace('$', 'system-')}/warehouse")
    catalog.create_database("shop")
    table = catalog.create_table("shop.orders", [("id", "BIGINT")], options=options)
    for number in NUMBERS:
        table.write(pa.table({"id": [number]}))
        table.tags.create(f"t{number:02}")
        table.branches.create(f"b{number:02}", tag=f"t{number:02}")
    return table


def callers(monkeypatch: pytest.MonkeyPatch) -> dict[int, int]:
    """The number of later reads and lists of each thread."""
    found: dict[int, int] = {}

    def noted(call: Callable[..., Any]) -> Callable[..., Any]:
        def noting(*arguments: Any) -> Any:
            caller = threading.get_ident()
            found[caller] = found.get(caller, 0) + 1
            return call(*arguments)

        return noting

    for name in ("read", "list"):
        monkeypatch.setattr(MemoryStorage, name, noted(getattr(MemoryStorage, name)))
    return found


@pytest.mark.parametrize("name", LISTS)
def test_the_files_are_read_outside_of_the_main_thread(monkeypatch, name):
    table = made_table(f"many-threads-{name}")
    calls = callers(monkeypatch)
    assert LISTS[name](table) == [*NUMBERS]
    assert calls.pop(threading.get_ident()) == 1  # the list of the names
    assert sum(calls.values()) >= len(NUMBERS)


@pytest.mark.parametrize("name", LISTS)
def test_a_table_may_limit_the_threads_to_one(monkeypatch, name):
    table = made_table(f"one-thread-{name}", **{"file-operation.thread-num": "1"})
    calls = callers(monkeypatch)
    assert LISTS[name](table) == [*NUMBERS]
    assert [*calls] == [threading.get_ident()]
