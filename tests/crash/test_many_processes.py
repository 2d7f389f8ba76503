"""Real processes on one table: side by side, and killed at random moments and started again.

The long run is opt-in, so long on a disk and then so long on an S3 server of its own:
``KILL_SECONDS=600 bin/test crash -- -s tests/crash/test_many_processes.py -k killed``.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

import lakeformat as lake
from tests.conformance.s3_server import ACCESS_KEY, SECRET_KEY, running_s3_server
from tests.crash.process_writer import ROOT, ids_of, make_table, promised, start_writer
from tests.sampling import SEED, count

PROCESSES = 8
COMMITS = count(12, whole=50)
KILL_SECONDS = float(os.environ.get("KILL_SECONDS", "0"))
KILLED_COMMITS = 40
PAUSE_SECONDS = 0.7
"""Between kills: a writer that has just started has to get to its first commit."""
ROWS = 3


SIDE_BY_SIDE = """
import sys
from tests.crash.process_writer import main
from tests.forked import forked
processes, table, *words, promises = sys.argv[1:]
writer = forked(int(processes))
main([table, str(writer), *words, f"{promises}/{writer}"])
"""


def run(script: str, *words: str) -> str:
    """Return what processes printed, all of which must succeed."""
    command = [sys.executable, "-c", script, *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True
    ).stdout


def test_eight_processes_append_side_by_side(tmp_path):
    table = make_table(str(tmp_path / "warehouse"))
    words = [str(each) for each in (PROCESSES, table, COMMITS, ROWS, tmp_path)]
    assert run(SIDE_BY_SIDE, *words) == ""
    check_all(table, PROCESSES, COMMITS)


def check_all(address: str, writers: int, commits: int) -> None:
    """Every row of every commit once, one snapshot per commit, numbers without gaps."""
    table = lake.open_table(address)
    ids = table.scan().to_arrow()["id"].to_pylist()
    assert sorted(ids) == list(range(writers * commits * ROWS))
    snapshots = table.snapshots()
    assert [each.id for each in snapshots] == list(range(1, writers * commits + 1))
    made = [(each.commit_user, each.commit_identifier) for each in snapshots]
    assert sorted(made) == sorted(
        (f"writer-{w}", n) for w in range(writers) for n in range(commits)
    )


CREATE = """
import sys
from lakeformat.storage import LocalStorage
from tests.forked import forked
storage, folder, me = LocalStorage(), sys.argv[1], forked(4)
won = [n for n in range(200) if storage.create(f"{folder}/{n}", str(me).encode() * 50)]
print(f"{me} {' '.join(map(str, won))}\\n", end="", flush=True)
"""


def test_of_many_processes_one_creates_each_file(tmp_path):
    said = run(CREATE, str(tmp_path / "files")).splitlines()
    won = {racer: numbers for racer, *numbers in (map(int, line.split()) for line in said)}
    assert sorted(n for numbers in won.values() for n in numbers) == list(range(200))
    for racer, numbers in won.items():
        for number in numbers:
            assert (tmp_path / "files" / str(number)).read_bytes() == str(racer).encode() * 50


@pytest.fixture(params=["disk", "s3"])
def warehouse(request, tmp_path, monkeypatch) -> Iterator[str]:
    """The address of a place where warehouses can be made, for this process and its children."""
    if request.param == "disk":
        yield str(tmp_path)
        return
    with running_s3_server() as endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
        monkeypatch.setenv("AWS_REGION", "us-east-1")
        new = urllib.request.Request(f"{endpoint}/kills", method="PUT")
        urllib.request.urlopen(new, timeout=10).close()
        yield "s3://kills"


@pytest.mark.skipif(not KILL_SECONDS, reason="opt-in: set KILL_SECONDS, such as 600")
def test_writers_killed_again_and_again_lose_and_double_nothing(tmp_path, warehouse):
    chance, began, tables, kills = random.Random(SEED), time.monotonic(), 0, 0
    while time.monotonic() - began < KILL_SECONDS:
        table = make_table(f"{warehouse}/warehouse-{SEED}-{tables}")
        end = began + KILL_SECONDS
        kills += kill_until_done(table, tmp_path / f"promises-{tables}", chance, end)
        tables += 1
    commits = tables * PROCESSES * KILLED_COMMITS
    print(f"{tables} tables, {commits} commits, {kills} kills in {KILL_SECONDS:.0f} s")
    assert kills, "nobody was killed: give it more seconds"


def kill_until_done(table: str, promises: Path, chance: random.Random, end: float) -> int:
    """Kill and restart writers until all have finished; return the number of kills.

    After ``end`` no writer is killed, so that the run is bounded.
    """
    promises.mkdir()
    running: dict[int, subprocess.Popen[bytes]] = {}
    unfinished, kills = set(range(PROCESSES)), 0

    def start(writer: int) -> None:
        running[writer] = start_writer(
            table, writer, commits=KILLED_COMMITS, rows=ROWS, promises=promises / f"{writer}"
        )

    for writer in unfinished:
        start(writer)
    try:
        while unfinished:
            time.sleep(chance.uniform(0, 2 * PAUSE_SECONDS))
            for writer in [w for w in unfinished if running[w].poll() is not None]:
                assert running[writer].returncode == 0
                unfinished.remove(writer)
            chosen = chance.sample(sorted(unfinished), min(1, len(unfinished)))
            for writer in chosen if time.monotonic() < end else ():
                running[writer].kill()
                running[writer].wait()
                kills += 1
                check_promises(table, promises, writer)
                start(writer)
    finally:
        for process in running.values():
            process.kill()
            process.wait()
    check_all(table, PROCESSES, KILLED_COMMITS)
    return kills


def check_promises(address: str, promises: Path, writer: int) -> None:
    """Right after a kill: what was promised is there, nothing is there twice or in part."""
    kept = promised(promises / f"{writer}")
    ids = lake.open_table(address).scan().to_arrow()["id"].to_pylist()
    assert len(ids) == len(set(ids)), "a row is there twice"
    assert len(ids) % ROWS == 0, "half a commit is there"
    for number in kept:
        mine = ids_of(writer, number, commits=KILLED_COMMITS, rows=ROWS)
        assert set(mine) <= set(ids), "a row that was promised is gone"
