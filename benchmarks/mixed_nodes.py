"""Measures writes and reads of Mixed tables with different numbers of nodes (hash buckets).

``python -m benchmarks.mixed_nodes [ROWS]`` writes ``ROWS`` rows to the base store of each table.
Ten commits then replace a part of them, and all rows are read. Every table must end with the same
rows. The report is ``results/mixed_nodes.md``.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import process_time

import numpy as np

from benchmarks.asked_size import asked_size
from benchmarks.stalled_tables import Sums, create_mixed, rows_of, time_read

__all__ = ["Answer", "ask", "format_report"]

ROWS, COMMITS, ROUNDS = 1_000_000, 10, 3
SHARE = 50
"""Each commit replaces one of every ``SHARE`` rows."""
NODES = ((4, 4), (16, 1), (16, 4), (16, 16), (64, 4), (64, 64))
RESULTS = Path(__file__).resolve().parent / "results"


@dataclass(frozen=True, slots=True)
class Answer:
    """The measured table: its nodes, its files of changes, and the CPU seconds."""

    base_nodes: int
    change_nodes: int
    files: int
    """The number of files of changes after all commits."""
    writes: float
    """The CPU seconds of all commits together."""
    read: float
    """The CPU seconds of the best of several reads of all rows."""


def ask(folder: Path, rows: int, nodes: Sequence[tuple[int, int]] = NODES) -> Iterator[Answer]:
    """Yield the answer of each table; raise ``AssertionError`` if the tables differ.

    ``nodes`` has a pair for each table: the number of nodes of its base files, then that of its
    changes.
    """
    found: set[Sums] = set()
    keys = np.random.default_rng(7).permutation(rows)
    for base, change in nodes:
        random = np.random.default_rng(7)
        table = create_mixed(folder / f"{base}-{change}", keys, base, change)
        began = process_time()
        for number in range(COMMITS):
            changed = random.choice(keys, rows // SHARE, replace=False)
            table.write(rows_of(changed, changed * 7 + number + 1))
        writes = process_time() - began
        reads = [time_read(table.scan().to_batches()) for _ in range(ROUNDS)]
        found.update(sums for _, sums in reads)
        if len(found) > 1:
            raise AssertionError(f"the tables have different rows: {found}")
        files = len(table.change.system_table("files").scan().to_arrow())
        yield Answer(base, change, files, writes, min(seconds for seconds, _ in reads))


def format_report(answers: list[Answer], rows: int) -> str:
    """Return the report of all answers."""
    lines = [
        "# What does the number of nodes cost?",
        "",
        f"Each line is a Mixed table with {rows:,} rows in its base store. A node is a hash "
        "bucket; base files and changes can have different numbers of nodes. "
        f"{COMMITS} commits each replace the rows of {rows // SHARE:,} random keys. The times are "
        "CPU seconds: those of all these commits together, and those of one read of all rows, the "
        f"best of {ROUNDS}. All tables ended with the same number of rows and the same sum of "
        "values.",
        "",
        "| nodes of base files | nodes of changes | change files | all writes, s | one read, s |",
        "|---|---|---|---|---|",
        *(
            f"| {each.base_nodes} | {each.change_nodes} | {each.files} | {each.writes:.2f} | "
            f"{each.read:.2f} |"
            for each in answers
        ),
        "",
        f"`python -m benchmarks.mixed_nodes {rows}`, {datetime.now(UTC):%Y-%m-%d}.",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print the answers and write the report."""
    rows = asked_size(__doc__, "ROWS", ROWS)
    answers = []
    with tempfile.TemporaryDirectory() as folder:
        for each in ask(Path(folder), rows):
            print(each, flush=True)
            answers.append(each)
    (RESULTS / "mixed_nodes.md").write_text(format_report(answers, rows), encoding="utf-8")


if __name__ == "__main__":
    main()
