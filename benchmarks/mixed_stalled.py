"""Compares reads without optimizing: a Mixed table, and an Iceberg table with equality deletes.

``python -m benchmarks.mixed_stalled [COMMITS] [--java]`` upserts random keys into a table of each
kind, in ``COMMITS`` commits. After each quarter of the commits it reads all rows of both tables;
the rows must be equal. In a second pair of tables, only keys of one of eight hash buckets change.
The report is ``results/mixed_stalled.md``. With ``--java``, Iceberg's Java library also reads the
Iceberg table of the first pair, and the report is ``results/mixed_stalled_java.md``.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.iceberg_java import cpu_seconds_of, running_iceberg
from benchmarks.stalled_tables import (
    EqualityTable,
    Numbers,
    Sums,
    changes_of,
    create_mixed,
    read_peak_bytes,
    time_read,
)

__all__ = ["Answer", "NodeAnswer", "ask", "ask_one_node", "format_report"]

COMMITS, ROWS, ROWS_PER_COMMIT, ROUNDS = 200, 1_000_000, 5_000, 3
JAVA_ROUNDS = 8
"""More than ``ROUNDS``, because Java's compiler needs some rounds to warm up."""
NODES, MANY_NODES = 4, 8
RESULTS = Path(__file__).resolve().parent / "results"
PeakOf = Callable[[Any], int]
"""A function that returns the peak memory in bytes of a read of all rows of a table."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The CPU seconds and the peak memory of a read of all rows after a number of commits."""

    commits: int
    mixed: float
    equality_deletes: float
    mixed_bytes: int
    equality_bytes: int
    java: float | None = None
    """The seconds in which Iceberg's Java library reads the table with equality deletes; None
    without Java."""


@dataclass(frozen=True, slots=True)
class NodeAnswer:
    """The CPU seconds of reads after a number of commits that changed keys of one node."""

    commits: int
    touched: float
    """The read of the changed node."""
    others: float
    """The read of all other nodes together."""
    equality_deletes: float
    """The read of all rows of the table with equality deletes."""
    mixed_bytes: int
    """The peak memory of a read of all rows of the Mixed table."""


def ask(
    folder: Path,
    *,
    commits: int,
    rows: int,
    rows_per_commit: int,
    peak_of: PeakOf = read_peak_bytes,
    spark: Any = None,
) -> Iterator[Answer]:
    """Yield the measured reads before the first commit and after each quarter of the commits; Java
    reads in ``spark``, a session with Iceberg.
    """
    keys = np.random.default_rng(7).permutation(rows)
    mixed, plain = _pair(folder, keys, NODES)
    for number in changes_of(keys, commits, rows_per_commit, (mixed, plain)):
        published = plain.published()
        of_mixed, sums = _best(partial(_time_all, mixed), ROUNDS)
        of_plain, plain_sums = _best(partial(_time_all, published), ROUNDS)
        answers, of_java = [sums, plain_sums], None
        if spark is not None:
            read = partial(_time_by_java, spark, published.location)
            of_java, java_sums = _best(read, JAVA_ROUNDS)
            answers.append(java_sums)
        _require_equal(number, answers)
        yield Answer(number, of_mixed, of_plain, peak_of(mixed), peak_of(published), of_java)


def ask_one_node(
    folder: Path,
    *,
    commits: int,
    rows: int,
    rows_per_commit: int,
    peak_of: PeakOf = read_peak_bytes,
) -> Iterator[NodeAnswer]:
    """Yield the measured reads of tables of which only the keys of one node change."""
    keys = np.random.default_rng(7).permutation(rows)
    mixed, plain = _pair(folder, keys, MANY_NODES)
    scan = mixed.scan()
    parts = [batch.column("k").to_numpy() for batch in scan.read(scan.splits()[0])]
    for number in changes_of(np.concatenate(parts), commits, rows_per_commit, (mixed, plain)):
        published = plain.published()
        touched, first = _best(partial(_time_nodes, mixed, slice(1)), ROUNDS)
        others, rest = _best(partial(_time_nodes, mixed, slice(1, None)), ROUNDS)
        equality, every = _best(partial(_time_all, published), ROUNDS)
        _require_equal(number, [(first[0] + rest[0], first[1] + rest[1]), every])
        yield NodeAnswer(number, touched, others, equality, peak_of(mixed))


def _pair(folder: Path, keys: Numbers, nodes: int) -> tuple[Any, EqualityTable]:
    plain = EqualityTable(folder / "plain")
    plain.upsert(keys, keys * 7)
    return create_mixed(folder, keys, nodes), plain


def _time_all(table: Any) -> tuple[float, Sums]:
    return time_read(table.scan().to_batches())


def _time_nodes(mixed: Any, chosen: slice) -> tuple[float, Sums]:
    return time_read(_of_nodes(mixed, chosen))


def _of_nodes(mixed: Any, chosen: slice) -> Iterator[pa.RecordBatch]:
    """Plan a read, and stream the rows of the nodes with the indexes in ``chosen``."""
    scan = mixed.scan()
    for split in scan.splits()[chosen]:
        yield from scan.read(split)


