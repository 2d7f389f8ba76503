"""Compares the commits per second of sixteen processes on one table with those of one process.

``python -m benchmarks.many_writers [SECONDS]`` measures three rounds. In each round, one process
commits for ``SECONDS`` seconds. Then sixteen processes commit in parallel to another table, also
for ``SECONDS`` seconds. Both tables are on local disk. No commit may fail, and each must be in its
table once. The report is ``results/many_writers.md``.
"""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from multiprocessing.synchronize import Event
from pathlib import Path
from statistics import median

import pyarrow as pa

import lakeformat as lake
from benchmarks.asked_size import asked_size

__all__ = ["Answer", "ask"]

WRITERS = 16
ROUNDS = 3
TARGET = 0.5
RESULTS = Path(__file__).resolve().parent / "results"


@dataclass(frozen=True, slots=True)
class Answer:
    """The numbers of commits and attempts on one table, and the most attempts of one commit."""

    commits: int
    seconds: float
    attempts: int
    most_attempts: int

    @property
    def per_second(self) -> float:
        return self.commits / self.seconds


def ask(folder: Path, *, writers: int, seconds: float) -> Answer:
    """Let ``writers`` processes commit row after row, and check that all rows are in the table."""
    catalog = lake.open_catalog(str(folder))
    catalog.create_database("shop")
    table = catalog.create_table("shop.orders", [("id", "BIGINT")])
    context = multiprocessing.get_context("spawn")
    start, ready = context.Event(), context.Barrier(writers + 1)
    results: multiprocessing.Queue[list[int]] = context.Queue()
    processes = [
        context.Process(target=_commit, args=(table.location, ready, start, results, seconds))
        for _ in range(writers)
    ]
    for process in processes:
        process.start()
    ready.wait(timeout=120)
    began = time.monotonic()
    start.set()
    attempts = [number for _ in processes for number in results.get(timeout=seconds + 120)]
    took = time.monotonic() - began
    for process in processes:
        process.join()
        if process.exitcode:
            raise SystemExit(f"a writer ended with exit code {process.exitcode}")
    numbers = [snapshot.id for snapshot in table.snapshots()]
    rows = table.scan().count()
    if numbers != list(range(1, len(attempts) + 1)) or rows != len(attempts):
        raise SystemExit(
            f"{len(attempts)} commits of one row were acknowledged, but the table has "
            f"{len(numbers)} commits and {rows} rows"
        )
    return Answer(len(attempts), took, sum(attempts), max(attempts))


def _commit(
    location: str,
    ready: object,
    start: Event,
    results: multiprocessing.Queue[list[int]],
    seconds: float,
) -> None:
    table, row, attempts = lake.open_table(location), pa.table({"id": [1]}), []
    ready.wait(timeout=120)  # type: ignore[attr-defined]
    start.wait()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        attempts.append(table.write(row).attempts)
    results.put(attempts)


def report(rounds: Sequence[tuple[Answer, Answer]], seconds: float) -> str:
    """Return the answer as a page."""
    ratio = median(many.per_second / one.per_second for one, many in rounds)
    lines = [
        "# How many commits do sixteen writers make where one alone makes a hundred?",
        "",
        f"**{ratio * 100:.0f}** (median of {len(rounds)} rounds of {seconds:g} s; wanted: "
        f"{TARGET * 100:.0f}). No commit failed, every row is there once.",
        "",
        "| round | one, commits/s | sixteen, commits/s | attempts per commit | most attempts |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {n} | {one.per_second:.0f} | {many.per_second:.0f} "
        f"| {many.attempts / many.commits:.2f} | {many.most_attempts} |"
        for n, (one, many) in enumerate(rounds, start=1)
    ]
    day = datetime.now(UTC).date()
    lines += ["", f"`python -m benchmarks.many_writers {seconds:g}`, {day}, local disk."]
    return "\n".join(lines) + "\n"


def main(seconds: float) -> None:
    """Measure, and write the page."""
    rounds = []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as many:
            rounds.append(
                (
                    ask(Path(one), writers=1, seconds=seconds),
                    ask(Path(many), writers=WRITERS, seconds=seconds),
                )
            )
    page = report(rounds, seconds)
    (RESULTS / "many_writers.md").write_text(page, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main(asked_size(__doc__, "SECONDS", 10))
