"""Compares compaction with other table formats: ``python -m benchmarks.compact_peers [ROWS]``.

Rows are written unsorted, then upserted by key in ten batches. Then the table is compacted and
read. Each format works in a process of its own and reports the time of its calls alone, commits
included. All formats must end with the same rows.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from benchmarks.asked_size import asked_size
from benchmarks.peer_environment import ROOT, peer_python
from benchmarks.sample_rows import sample_batches

__all__ = ["compare", "write_batches"]

SCRIPT = ROOT / "benchmarks" / "peer_upserts.py"
OURS = "ours"
FORMATS = (OURS, "deltalake", "lance")
PHASES = ("upserts", "compact", "read")
UPSERTS = 10
SEED = 20_261_122

Timings: TypeAlias = Mapping[str, Sequence[float]]
"""CPU seconds and wall seconds of each phase."""


def write_batches(folder: Path, rows: int) -> None:
    """Write eleven Arrow files of unsorted rows; no file has a key twice."""
    random = np.random.default_rng(SEED)
    sizes = [rows // 2, *[rows // 2 // UPSERTS] * UPSERTS]
    values = pa.Table.from_batches(sample_batches(sum(sizes))).drop_columns(["k"])
    numbers = random.permutation(sum(sizes))
    known = start = 0
    for number, size in enumerate(sizes):
        again = random.choice(numbers[:known], size // 2 if known else 0, replace=False)
        added = numbers[known : known + size - len(again)]
        keys = random.permutation(np.concatenate([again, added]))
        part = values.slice(start, size).add_column(0, "k", pa.array(keys))
        known, start = known + len(added), start + size
        with (
            pa.OSFile(str(folder / f"{number:02}.arrow"), "wb") as stream,
            pa.ipc.new_file(stream, part.schema) as writer,
        ):
            writer.write_table(part)


def compare(batches: Path, folder: Path, rounds: int, peer: str) -> dict[str, list[Timings]]:
    """Return the timings of every round of each format; raise if the formats end with different
    rows.
    """
    found: dict[str, list[Timings]] = {name: [] for name in FORMATS}
    rows: dict[str, Any] = {}
    for number in range(rounds):
        for name in FORMATS:
            report = _run(name, batches, folder / f"{name}{number}", peer)
            found[name].append({phase: report[phase] for phase in PHASES})
            rows[name] = report["rows"]
    if any(rows[name] != rows[OURS] for name in FORMATS):
        raise AssertionError(f"the tables differ, nothing was measured: {rows}")
    return found


def _run(name: str, batches: Path, table: Path, peer: str) -> dict[str, Any]:
    python = sys.executable if name == OURS else peer
    command = [python, str(SCRIPT), name, str(batches), str(table)]
    child = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
    report: dict[str, Any] = json.loads(child.stdout.splitlines()[-1])
    return report


def main(rows: int, rounds: int = 3) -> None:
    """Print a table with a line for each format."""
    peer = peer_python()
    with tempfile.TemporaryDirectory(prefix="lake-bench-peers-") as name:
        folder = Path(name)
        (folder / "batches").mkdir()
        write_batches(folder / "batches", rows)
        found = compare(folder / "batches", folder, rounds, peer)
    print(f"{rows:,} rows, {rounds} rounds; CPU / wall seconds, medians\n")
    print("| format | " + " | ".join(PHASES) + " | all, CPU | times ours |")
    print("|---" * (len(PHASES) + 3) + "|")
    ours = _all_cpu(found[OURS])
    for name, timings in found.items():
        cells = [_cell(timings, phase) for phase in PHASES]
        cpu = _all_cpu(timings)
        print(f"| {name} | {' | '.join(cells)} | {cpu:.2f} | {cpu / ours:.1f} |")


def _cell(timings: Sequence[Timings], phase: str) -> str:
    cpu, wall = (median(each[phase][part] for each in timings) for part in (0, 1))
    return f"{cpu:.2f} / {wall:.2f}"


def _all_cpu(timings: Sequence[Timings]) -> float:
    return median(sum(each[phase][0] for phase in PHASES) for each in timings)


if __name__ == "__main__":
    main(asked_size(__doc__, "ROWS", 4_000_000))