def _best(read: Callable[[], tuple[float, Sums]], rounds: int) -> tuple[float, Sums]:
    return min((read() for _ in range(rounds)), key=lambda each: each[0])


def _require_equal(commits: int, answers: Sequence[Sums]) -> None:
    if len({*answers}) > 1:
        raise AssertionError(f"after {commits} commits the tables differ: {answers}")


def _time_by_java(spark: Any, location: str) -> tuple[float, Sums]:
    machine = spark.sparkContext._jvm
    process = machine.java.lang.ProcessHandle.current().pid()
    began = cpu_seconds_of(process)
    rows = spark.read.format("iceberg").load(location)
    [found] = rows.selectExpr("count(*)", "sum(v)").collect()
    return cpu_seconds_of(process) - began, (int(found[0]), int(found[1]))


def format_report(
    answers: Sequence[Answer], of_one_node: Sequence[NodeAnswer], command: str
) -> str:
    """Return the report of answers that a command has measured."""
    has_java = any(each.java is not None for each in answers)
    by_java = (
        " Iceberg's Java library reads the table with equality deletes, too, in a Spark of two "
        f"threads; its time is the best of {JAVA_ROUNDS} rounds."
    )
    header = ["commits", "Mixed, s", "Iceberg with equality deletes, s"]
    header += ["the same, read by Java, s"] * has_java
    header += ["Mixed, peak MB", "Iceberg with equality deletes, peak MB"]
    of_node = ["commits", "Mixed: the changed node, s", f"its {MANY_NODES - 1} other nodes, s"]
    of_node += ["Iceberg with equality deletes, all rows, s", "Mixed, all rows, peak MB"]
    lines = [
        "# How do reads slow down while no optimizing runs?",
        "",
        f"{ROWS:,} rows of two columns; each commit upserts {ROWS_PER_COMMIT:,} random keys. CPU "
        f"seconds of a read of all rows, the best of {ROUNDS} rounds; all reads had equal sums. "
        "Peak memory is that of one read in a fresh process, on top of the opened table."
        f"{by_java if has_java else ''}",
        "",
        *_table(header, [_cells(each, has_java=has_java) for each in answers]),
        "",
        "Each commit adds a file of inserts and a file of deletes to the table with equality "
        f"deletes. The Mixed table has {NODES} nodes (hash buckets), and a commit adds both files "
        f"for each node. So a read of the Mixed table opens {NODES} times as many files. Memory "
        "holds the deletes of one node at a time.",
        "",
        "## Changes of one node of eight",
        "",
        "These tables have as many rows and changes as those above. But this Mixed table has "
        f"{MANY_NODES} nodes, and all changed keys are in one of them. The time of a read of some "
        "nodes includes the planning of a read of the whole table.",
        "",
        *_table(of_node, [_cells_of_node(each) for each in of_one_node]),
        "",
        f"`{command}`, {datetime.now(UTC):%Y-%m-%d}.",
    ]
    return "\n".join(lines) + "\n"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(header)} |"
    yield "|---" * len(header) + "|"
    yield from (f"| {' | '.join(cells)} |" for cells in rows)


def _cells(answer: Answer, *, has_java: bool) -> list[str]:
    times = [answer.mixed, answer.equality_deletes]
    times += [answer.java or 0.0] if has_java else []
    peaks = (answer.mixed_bytes, answer.equality_bytes)
    return [str(answer.commits), *map(_seconds, times), *map(_megabytes, peaks)]


def _cells_of_node(answer: NodeAnswer) -> list[str]:
    times = (answer.touched, answer.others, answer.equality_deletes)
    return [str(answer.commits), *map(_seconds, times), _megabytes(answer.mixed_bytes)]


def _seconds(value: float) -> str:
    return f"{value:.3f}"


def _megabytes(value: int) -> str:
    return f"{value / 1e6:.0f}"


def main(arguments: Sequence[str]) -> None:
    """Measure, print the answers and write the report."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.mixed_stalled",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "commits", nargs="?", type=int, default=COMMITS, help=f"number of commits ({COMMITS})"
    )
    parser.add_argument("--java", action="store_true", help="read by Iceberg's Java library, too")
    parser.add_argument("--out", type=Path, metavar="FILE", help="the report")
    asked = parser.parse_args(arguments)
    commits, each = asked.commits, ROWS_PER_COMMIT
    with ExitStack() as stack:
        first, second = (Path(stack.enter_context(tempfile.TemporaryDirectory())) for _ in range(2))
        spark = None
        if asked.java:
            spark = stack.enter_context(running_iceberg("reads by Java"))
        answers = [
            *map(_shown, ask(first, commits=commits, rows=ROWS, rows_per_commit=each, spark=spark))
        ]
        of_one_node = [
            *map(_shown, ask_one_node(second, commits=commits, rows=ROWS, rows_per_commit=each))
        ]
    command = f"python -m benchmarks.mixed_stalled {asked.commits}{' --java' * asked.java}"
    report = asked.out or RESULTS / f"mixed_stalled{'_java' * asked.java}.md"
    report.write_text(format_report(answers, of_one_node, command), encoding="utf-8")


def _shown(answer: Any) -> Any:
    print(answer, flush=True)
    return answer


if __name__ == "__main__":
    main(sys.argv[1:])
