"""Measures reads while no optimizing runs: Mixed tables beside Iceberg's equality deletes.

``python -m benchmarks.mixed_stalled [COMMITS]`` upserts random keys into a table of each kind, in
``COMMITS`` commits. After each quarter of them it reads all rows of both tables, which must be
equal. It writes ``results/mixed_stalled.md``.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import lakeformat as lake
from benchmarks.iceberg_metadata import Manifest, write_iceberg_table

__all__ = ["Answer", "ask"]

COMMITS, ROWS, ROWS_PER_COMMIT, ROUNDS = 200, 1_000_000, 5_000, 3
RESULTS = Path(__file__).resolve().parent / "results"
COLUMNS = {"k": "long", "v": "long"}
SCHEMA = pa.schema([pa.field(name, pa.int64()) for name in COLUMNS])
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Answer:
    """The CPU seconds of a read of all rows after a number of commits."""

    commits: int
    mixed: float
    equality_deletes: float


@dataclass
class _Equality:
    """An Iceberg table whose writer deletes each key by value before it stores the row."""

    folder: Path
    manifests: list[Manifest] = field(default_factory=list)

    def upsert(self, keys: Numbers, values: Numbers) -> None:
        number = len(self.manifests) // 2 + 1
        data = self._file(f"data-{number}", {"k": keys, "v": values})
        deletes = {**self._file(f"deletes-{number}", {"k": keys}), "content": 2}
        self.manifests.append(Manifest([data], sequence_number=number))
        listed = [{**deletes, "equality_ids": [1]}]
        self.manifests.append(Manifest(listed, sequence_number=number, is_deletes=True))

    def published(self) -> Any:
        write_iceberg_table(self.folder, COLUMNS, (), self.manifests)
        return lake.open_table(str(self.folder))

    def _file(self, name: str, columns: dict[str, Numbers]) -> dict[str, object]:
        path = self.folder / f"{name}.parquet"
        fields = [
            pa.field(column, pa.int64(), metadata={"PARQUET:field_id": str(number)})
            for number, column in enumerate(columns, 1)
        ]
        pq.write_table(pa.table([*columns.values()], schema=pa.schema(fields)), path)
        return {
            "file_path": f"file://{path}",
            "record_count": len(columns["k"]),
            "file_size_in_bytes": path.stat().st_size,
        }


def ask(folder: Path, *, commits: int, rows: int, rows_per_commit: int) -> Iterator[Answer]:
    """Yield the CPU seconds of the reads before the first commit and after each quarter of the
    commits.
    """
    random = np.random.default_rng(7)
    catalog = lake.open_catalog(str(folder), format="iceberg")
    catalog.create_database("bench")
    mixed = catalog.create_table("bench.t", SCHEMA, format="mixed", primary_key=["k"])
    keys = random.permutation(rows)
    mixed.write(pa.table([keys, keys * 7], schema=SCHEMA))
    mixed.compact(strategy="full")
    plain = _Equality(folder / "plain")
    plain.folder.mkdir()
    plain.upsert(keys, keys * 7)
    for number in range(commits + 1):
        if number % max(commits // 4, 1) == 0:
            yield _measured(number, mixed, plain.published())
        keys = random.choice(rows, rows_per_commit, replace=False)
        values = keys * 7 + number + 1
        mixed.write(pa.table([keys, values], schema=SCHEMA))
        plain.upsert(keys, values)


def _measured(commits: int, mixed: Any, plain: Any) -> Answer:
    answers, times = [], []
    for table in (mixed, plain):
        took = [_time(table) for _ in range(ROUNDS)]
        answers.append(took[0][1])
        times.append(min(each[0] for each in took))
    if answers[0] != answers[1]:
        raise AssertionError(f"after {commits} commits the tables differ: {answers}")
    return Answer(commits, *times)


def _time(table: Any) -> tuple[float, tuple[int, int]]:
    began = process_time()
    found = _sums(table)
    return process_time() - began, found


def _sums(table: Any) -> tuple[int, int]:
    rows = values = 0
    for batch in table.scan().to_batches():
        rows += batch.num_rows
        values += pc.sum(batch.column("v")).as_py() or 0
    return rows, values


def _report(answers: Sequence[Answer], commits: int) -> str:
    lines = [
        "# How do reads slow down while no optimizing runs?",
        "",
        f"{ROWS:,} rows of two columns; each commit upserts {ROWS_PER_COMMIT:,} random keys. CPU "
        f"seconds of a read of all rows, the best of {ROUNDS} rounds; both tables had equal sums.",
        "",
        "| commits | Mixed table | Iceberg with equality deletes |",
        "|---|---|---|",
        *(
            f"| {each.commits} | {each.mixed:.3f} | {each.equality_deletes:.3f} |"
            for each in answers
        ),
        "",
        f"`python -m benchmarks.mixed_stalled {commits}`, {datetime.now(UTC):%Y-%m-%d}.",
    ]
    return "\n".join(lines) + "\n"


def _line(answer: Answer) -> str:
    return f"| {answer.commits} | {answer.mixed:.3f} | {answer.equality_deletes:.3f} |"


def main() -> None:
    """Measure, print the answers and write the report."""
    commits = int(sys.argv[1]) if len(sys.argv) > 1 else COMMITS
    answers = []
    with tempfile.TemporaryDirectory() as folder:
        for each in ask(Path(folder), commits=commits, rows=ROWS, rows_per_commit=ROWS_PER_COMMIT):
            answers.append(each)
            print(each, flush=True)
    (RESULTS / "mixed_stalled.md").write_text(_report(answers, commits))


if __name__ == "__main__":
    main()
