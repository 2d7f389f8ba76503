"""Maintenance dies at storage calls of each step: the table reads as before, a repetition finishes.

Each step's own operation dies at every call in the tests of that operation. Here a sample of
the faults is met.
"""

from __future__ import annotations

import itertools

import pyarrow as pa

import lakeformat as lake
from lakeformat.catalog import FileSystemCatalog
from lakeformat.environment import Environment
from lakeformat.errors import UnavailableError
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.snapshot_directory import snapshot_ids
from lakeformat.paimon.table import load_table
from lakeformat.testing import CrashableStorage
from tests.expired import missing, unneeded
from tests.sampling import sampled_faults

LAYOUT = TableLayout("wh/shop.db/orders")
NOW, DAY = 1_700_000_000_000, 86_400_000
LATER = NOW + 2 * DAY
DEAD = "0000-4000-8000-0123456789ab-0"
CLOCK = [NOW]
"""The time of the storage."""
OPTIONS = {
    "bucket": "1",
    "write-only": "true",
    "file-operation.thread-num": "1",
    "num-sorted-run.compaction-trigger": "2",
    "snapshot.num-retained.min": "1",
    "snapshot.num-retained.max": "1",
    "partition.expiration-time": "7 d",
    "partition.timestamp-formatter": "yyyy-MM-dd",
}
_names = itertools.count(1)


def simulated(now: int) -> Environment:
    """A world at that time, in which every run makes the same calls under names of its own."""
    names, first = itertools.count(), next(_names)
    return Environment(
        now_millis=lambda: now,
        new_id=lambda: f"{first:08d}-0000-4000-8000-{next(names):012d}",
        sleep_seconds=lambda seconds: None,
        random_fraction=lambda: 0.5,
    )


def opened(storage, now: int = NOW) -> lake.Table:
    return load_table(storage, LAYOUT, simulated(now))


def crashed() -> CrashableStorage:
    """Two level-0 files, an expired partition and an orphan file, all of them days old."""
    CLOCK[0] = NOW - 4 * DAY
    storage = CrashableStorage(clock=lambda: CLOCK[0])
    catalog = FileSystemCatalog(storage, "wh", simulated(NOW - 2 * DAY))
    catalog.create_database("shop")
    table = catalog.create_table(
        "shop.orders",
        [("id", "BIGINT NOT NULL"), ("dt", "STRING NOT NULL")],
        primary_key=["id", "dt"],
        partition_by=["dt"],
        options=OPTIONS,
    )
    storage.overwrite(f"{LAYOUT.root}/dt=2999-01-01/bucket-0/data-0a1b2c3d-{DEAD}.parquet", b"x")
    CLOCK[0] = NOW - 2 * DAY
    table.write(pa.table({"id": [1], "dt": ["2020-01-01"]}))
    for number in (1, 2):
        write(table, number)
    CLOCK[0] = NOW
    return storage


def write(table: lake.Table, number: int) -> None:
    table.write(pa.table({"id": [number], "dt": ["2999-01-01"]}))


def maintain(storage, acknowledged=None, *, now: int = NOW) -> lake.Table:
    table = opened(storage, now)
    report = table.maintain(executor="serial")
    if report.failed:
        raise UnavailableError("; ".join(map(str, report.failed)))
    return table


def rows(storage) -> list[tuple]:
    table = opened(storage).scan(where="dt > '2021-01-01'").to_arrow()
    return sorted(tuple(row.values()) for row in table.to_pylist())


def test_a_fault_at_any_call_leaves_the_rows_and_a_repetition_finishes():
    start = crashed()
    expected = rows(start)
    for trial in sampled_faults(maintain, start=start, most=9):
        storage = trial.run().reopened()
        told = f"in {trial}\n{trial.storage.trace()}"
        assert rows(storage) == expected, told
        assert not missing(opened(storage)), told
        maintain(storage)
        CLOCK[0] = LATER  # files that the fault left are old by then
        write(opened(storage, LATER), 1)
        table = maintain(storage, now=LATER)
        assert rows(storage) == expected, told
        assert len(snapshot_ids(storage, LAYOUT)) == 1, told
        assert (missing(table), unneeded(table)) == (set(), set()), told
        assert table.maintain(dry_run=True).is_idle, told
        CLOCK[0] = NOW
