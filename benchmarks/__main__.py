"""Measures how fast the library is. Each question compares it, in the same run, with another
library (the peer) or with the unavoidable part of the work (the floor).

Without a question, all questions are asked. Each answer is a report and a plot in
benchmarks/results. Exit code: 0 all questions were answered, 1 the candidates of a question gave
different results, 2 the request is invalid.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from rich.console import Console

from benchmarks.answer import Answer, cpu_seconds
from benchmarks.find import find_question, question_names
from benchmarks.harness import UnequalAnswersError, ask
from benchmarks.plot import write_plot
from benchmarks.report import Run, format_report
from lakeformat.rows.freed_memory import keep_freed_memory

RESULTS = Path(__file__).resolve().parent / "results"


def main(arguments: Sequence[str]) -> int:
    """Run the requested questions; return the exit code."""
    request = parse(arguments)
    if request.list:
        for name in question_names():
            print(f"{name:<16} {find_question(name).sentence}")
        return 0
    keep_freed_memory()  # the command lake, jobs and Spark's workers do the same
    console = Console(stderr=True)
    unanswered = 0
    for name in request.questions or question_names():
        run = Run(
            name=name, scale=request.scale, rounds=request.rounds, day=datetime.now(UTC).date()
        )
        try:
            answer_one(run, request.out, console)
        except UnequalAnswersError as error:
            console.print(f"{name}: {error}", style="bold red", highlight=False)
            unanswered += 1
    return int(unanswered > 0)


def answer_one(run: Run, folder: Path, console: Console) -> None:
    """Run the benchmark of one question, and write its report and plot into a folder."""
    question = find_question(run.name)
    with console.status(run.name) as status:
        answer = ask(
            run.name,
            question,
            scale=run.scale,
            rounds=run.rounds,
            on_progress=lambda doing: status.update(f"{run.name}: {doing}"),
        )
    folder.mkdir(parents=True, exist_ok=True)
    report = folder / f"{run.name}.md"
    report.write_text(format_report(run, question, answer), encoding="utf-8")
    write_plot(report.with_suffix(".png"), question.sentence, answer)
    console.print(f"{run.name}: {summary(answer)}; see {report}", highlight=False, soft_wrap=True)


def summary(answer: Answer) -> str:
    """Return the CPU ratios of all candidates in one line, for the console."""
    compared = (name for name in answer.timings if name != answer.baseline)
    ratios = (f"{name} {median(answer.ratios(name, cpu_seconds)):.2f}" for name in compared)
    return f"{', '.join(ratios)} of {answer.baseline} by CPU"


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments; end the program with code 2 if they are invalid."""
    names = question_names()
    parser = argparse.ArgumentParser(
        prog="bin/bench",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("questions", nargs="*", metavar="QUESTION", help="see --list")
    parser.add_argument(
        "--scale", type=positive, default=1.0, help="the amount of data, as a factor (1.0)"
    )
    parser.add_argument(
        "--rounds", type=counted, default=5, help="number of measurements of each candidate (5)"
    )
    parser.add_argument(
        "--out", type=Path, default=RESULTS, metavar="DIR", help="the folder for reports"
    )
    parser.add_argument("--list", action="store_true", help="print the questions and stop")
    request = parser.parse_args(arguments)
    unknown = [name for name in request.questions if name not in names]
    if unknown:
        parser.error(f"no question {', '.join(unknown)}: choose from {', '.join(names)}")
    return request


def positive(text: str) -> float:
    """Parse a scale: any finite number above zero."""
    with suppress(ValueError):
        number = float(text)
        if number > 0 and math.isfinite(number):
            return number
    raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")


def counted(text: str) -> int:
    """Parse a number of rounds: at least one."""
    with suppress(ValueError):
        number = int(text)
        if number >= 1:
            return number
    raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
