"""Real processes on a real disk: writers and compactions at once, some of them killed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import lakeformat as lake
from tests.expired import files_of_tables, missing, unneeded

WRITERS, COMPACTORS, COMMITS, KEYS = 2, 2, 8, 20

WRITER = f"""
import sys
import pyarrow as pa
import lakeformat as lake
from tests.forked import forked

table, writer = lake.open_table(sys.argv[1]), forked({WRITERS})
for number in range({COMMITS}):
    keys = [writer * {KEYS} + key for key in range({KEYS})]
    table.write(pa.table({{"id": keys, "note": [number] * {KEYS}}}))
"""

# Says so once it has compacted something, and goes on until its standard input is closed.
COMPACTOR = """
import sys, threading
import lakeformat as lake

stop = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), stop.set()), daemon=True).start()
table, said = lake.open_table(sys.argv[1]), False
while not stop.wait(0.01):  # writers that only begin need the processor
    if table.compact().snapshot_ids and not said:
        said = True
        print("compacted", flush=True)
"""

# Keeps two snapshots at any moment, so that files go which others may be reading.
EXPIRER = """
import sys, threading
import lakeformat as lake

stop = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), stop.set()), daemon=True).start()
table, expired = lake.open_table(sys.argv[1]), 0
while not stop.wait(0.01):
    expired += len(table.expire_snapshots(retain_max=2, retain_min=1).snapshots)
print(expired)
"""

# Has written what becomes of one bucket, and never gets to publish it.
HELD_UP = """
import sys, time
import lakeformat as lake

def report(progress):
    if progress.done:
        print("written", flush=True)
        time.sleep(600)

lake.open_table(sys.argv[1]).compact(executor="serial", on_progress=report)
"""


def start(script: str, root: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", script, root]
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


@pytest.mark.sampled(1, among="processes at once")
@pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "append"])
def test_writers_and_compactions_at_once(tmp_path: Path, keyed: bool):
    table = new_table(tmp_path, keyed)
    victim = start(COMPACTOR, table.location)
    assert victim.stdout is not None
    victim.stdout.readline()
    compactors = [start(COMPACTOR, table.location) for _ in range(COMPACTORS)]
    writers = start(WRITER, table.location)
    victim.kill()
    victim.communicate()
    for process in (writers, *compactors):
        _, said = process.communicate()
        assert process.returncode == 0, said
    assert_all_rows_are_there(table, keyed)


@pytest.mark.sampled(1, among="processes at once")
@pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "append"])
def test_snapshots_expire_while_others_write_and_compact(tmp_path: Path, keyed: bool):
    table = new_table(tmp_path, keyed)
    processes = [
        start(WRITER, table.location),
        start(COMPACTOR, table.location),
        start(EXPIRER, table.location),
    ]
    said = [process.communicate() for process in processes]
    for process, (_, error) in zip(processes, said, strict=True):
        assert process.returncode == 0, error
    expired, _ = said[-1]
    assert int(expired) > 0
    assert_all_rows_are_there(table, keyed)


@pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "append"])
def test_what_a_killed_compaction_leaves_are_orphans_that_the_next_run_knows(
    tmp_path: Path, keyed: bool
):
    table = new_table(tmp_path, keyed)
    for note in range(2):
        table.write(pa.table({"id": list(range(KEYS)), "note": [note] * KEYS}))
    before, rows = table.latest_snapshot(), table.scan().to_arrow().to_pylist()
    there = files_of_tables(table)
    victim = start(HELD_UP, table.location)
    assert victim.stdout is not None
    assert victim.stdout.readline() == "written\n"
    victim.kill()
    victim.communicate()
    left = files_of_tables(table) - there
    assert left
    assert table.latest_snapshot() == before, "nothing is published half"
    assert table.scan().to_arrow().to_pylist() == rows
    unknown = table.health(unknown=True).storage.unknown
    assert unknown is not None
    assert unknown.files == len(left)
    assert table.compact().snapshot_ids
    assert unneeded(table) == left
    report = table.remove_orphans("0 s", dry_run=False, allow_younger=True, max_share=1)
    assert report.removed_files == len(left)
    assert (unneeded(table), missing(table)) == (set(), set())
    assert table.scan().count() == len(rows)


def new_table(tmp_path: Path, keyed: bool) -> lake.Table:
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    table = catalog.create_table(
        "shop.orders",
        [("id", "BIGINT"), ("note", "BIGINT")],
        primary_key=["id"] if keyed else [],
        options={"bucket": "2" if keyed else "-1", "commit.max-retries": "1000"},
    )
    for number in (100, 101):  # so that there is something to compact from the beginning
        table.write(pa.table({"id": [number], "note": [0]}))
    return table


def assert_all_rows_are_there(table: lake.Table, keyed: bool) -> None:
    table.compact()
    assert table.plan_compaction().units == ()
    rows = sorted(tuple(row.values()) for row in table.scan().to_arrow().to_pylist())
    versions = [COMMITS - 1] if keyed else range(COMMITS)
    written = [(key, note) for key in range(WRITERS * KEYS) for note in versions]
    assert rows == [*written, (100, 0), (101, 0)]
