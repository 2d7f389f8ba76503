"""Measures a real Airflow on SQLite: ``python -m benchmarks.airflow_speed``.

It compares tasks that work on metadata with an empty Python task. Their DAGs run in turns, and each
run is measured from its queueing to its end. Then the delay of a commit's asset event is measured.
This takes some minutes. The page with the results, ``airflow_speed.md``, includes the load of the
machine.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
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
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.airflow_speed", description=__doc__)
    parser.add_argument(
        "--rounds", type=int, default=7, help="number of runs of each task, and number of commits"
    )
    parser.add_argument("--out", type=Path, default=HERE / "results", help="folder for the report")
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="lake-bench-airflow-") as folder:
        lines = []
        for line in report(Path(folder), asked.rounds):
            lines.append(line)
            print(line, flush=True)
    asked.out.mkdir(parents=True, exist_ok=True)
    (asked.out / "airflow_speed.md").write_text("\n".join(lines) + "\n", "utf-8")
    return 0


def report(place: Path, rounds: int) -> Iterator[str]:
    """Yield the lines of the page."""
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
    yield "# How long does a run with one task take, and how soon is a commit noticed?\n"
    yield (
        f"A real Airflow {version('apache-airflow')} (SQLite, LocalExecutor) on {os.cpu_count()} "
        "processors. The time of a run is that from its queueing to its end, as Airflow recorded "
        "both. The DAGs took turns, one run at a time.\n"
    )
    with LocalAirflow(place / "airflow", HERE / "airflow_dags", settings=settings) as airflow:
        airflow.wait_for_dags(BASELINE, *JOBS, "watched", seconds=_PATIENCE_SECONDS)
        yield from run_table(_times(airflow, rounds))
        yield f"\nLoad {_load()} after {rounds} rounds.\n"
        yield from _delay_table(_delays(airflow, watched, rounds))
        yield f"\nLoad {_load()} after {rounds} commits.\n"
    command = f"python -m benchmarks.airflow_speed --rounds {rounds}"
    yield f"`{command}`, {datetime.now(UTC):%Y-%m-%d}, local disk."


def _times(airflow: LocalAirflow, rounds: int) -> dict[str, list[float]]:
    """Measure one run at a time, candidates in turns; the first round is a warm-up."""
    times: dict[str, list[float]] = {name: [] for name in (BASELINE, *JOBS)}
    for number in range(rounds + 1):
        for name, own in times.items():
            seconds = _run_seconds(airflow, name)
            if number:
                own.append(seconds)
    return times


def run_table(times: Mapping[str, Sequence[float]]) -> Iterator[str]:
    """Yield the lines of the table of runs. The fastest runs of the tasks are compared, because
    slower runs may have waited for the scheduler.
    """
    rounds = len(times[BASELINE])
    yield (
        f"| a run with one task | median of {rounds}, s | fastest, s | "
        f"fastest / fastest of `{BASELINE}` | at most |"
    )
    yield "|---|---|---|---|---|"
    for name, own in times.items():
        ratio = min(own) / min(times[BASELINE])
        verdict = "" if name == BASELINE else f"{MOST_TIMES}: {_verdict(ratio <= MOST_TIMES)}"
        yield f"| `{name}` | {median(own):.2f} | {min(own):.2f} | {ratio:.2f} | {verdict} |"


def _run_seconds(airflow: LocalAirflow, name: str) -> float:
    run_id = airflow.run(name, {}, seconds=_PATIENCE_SECONDS)
    run = airflow.ask("GET", f"dags/{name}/dagRuns/{run_id}")
    return _moment(run["end_date"]) - _moment(run["queued_at"])


def _delays(airflow: LocalAirflow, watched: lake.Table, commits: int) -> list[float]:
    """Measure the time from the end of each commit to its asset event. The commits end at different
    moments of the poll interval.
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
    return delays


def _delay_table(delays: Sequence[float]) -> Iterator[str]:
    head = f"from commit to asset event, watched every {POLL_SECONDS} s"
    yield f"| {head} | median of {len(delays)}, s | slowest, s | at most, s |"
    yield "|---|---|---|---|"
    verdict = _verdict(max(delays) <= MOST_DELAY)
    yield (
        f"| `LakeSnapshotEventTrigger` | {median(delays):.2f} | {max(delays):.2f} | "
        f"{MOST_DELAY}: {verdict} |"
    )


def _verdict(is_reached: bool) -> str:
    return "reached" if is_reached else "missed"


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
