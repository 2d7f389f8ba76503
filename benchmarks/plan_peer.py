"""Compares planning with pypaimon's, scan by scan: ``python -m benchmarks.plan_peer [FILES]``.

pypaimon pins an older pyarrow, so it plans in a process of its own and reports the time of the plan
call alone, after a warm-up. Both must find the same files.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.asked_size import asked_size
from benchmarks.sample_manifest import (
    BUCKETS,
    DATABASE,
    FIRST_DAY,
    KEYS_PER_FILE,
    sample_handle,
    write_sample_table,
)
from lakeformat.paimon.binary_row import encode_row, hash_row
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.snapshot_directory import latest_snapshot
from lakeformat.paimon.read.plan import plan_columns
from lakeformat.rows.prune import ColumnTest, Op
from lakeformat.types.types import TypeName, atomic

__all__ = ["SCANS", "PlannedScan", "compare"]

ROOT = Path(__file__).resolve().parent.parent
PEER_PYTHON = ROOT / ".venv-pypaimon" / "bin" / "python"
FILES = 100_000
ROUNDS = 3


@dataclass(frozen=True, slots=True)
class PlannedScan:
    """One scan, as both libraries describe it, and the required ratio of CPU times."""

    name: str
    is_keyed: bool
    conditions: tuple[ColumnTest, ...] = ()
    peer_condition: tuple[str, str, Any] | None = None
    target: float = 4.0


def _scan(name: str, column: str, value: int, *, is_keyed: bool) -> PlannedScan:
    condition = ColumnTest(column, Op.EQUAL, value)
    return PlannedScan(name, is_keyed, (condition,), (column, "equal", value))


def _key_of_file(number: int) -> int:
    """Return a key in the key range of a file, with a hash that gives the file's bucket."""
    keys = range(number * KEYS_PER_FILE, (number + 1) * KEYS_PER_FILE)
    hashes = (abs(hash_row(encode_row([key], [BIGINT]))) % BUCKETS for key in keys)
    return next(key for key, bucket in zip(keys, hashes, strict=True) if bucket == number % BUCKETS)


BIGINT = atomic(TypeName.BIGINT)
KEY = _key_of_file(4_321)
SCANS: Sequence[PlannedScan] = (
    PlannedScan("append, all files", is_keyed=False, target=14.0),
    _scan("append, one partition", "day", FIRST_DAY + 77, is_keyed=False),
    _scan("append, statistics", "id", KEY, is_keyed=False),
    PlannedScan("keyed, all files", is_keyed=True, target=14.0),
    _scan("keyed, one partition", "day", FIRST_DAY + 77, is_keyed=True),
    _scan("keyed, one key", "id", KEY, is_keyed=True),
)


def compare(scan: PlannedScan, warehouse: Path, rounds: int) -> str:
    """Return one line of the report."""
    handle = sample_handle(warehouse, _table(scan.is_keyed), is_keyed=scan.is_keyed)
    theirs = _plan_there(scan, warehouse, rounds)
    ours = [_plan_here(scan, handle) for _ in range(rounds + 1)][1:]
    if any(names != theirs["names"] for names, _, _ in ours):
        raise AssertionError(f"{scan.name}: the files differ, nothing was measured")
    peer_wall, peer_cpu = (median(column) for column in zip(*theirs["timings"], strict=True))
    wall = median(each[1] for each in ours)
    cpu = median(each[2] for each in ours)
    verdict = "reached" if peer_cpu / cpu >= scan.target else "**missed**"
    return (
        f"| {scan.name} | {len(theirs['names']):,} | {peer_cpu:.3f} / {peer_wall:.3f} "
        f"| {cpu:.3f} / {wall:.3f} | {peer_cpu / cpu:.1f} | {peer_wall / wall:.1f} "
        f"| {scan.target:.0f}, {verdict} |"
    )


def _table(is_keyed: bool) -> str:
    return "keyed" if is_keyed else "append"


def _plan_here(scan: PlannedScan, handle: TableHandle) -> tuple[list[str | None], float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    snapshot = latest_snapshot(handle.storage, handle.layout)
    assert snapshot is not None
    plan = plan_columns(handle, snapshot, conditions=scan.conditions)
    plan.buckets()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return sorted(plan.columns.file_name.texts(), key=str), wall, cpu


def _plan_there(scan: PlannedScan, warehouse: Path, rounds: int) -> dict[str, Any]:
    command = [str(PEER_PYTHON), "-I", str(ROOT / "benchmarks" / "pypaimon_plan.py")]
    table = f"{DATABASE}.{_table(scan.is_keyed)}"
    arguments = [str(warehouse), table, str(rounds), json.dumps(scan.peer_condition)]
    child = subprocess.run([*command, *arguments], stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(child.stdout.splitlines()[-1])
    return found


def main(files: int) -> None:
    """Write both tables, then print a line for each scan."""
    with tempfile.TemporaryDirectory(prefix="lake-bench-plan-") as folder:
        for is_keyed in (False, True):
            write_sample_table(Path(folder), _table(is_keyed), files, is_keyed=is_keyed)
        print("| scan | files | pypaimon cpu / wall s | ours | cpu ratio | wall ratio | target |")
        print("|---|---|---|---|---|---|---|")
        for scan in SCANS:
            print(compare(scan, Path(folder), ROUNDS), flush=True)


if __name__ == "__main__":
    main(asked_size(__doc__, "FILES", FILES))
