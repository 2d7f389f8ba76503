"""Compares this library on Spark with Spark alone: ``python -m benchmarks.spark_speed``.

Asks the given questions, or all, in one session, ``local[2]``. A report of each question is written
to benchmarks/results. First all candidates of a question must give the same answer. Then they are
timed in turns, round by round; CPU time is that of all processes that take part. Some questions
also have a floor. This candidate does only a part of the work and gives no answer; its time is the
best possible time.

Exit code: 0 all questions were answered, 1 the candidates of a question gave different answers.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.answer import Answer
from benchmarks.harness import UnequalAnswersError, orders
from benchmarks.spark_data import Data, made_data
from benchmarks.spark_questions import QUESTIONS, Candidate
from benchmarks.spark_report import SparkRun, format_spark_report, verdicts
from benchmarks.timing import Timing
from benchmarks.tree_time import cpu_seconds_between, tree_ticks

__all__ = ["check_answers", "main", "measured"]

RESULTS = Path(__file__).resolve().parent / "results"
WARM_UP_ROUNDS = 1
"""The number of rounds whose times are discarded, because the JVM compiles code only after it has
run often. The check of answers, which runs each candidate once, is not one of these rounds.
"""


def main(arguments: Sequence[str]) -> int:
    """Run the requested questions; return the exit code."""
    asked = _parsed(arguments)
    unanswered = 0
    with made_data(asked.rows) as data:
        for name in asked.questions or QUESTIONS:
            try:
                _ask(name, data, asked)
            except UnequalAnswersError as error:
                print(f"{name}: {error}", file=sys.stderr)
                unanswered += 1
    return int(unanswered > 0)


def measured(
    candidates: Sequence[Candidate], rounds: int, settle: Callable[[], object], loads: list[float]
) -> dict[str, list[Timing]]:
    """Time the candidates in turns; call ``settle`` before each, so that no candidate pays for the
    work of the one before.
    """
    by_name = {candidate.name: candidate for candidate in candidates}
    timings: dict[str, list[Timing]] = {name: [] for name in by_name}
    for number, order in enumerate(orders([*by_name], WARM_UP_ROUNDS + rounds)):
        for name in order:
            by_name[name].before()
            settle()
            loads.append(os.getloadavg()[0])
            ticks, began = tree_ticks(), time.perf_counter()
            by_name[name].work()
            wall = time.perf_counter() - began
            spent = Timing(wall, cpu_seconds_between(ticks, tree_ticks()))
            if number >= WARM_UP_ROUNDS:
                timings[name].append(spent)
    return timings


def check_answers(candidates: Sequence[Candidate]) -> None:
    """Run each candidate once, and raise if their results differ."""
    answers: dict[str, object] = {}
    for candidate in candidates:
        candidate.before()
        candidate.work()
        if candidate.answer is not None:
            answers[candidate.name] = candidate.answer()
    (first, expected), *others = answers.items()
    for name, answer in others:
        if answer != expected:
            raise UnequalAnswersError(
                f"{name!r} does not give the answer of {first!r}: it gives {answer!r} instead of "
                f"{expected!r}. Nothing was measured"
            )


def _ask(name: str, data: Data, asked: argparse.Namespace) -> None:
    question = QUESTIONS[name]
    candidates = [*question.candidates(data)]
    check_answers(candidates)
    loads: list[float] = []
    timings = measured(candidates, asked.rounds, lambda: _collect_garbage(data), loads)
    answer = Answer(rows=asked.rows, baseline=candidates[0].name, timings=timings, peak_bytes={})
    day = datetime.now(UTC).date()
    run = SparkRun(name=name, rows=asked.rows, rounds=asked.rounds, day=day, loads=loads)
    report = asked.out / f"spark_{name}.md"
    asked.out.mkdir(parents=True, exist_ok=True)
    report.write_text(format_spark_report(run, question, candidates, answer), encoding="utf-8")
    print(*(line for line in verdicts(candidates, answer) if line), f"see {report}", sep="\n")


def _collect_garbage(data: Data) -> None:
    jvm = data.spark.sparkContext._jvm
    assert jvm is not None
    jvm.System.gc()


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.spark_speed",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("questions", nargs="*", metavar="QUESTION", help=", ".join(QUESTIONS))
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows of each table")
    parser.add_argument(
        "--rounds", type=int, default=5, help="number of measurements of each candidate (5)"
    )
    parser.add_argument(
        "--out", type=Path, default=RESULTS, metavar="DIR", help="the folder for reports"
    )
    asked = parser.parse_args(arguments)
    unknown = [name for name in asked.questions if name not in QUESTIONS]
    if unknown:
        parser.error(f"no question {', '.join(unknown)}: choose from {', '.join(QUESTIONS)}")
    return asked


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
