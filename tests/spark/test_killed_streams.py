"""The driver of a stream is killed at any storage call of its processes, and started again.

``STREAM_KILLS`` is the number of chains of killed drivers; ``SEED`` chooses them. A chain is one
killed driver, or two in a whole run.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from tests.expired import missing
from tests.sampling import SEED, count
from tests.spark.standalone import environment

DRIVERS = Path(__file__).parent / "drivers"
CHAINS = int(os.environ.get("STREAM_KILLS", "1"))
COLUMNS = [("id", "BIGINT"), ("note", "STRING")]
_CALLS = 170
"""About so many calls a run makes, each met before and after: what is later is not reached."""
_PATIENCE_SECONDS = 500
_WORKER_IS_LATE = "Timed out while waiting for the Python worker to connect back"
"""Spark waits ten seconds for a Python worker; on a busy machine the driver fails, and is started
again.
"""

pytestmark = [pytest.mark.cluster, pytest.mark.sampled(1, among="Sparks of their own")]


@pytest.mark.parametrize("seed", range(SEED, SEED + CHAINS))
def test_a_stream_whose_drivers_are_killed_copies_each_row_once(spark, catalog, tmp_path, seed):
    """``spark`` skips where there is no Java."""
    random = Random(seed)
    keys = {"primary_key": ["id"], "options": {"bucket": "2"}} if seed % 2 else {}
    source = catalog.create_table("shop.events", COLUMNS)
    target = catalog.create_table("shop.copy", COLUMNS, **keys)
    sink = random.choice(["format", "foreachBatch"])
    for number in (1, 2):
        add(source, number)
    killed = []
    for number in range(3, 3 + count(1, 2)):
        killed.append(run(catalog.location, tmp_path, sink, random.randint(1, _CALLS)))
        add(source, number)
        if target.analyze().snapshot_id is not None:  # of what was killed only a note may be left
            target.expire_snapshots(retain_max=1, retain_min=1)
    assert run(catalog.location, tmp_path, sink, 0) == 0

    print(f"seed {seed}: {sink}, {'keyed' if keys else 'append'}, ended by {killed}")
    there, wanted = (
        Counter(map(str, table.scan().to_arrow().to_pylist())) for table in (target, source)
    )
    assert there == wanted
    assert missing(target) == set()


def add(table, number):
    ids = pa.array([number, number + 50], pa.int64())
    table.write(pa.table({"id": ids, "note": ["a", "b"]}))


def run(warehouse, folder, sink, kill_at):
    """Return the outcome of a driver; no process of it is left."""
    count = folder / f"count-{time.monotonic_ns()}"
    words = [str(DRIVERS / "copy_stream.py"), warehouse, str(folder / "checkpoint"), sink]
    found = environment()
    env = {
        **found,
        "PYTHONPATH": os.pathsep.join([str(DRIVERS / "killing"), found["PYTHONPATH"]]),
        "PYSPARK_SUBMIT_ARGS": "pyspark-shell",
        "LAKE_KILL_COUNT": str(count),
        "LAKE_KILL_AT": str(kill_at),
    }
    with (folder / "driver.log").open("wb") as log:
        driver = subprocess.Popen(
            [sys.executable, *words], env=env, stdout=log, stderr=log, start_new_session=True
        )
        try:
            code = driver.wait(_PATIENCE_SECONDS)
        finally:
            end_group(driver.pid)
    said = (folder / "driver.log").read_text()
    if code == 1 and _WORKER_IS_LATE in said:
        return run(warehouse, folder, sink, kill_at)
    print(f"at {kill_at}: ended by {code} after {count.stat().st_size // 9} calls")
    assert code in (0, -signal.SIGKILL), said[-3000:]
    return code


def end_group(group):
    """Kill the remaining processes of a driver, and wait until they have ended."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < deadline:
        try:
            os.killpg(group, signal.SIGKILL)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    raise AssertionError(f"process group {group} does not end")
