"""Real writer processes on a real disk, killed without warning while they race one another."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time

import lakeformat as lake
from tests.sampling import SEED

WRITERS = 3
COMMITS = 6
ROWS = 5

# Each appends commit after commit and says so when it was promised one.
WRITER = f"""
import sys
import pyarrow as pa
import lakeformat as lake
from tests.forked import forked

root, writer = sys.argv[1], forked({WRITERS})
table = lake.open_table(root)
for number in range({COMMITS}):
    first = (writer * {COMMITS} + number) * {ROWS}
    rows = pa.table({{"id": list(range(first, first + {ROWS}))}})
    table.write(rows, commit=lake.CommitId(f"writer-{{writer}}", number))
    print(f"{{writer}}\\n", end="", flush=True)
"""


def start(root: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, root]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)


def test_killed_and_repeated_writers_publish_every_commit_once(tmp_path):
    root = make_table(tmp_path)
    chance = random.Random(SEED)
    writers, begun = start(root), set()
    for line in writers.stdout:  # wait until each is in the middle of its work
        begun.add(line)
        if len(begun) == WRITERS:
            break
    time.sleep(chance.random() * 0.05)
    os.killpg(writers.pid, signal.SIGKILL)
    writers.communicate()

    rows = rows_of(root)
    assert len(rows) == len(set(rows))
    assert len(rows) % ROWS == 0

    repeated = start(root)
    repeated.communicate()
    assert repeated.returncode == 0

    assert sorted(rows_of(root)) == list(range(WRITERS * COMMITS * ROWS))
    snapshots = lake.open_table(root).snapshots()
    assert [s.id for s in snapshots] == list(range(1, WRITERS * COMMITS + 1))


def make_table(tmp_path) -> str:
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    options = {"commit.max-retries": "1000"}
    catalog.create_table("shop.orders", [("id", "BIGINT")], options=options)
    return str(tmp_path / "shop.db" / "orders")


def rows_of(root: str) -> list[int]:
    return lake.open_table(root).scan().to_arrow()["id"].to_pylist()
