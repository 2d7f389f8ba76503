"""Measures reads while no optimizing runs: Mixed tables beside Iceberg's equality deletes.

``python -m benchmarks.mixed_stalled [COMMITS] [--java]`` upserts random keys into a table of each
kind, in ``COMMITS`` commits. After each quarter of them it reads all rows of both tables, which
must be equal. With ``--java`` Iceberg's Java library reads the table with equality deletes, too. It
writes ``results/mixed_stalled.md``.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
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
from benchmarks.iceberg_java import cpu_seconds_of, running_iceberg
from benchmarks.iceberg_metadata import Manifest, write_iceberg_table

__all__ = ["Answer", "ask", "format_report"]

COMMITS, ROWS, ROWS_PER_COMMIT, ROUNDS = 200, 1_000_000, 5_000, 3
JAVA_ROUNDS = 8
"""Java's compiler needs some rounds until it is warm."""
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
    java: float | None = None
    """The same for Iceberg's Java library and the table with equality deletes; None without it."""


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


def ask(
    folder: Path, *, commits: int, rows: int, rows_per_commit: int, spark: Any = None
) -> Iterator[Answer]:
    """Yield the CPU seconds of the reads before the first commit and after each quarter of the
    commits; Java reads in ``spark``, a session with Iceberg.
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
            yield _measured(number, mixed, plain.published(), spark)
        keys = random.choice(rows, rows_per_commit, replace=False)
        values = keys * 7 + number + 1
        mixed.write(pa.table([keys, values], schema=SCHEMA))
        plain.upsert(keys, values)


def _measured(commits: int, mixed: Any, plain: Any, spark: Any) -> Answer:
    answers, times = [], []
    reads: list[Callable[[], tuple[float, tuple[int, int]]]]
    reads = [lambda: _time(mixed), lambda: _time(plain)]
    if spark is not None:
        reads.append(lambda: _time_by_java(spark, plain.location))
    for rounds, read in zip((ROUNDS, ROUNDS, JAVA_ROUNDS), reads, strict=False):
        took = [read() for _ in range(rounds)]
        answers.append(took[0][1])
        times.append(min(each[0] for each in took))
    if len({*answers}) > 1:
        raise AssertionError(f"after {commits} commits the tables differ: {answers}")
    return Answer(commits, *times)


def _time_by_java(spark: Any, location: str) -> tuple[float, tuple[int, int]]:
    machine = spark.sparkContext._jvm
    process = machine.java.lang.ProcessHandle.current().pid()
    began = cpu_seconds_of(process)
    rows = spark.read.format("iceberg").load(location)
    [found] = rows.selectExpr("count(*)", "sum(v)").collect()
    return cpu_seconds_of(process) - began, (int(found[0]), int(found[1]))


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


def format_report(answers: Sequence[Answer], command: str) -> str:
    """Return the report of answers that a command has measured."""
    has_java = any(each.java is not None for each in answers)
    by_java = (
        f" Java is Iceberg's library in a Spark of two threads, the best of {JAVA_ROUNDS} rounds; "
        "it reads the table with equality deletes."
    )
    header = ["commits", "Mixed table", "Iceberg with equality deletes", "the same, read by Java"]
    lines = [
        "# How do reads slow down while no optimizing runs?",
        "",
        f"{ROWS:,} rows of two columns; each commit upserts {ROWS_PER_COMMIT:,} random keys. CPU "
        f"seconds of a read of all rows, the best of {ROUNDS} rounds; all reads had equal sums."
        f"{by_java if has_java else ''}",
        "",
        f"| {' | '.join(header[: 4 if has_java else 3])} |",
        "|---" * (4 if has_java else 3) + "|",
        *map(_line, answers),
        "",
        "Both tables have a file of inserts and a file of deletes for each commit; the Mixed table "
        "has both for each of its four nodes, so a read opens four times as many files.",
        "",
        f"`{command}`, {datetime.now(UTC):%Y-%m-%d}.",
    ]
    return "\n".join(lines) + "\n"


def _line(answer: Answer) -> str:
    times = [answer.mixed, answer.equality_deletes]
    times += [] if answer.java is None else [answer.java]
    return f"| {answer.commits} | {' | '.join(f'{each:.3f}' for each in times)} |"


def main(arguments: Sequence[str]) -> None:
    """Measure, print the answers and write the report."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.mixed_stalled",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("commits", nargs="?", type=int, default=COMMITS, help=f"({COMMITS})")
    parser.add_argument("--java", action="store_true", help="read by Iceberg's Java library, too")
    parser.add_argument(
        "--out", type=Path, default=RESULTS / "mixed_stalled.md", metavar="FILE", help="the report"
    )
    asked = parser.parse_args(arguments)
    answers = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        spark = None
        if asked.java:
            spark = stack.enter_context(running_iceberg("reads by Java"))
        for each in ask(
            folder,
            commits=asked.commits,
            rows=ROWS,
            rows_per_commit=ROWS_PER_COMMIT,
            spark=spark,
        ):
            answers.append(each)
            print(each, flush=True)
    command = f"python -m benchmarks.mixed_stalled {asked.commits}{' --java' * asked.java}"
    asked.out.write_text(format_report(answers, command), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
