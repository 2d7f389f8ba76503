"""Compares plans of an Iceberg table with PyIceberg's: ``python -m benchmarks.iceberg_plan_peer``.

The optional argument is the number of files. Each library plans in a process of its own and reports
the time of its calls alone, after a warm-up, and the peak memory of the process after its first
plan. Both must find the same files.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.asked_size import asked_size
from benchmarks.peer_environment import ROOT, peer_python
from benchmarks.sample_iceberg import ROWS_PER_FILE, write_metadata_table

__all__ = ["DAY", "SCANS", "PlannedScan", "compare"]

FILES = 100_000
ROUNDS = 3
_MB = 1_000_000
DAY = 77
"""The number of days from the first day of the table to the day of the scan "one day"."""


@dataclass(frozen=True, slots=True)
class PlannedScan:
    """One scan, its condition as each library writes it, and the required ratio of CPU times."""

    name: str
    conditions: tuple[str, str] | None = None
    target: float = 3.0


def _same(name: str, condition: str) -> PlannedScan:
    return PlannedScan(name, (condition, condition))


SCANS: Sequence[PlannedScan] = (
    PlannedScan("all files", target=5.0),
    PlannedScan(
        "one day",
        (
            "event_time >= '2024-12-20 00:00:00' and event_time < '2024-12-21 00:00:00'",
            "event_time >= '2024-12-20T00:00:00+00:00' and "
            "event_time < '2024-12-21T00:00:00+00:00'",
        ),
    ),
    _same("statistics of one column", "price > 999.9"),
    _same("one key", f"id = {4_321 * ROWS_PER_FILE}"),
)


def compare(scan: PlannedScan, folder: Path, rounds: int, peer: str) -> str:
    """Return one line of the report."""
    theirs = _plan(peer, "pyiceberg", folder, scan, rounds)
    ours = _plan(sys.executable, "ours", folder, scan, rounds)
    if ours["paths"] != theirs["paths"]:
        raise AssertionError(f"{scan.name}: the files differ, nothing was measured")
    peer_cpu, peer_wall = (median(column) for column in zip(*theirs["timings"], strict=True))
    cpu, wall = (median(column) for column in zip(*ours["timings"], strict=True))
    verdict = "reached" if peer_cpu / cpu >= scan.target else "**missed**"
    return (
        f"| {scan.name} | {len(ours['paths']):,} | {peer_cpu:.2f} / {peer_wall:.2f} "
        f"| {cpu:.2f} / {wall:.2f} | {peer_cpu / cpu:.1f} | {scan.target:.0f}, {verdict} "
        f"| {theirs['peak'] / _MB:.0f} | {ours['peak'] / _MB:.0f} |"
    )


def _plan(
    python: str, library: str, folder: Path, scan: PlannedScan, rounds: int
) -> dict[str, Any]:
    script = str(ROOT / "benchmarks" / "peer_plans.py")
    command = [python, script, library, str(folder), str(rounds), json.dumps(scan.conditions)]
    child = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
    found: dict[str, Any] = json.loads(child.stdout.splitlines()[-1])
    return found


def main(files: int = FILES, rounds: int = ROUNDS) -> None:
    """Write a table, then print a line for each scan."""
    peer = peer_python()
    with tempfile.TemporaryDirectory(prefix="lake-bench-iceberg-") as name:
        folder = Path(name).resolve()
        write_metadata_table(folder, files)
        print(
            "| scan | files | PyIceberg cpu / wall s | ours | cpu ratio | target "
            "| PyIceberg peak MB | ours |"
        )
        print("|---|---|---|---|---|---|---|---|")
        for scan in SCANS:
            print(compare(scan, folder, rounds, peer), flush=True)


if __name__ == "__main__":
    main(asked_size(__doc__, "FILES", FILES))
