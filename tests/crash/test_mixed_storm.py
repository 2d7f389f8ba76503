"""A stream, batches, and optimizing with expiry of one Mixed table, as processes that are killed.

Opt-in: ``STORM_SECONDS=60 bin/test crash -- -s tests/crash/test_mixed_storm.py`` prints its seed;
``SEED=7`` kills in the order of that one, as far as the machine repeats itself.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest

import lakeformat as lake
from tests.sampling import SEED

STORM_SECONDS = float(os.environ.get("STORM_SECONDS", "0"))
KEYS = 40
ACTORS = ("stream", "batch", "batch", "optimizer")
LONGEST_START_SECONDS = 300
"""On a machine with much else to do."""
LONGEST_WORK_SECONDS = 40
"""A batch that waits for the lease of a killed one is also killed at some time."""

# Commit n of the stream stores n in the row of the key n % KEYS. A batch changes another column of
# all rows of its begin. So if a batch undid the stream, a row would have an older n.
ACTOR = f"""
import sys, time
import pyarrow as pa
import lakeformat as lake
from lakeformat.mixed.batch import lease

lease.LEASE_MILLIS = 3000  # a killed batch keeps the next one off for so long
root, role, log = sys.argv[1:]
said = open(log, "a+", buffering=1)
said.seek(0)
done = [line for line in said.read().split() if line.isdecimal()]
table, number = lake.open_table(root), len(done)
said.write("ready\\n")  # only then the process may be killed
while True:
    try:
        if role == "stream":
            rows = pa.table({{"k": [number % {KEYS}], "n": [number], "tag": ["stream"]}})
            table.write(rows, commit=lake.CommitId("stream", number))
        elif role == "batch":
            with table.begin() as batch:
                time.sleep(0.2)
                if number % 3:
                    batch.update(None, {{"tag": f"batch {{number}}"}})
                else:
                    batch.overwrite(batch.scan().to_arrow(), "table")
        else:
            table.compact(strategy="full", executor="serial")
            table.expire_snapshots(older_than="1 s")
    except (lake.LockUnavailableError, lake.CommitConflictError):
        time.sleep(0.1)
        continue
    said.write(f"{{number}}\\n")
    number += 1
"""


class Storm:
    """The actors of one table, with the log of each."""

    def __init__(self, directory: Path) -> None:
        catalog = lake.open_catalog(str(directory / "warehouse"), format="iceberg")
        catalog.create_database("db")
        columns = [("k", "BIGINT NOT NULL"), ("n", "BIGINT"), ("tag", "STRING")]
        made = catalog.create_table("db.t", columns, format="mixed", primary_key=["k"])
        assert isinstance(made, lake.MixedTable)
        self.table, self.directory, self.kills = made, directory, 0
        self.begun = [0] * len(ACTORS)
        """The lines in the log of each actor when it was started for the last time."""
        self.since = [time.monotonic()] * len(ACTORS)
        """The time of that start."""
        self.running = [self.start(each) for each in range(len(ACTORS))]

    def log(self, actor: int) -> Path:
        return self.directory / f"{actor}-{ACTORS[actor]}"

    def start(self, actor: int) -> subprocess.Popen[bytes]:
        words = [self.table.location, ACTORS[actor], str(self.log(actor))]
        root = Path(__file__).resolve().parents[2]
        environment = {**os.environ, "PYTHONPATH": str(root)}
        return subprocess.Popen([sys.executable, "-c", ACTOR, *words], env=environment)

    def lines(self, actor: int) -> list[str]:
        return self.log(actor).read_text().split() if self.log(actor).exists() else []

    def done(self, actor: int) -> list[int]:
        """Return the numbers of the commits that an actor was promised."""
        return [int(line) for line in self.lines(actor) if line.isdecimal()]

    def is_ready(self, actor: int) -> bool:
        """True if the process has begun its work."""
        return len(self.lines(actor)) > self.begun[actor]

    def is_due(self, actor: int) -> bool:
        """True if the process has made a commit since its start, or works for long without one."""
        is_slow = time.monotonic() - self.since[actor] > LONGEST_WORK_SECONDS
        has_committed = len(self.lines(actor)) > self.begun[actor] + 1
        return has_committed or (is_slow and self.is_ready(actor))

    def rage(self) -> None:
        """Kill one after the other, and start each again; one that ended by itself has failed."""
        chance = Random(SEED)
        until = time.monotonic() + LONGEST_START_SECONDS
        while not all(map(self.is_ready, range(len(ACTORS)))):
            assert time.monotonic() < until, "the processes do not start"
            time.sleep(0.1)
        until = time.monotonic() + STORM_SECONDS
        latest = until + LONGEST_START_SECONDS
        while time.monotonic() < (until if all(map(self.done, range(len(ACTORS)))) else latest):
            time.sleep(chance.uniform(0.3, 2))
            assert all(each.poll() is None for each in self.running), "an actor ended by itself"
            if due := [each for each in range(len(ACTORS)) if self.is_due(each)]:
                self.kill(actor := chance.choice(due))
                self.begun[actor] = len(self.lines(actor))
                self.since[actor] = time.monotonic()
                self.running[actor] = self.start(actor)

    def kill(self, actor: int) -> None:
        self.running[actor].kill()
        self.running[actor].wait()
        self.kills += 1


@pytest.mark.skipif(not STORM_SECONDS, reason="opt-in: set STORM_SECONDS, such as 60")
def test_killed_batches_streams_and_optimizings_lose_and_double_nothing(tmp_path):
    storm = Storm(tmp_path)
    try:
        storm.rage()
    finally:
        for each in range(len(ACTORS)):
            storm.kill(each)
    done = [len(storm.done(each)) for each in range(len(ACTORS))]
    print(f"{storm.kills} kills; commits of {dict(zip(range(4), done, strict=True))}")
    table = lake.open_table(storm.table.location)
    table.end_batch()
    before = rows_of(table)
    acknowledged = storm.done(ACTORS.index("stream"))
    newest = {number % KEYS: number for number in acknowledged}
    # The last commit of the stream may be published, although its process was killed.
    under_way = len(acknowledged)
    for key, number in newest.items():
        assert before[key] in {number, under_way if key == under_way % KEYS else number}
    table.compact(strategy="full", executor="serial")
    assert rows_of(table) == rows_of(table.base) == before
    assert all(done), "an actor has done nothing: give the test more seconds"


def rows_of(table):
    rows = table.scan(["k", "n"]).to_arrow().to_pydict()
    assert len({*rows["k"]}) == len(rows["k"]), f"two rows of one key: {rows}"
    return dict(zip(rows["k"], rows["n"], strict=True))
