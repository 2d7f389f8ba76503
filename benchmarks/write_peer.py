"""Compares keyed writes with pypaimon's: ``python -m benchmarks.write_peer [ROWS]``.

pypaimon pins an older pyarrow, so it writes in a process of its own and reports the time of its
calls alone, the commit included. This library reads both tables, and the rows must be equal.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from pathlib import Path
from statistics import median

import pyarrow as pa

import lakeformat as lake
from benchmarks.asked_size import asked_size
from benchmarks.questions.keyed_write import create_table, shuffled_rows

__all__ = ["compare"]

ROOT = Path(__file__).resolve().parent.parent
PEER_PYTHON = ROOT / ".venv-pypaimon" / "bin" / "python"
ROWS = 1_000_000
ROUNDS = 2
TARGETS = {"python": 30.0, "native": 1.8}
"""The required speed of this library, as a multiple of the speed of each pypaimon engine."""


def compare(rows: pa.Table, folder: Path, engine: str) -> str:
    """Return one line of the report."""
    catalog = lake.open_catalog(str(folder))
    theirs = [create_table(catalog, f"bench.theirs{number}") for number in range(ROUNDS)]
    peer = _write_there(rows, folder, engine)
    ours, timings = create_table(catalog, "bench.ours0"), []
    for number in range(ROUNDS + 1):
        ours = create_table(catalog, f"bench.ours{number + 1}")
        wall, cpu = time.perf_counter(), time.process_time()
        ours.write(rows)
        timings.append((time.perf_counter() - wall, time.process_time() - cpu))
    if _content(ours) != _content(theirs[0]):
        raise AssertionError("the tables differ, nothing was measured")
    peer_wall, peer_cpu = (median(column) for column in zip(*peer, strict=True))
    wall, cpu = (median(column) for column in zip(*timings[1:], strict=True))
    target = TARGETS[engine]
    verdict = "reached" if peer_cpu / cpu >= target else "**missed**"
    return (
        f"| {engine} | {rows.num_rows:,} "
        f"| {peer_cpu:.2f} / {peer_wall:.2f} | {cpu:.2f} / {wall:.2f} "
        f"| {peer_cpu / cpu:.1f} | {peer_wall / wall:.1f} | {target:g}, {verdict} |"
    )


def _content(table: lake.Table) -> pa.Table:
    return table.scan().to_arrow().sort_by("k").combine_chunks()


def _write_there(rows: pa.Table, folder: Path, engine: str) -> list[list[float]]:
    path = folder / "rows.arrow"
    with pa.OSFile(str(path), "wb") as stream, pa.ipc.new_file(stream, rows.schema) as writer:
        writer.write_table(rows)
    command = [str(PEER_PYTHON), "-I", str(ROOT / "benchmarks" / "pypaimon_write.py")]
    arguments = [str(folder), "bench.theirs", str(path), str(ROUNDS), engine]
    child = subprocess.run([*command, *arguments], stdout=subprocess.PIPE, text=True, check=True)
    found: list[list[float]] = json.loads(child.stdout.splitlines()[-1])
    return found


def main(rows: int) -> None:
    """Print one line for each of pypaimon's engines."""
    print(
        "| pypaimon's engine | rows | its cpu / wall s | ours | cpu ratio | wall ratio | target |"
    )
    print("|---|---|---|---|---|---|---|")
    for engine in TARGETS:
        with tempfile.TemporaryDirectory(prefix="lake-bench-write-") as folder:
            print(compare(shuffled_rows(rows), Path(folder), engine), flush=True)


if __name__ == "__main__":
    main(asked_size(__doc__, "ROWS", ROWS))
