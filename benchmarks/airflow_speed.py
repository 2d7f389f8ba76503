"""Measures a real Airflow on SQLite: ``python -m benchmarks.airflow_speed``.

It compares runs of one task that works on metadata with runs of one empty Python task, in turns,
from the request of a run to its end, by Airflow's own clock. Then it measures the delay of a
commit's asset event. The report includes the load of the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa

import lakeformat as lake

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "bin"))

from local_airflow import LocalAirflow  # noqa: E402 - bin/ is not a package

__all__ = ["main"]

BASELINE, JOBS, WATCHED = "empty", ("health", "expire_snapshots"), "bench.watched"
POLL_SECONDS = 5
MOST_TIMES, MOST_DELAY = 1.5, POLL_SECONDS + 1.0
_PATIENCE_SECONDS = 600


def main(arguments: Sequence[str]) -> int:
    """Measure, and print two tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.airflow_speed", description=__doc__)
    parser.add_argument(
        "--rounds", type=int, default=10, help="number of runs of each task, and of commits"
    )
    rounds = parser.parse_args(arguments).rounds
    with tempfile.TemporaryDirectory(prefix="lake-bench-airflow-") as folder:
        place = Path(folder)
        catalog = lake.open_catalog(str(place / "warehouse"))
        catalog.create_database("bench")
        orders = catalog.create_table("bench.orders", [("id", "BIGINT")])
        for number in range(5):
            orders.write(pa.table({"id": [number]}))
        watched = catalog.create_table(WATCHED, [("id", "BIGINT")])
        connection = {"conn_type": "lake", "extra": {"warehouse": str(place / "warehouse")}}
        settings = {
            "AIRFLOW_CONN_LAKE_DEFAULT": json.dumps(connection),
            "PYTHONPATH": str(HERE.parent),
            # An installed package has bytecode; without it a task would compile the library.
            "PYTHONDONTWRITEBYTECODE": "",
        }
        with LocalAirflow(place / "airflow", HERE / "airflow_dags", settings=settings) as airflow:
            airflow.wait_for_dags(BASELINE, *JOBS, "watched", seconds=_PATIENCE_SECONDS)
            print(f"{os.cpu_count()} processors", end="")
            _report_runs(airflow, rounds)
            _report_delays(airflow, watched, rounds)
    return 0


def _report_runs(airflow: LocalAirflow, rounds: int) -> None:
    """Measure one run at a time, candidates in turns; the first round is a warm-up."""
    names = (BASELINE, *JOBS)
    times: dict[str, list[float]] = {name: [] for name in names}
    for number in range(rounds + 1):
        for name in names:
            seconds = _run_seconds(airflow, name)
            if number:
                times[name].append(seconds)
    print(f"; load {_load()} after {rounds} rounds of runs\n")
    print("| a run with one task | median, s | fastest, s | times the empty one | at most |")
    print("|---|---|---|---|---|")
    for name in names:
        own = times[name]
        ratio = median(own) / median(times[BASELINE])
        most = "" if name == BASELINE else f"{MOST_TIMES}"
        print(f"| {name} | {median(own):.2f} | {min(own):.2f} | {ratio:.2f} | {most} |", flush=True)


def _run_seconds(airflow: LocalAirflow, name: str) -> float:
    run_id = airflow.run(name, {}, seconds=_PATIENCE_SECONDS)
    run = airflow.ask("GET", f"dags/{name}/dagRuns/{run_id}")
    return _moment(run["end_date"]) - _moment(run["queued_at"])


def _report_delays(airflow: LocalAirflow, watched: lake.Table, commits: int) -> None:
    """Measure the time from the end of a commit to its event, at varying moments of the
    interval.
    """
    delays = []
    _wait_for_watcher(airflow, watched)
    for number in range(commits):
        time.sleep(POLL_SECONDS * (1 + random.Random(number).random()))
        seen = len(_events(airflow))
        watched.write(pa.table({"id": [number]}))
        committed = time.time()
        airflow.wait_for("the event", lambda seen=seen: len(_events(airflow)) > seen, 60)
        delays.append(_moment(_events(airflow)[-1]["timestamp"]) - committed)
    print(f"\nLoad {_load()} after {commits} commits to a table watched every {POLL_SECONDS} s.\n")
    print("| from commit to event | median, s | slowest, s | at most, s |")
    print("|---|---|---|---|")
    print(f"| watcher | {median(delays):.2f} | {max(delays):.2f} | {MOST_DELAY} |")


def _wait_for_watcher(airflow: LocalAirflow, watched: lake.Table) -> None:
    """Wait for the first check, because the watcher ignores earlier commits."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not _events(airflow) and time.monotonic() < deadline:
        watched.write(pa.table({"id": [-1]}))
        time.sleep(2 * POLL_SECONDS)


def _events(airflow: LocalAirflow) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = airflow.ask("GET", "assets/events?order_by=timestamp&limit=1000")[
        "asset_events"
    ]
    return found


def _moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _load() -> str:
    return " / ".join(f"{each:.1f}" for each in os.getloadavg())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
