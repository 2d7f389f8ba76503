"""Compares this tree with an earlier one: processes of both do the same work in turns.

``python -m benchmarks.before_after EARLIER [QUESTION ...]`` measures this checkout of the
repository and another one, and prints a table in Markdown. A question is a module in
``benchmarks/questions``; its candidates are the pieces of work that it compares. A command such as
``git worktree add --detach ../earlier v0.1.0`` makes the other checkout. The earlier tree makes the
data. Both trees use the packages of this Python.

A ratio above 1 means that this tree is slower. A candidate marked as a control runs no code of
either tree, so its ratio shows the noise of the measurement.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import lakeformat
from benchmarks.find import find_question, question_names
from benchmarks.timing import time_work

HERE = Path(__file__).resolve().parents[1]


def main(arguments: Sequence[str]) -> int:
    """Print a line for each candidate that is not a baseline; return 1 if a checkout failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("earlier", type=Path, help="the folder of the other checkout")
    parser.add_argument(
        "questions", nargs="*", metavar="QUESTION", help="questions to ask (default: all)"
    )
    parser.add_argument(
        "--scale", type=float, default=0.3, help="the amount of data, as a factor (%(default)s)"
    )
    parser.add_argument(
        "--rounds", type=int, default=9, help="number of rounds in each checkout (%(default)s)"
    )
    given = parser.parse_intermixed_args(arguments)
    print("| question | candidate | CPU s before | CPU s now | now / before | quartiles |")
    print("|---|---|---|---|---|---|")
    failed = 0
    for name in given.questions or question_names():
        try:
            for line in lines_of(name, given.earlier.resolve(), given.scale, given.rounds):
                print(line, flush=True)
        except (EOFError, BrokenPipeError):
            print(f"{name}: one of the two checkouts failed; see its error above", file=sys.stderr)
            failed += 1
    return int(failed > 0)


def lines_of(name: str, earlier: Path, scale: float, rounds: int) -> Iterator[str]:
    """Yield the table lines of a question, one for each candidate that is not the baseline."""
    with tempfile.TemporaryDirectory(prefix="lake-bench-data-") as data:
        with worker(earlier, name, data) as maker:
            ask(maker, scale)
        with worker(earlier, name, data) as before, worker(HERE, name, data) as now:
            for number, candidate in enumerate(candidates_of(name)):
                pairs = [take_turns(before, now, number, turn) for turn in range(rounds + 1)][1:]
                ratios = [after / first for first, after in pairs]
                low, _, high = quantiles(ratios, n=4, method="inclusive")
                seconds = [f"{median(times):.3f}" for times in zip(*pairs, strict=True)]
                mark = " (control)" if candidate in find_question(name).controls else ""
                cells = [name, f"{candidate}{mark}", *seconds, f"{median(ratios):.2f}"]
                yield f"| {' | '.join(cells)} | {low:.2f} to {high:.2f} |"


def candidates_of(name: str) -> list[str]:
    """Return the candidates of a question without the baseline."""
    question = find_question(name)
    return [each for each in question.candidates if each != question.baseline]


Worker = subprocess.Popen[str]


@contextmanager
def worker(tree: Path, name: str, data: str) -> Iterator[Worker]:
    """Yield a process that runs the code of a checkout, and end it after the block."""
    with subprocess.Popen(
        [sys.executable, __file__, "--work", name, data],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree)},
    ) as process:
        yield process
        process.communicate()


def ask(process: Worker, request: float) -> float:
    """Send a request to a process, and return its answer; raise ``EOFError`` without an answer."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{json.dumps(request)}\n")
    process.stdin.flush()
    answer = process.stdout.readline()
    if not answer:
        raise EOFError
    return float(answer)


def take_turns(before: Worker, now: Worker, number: int, turn: int) -> tuple[float, float]:
    """Run a candidate in both checkouts; return the CPU seconds of the earlier checkout and of this
    one. In even turns the earlier checkout runs first, in odd turns this one.
    """
    if turn % 2:
        after = ask(now, number)
        return ask(before, number), after
    return ask(before, number), ask(now, number)


def work(name: str, data: str) -> None:
    """Answer requests. A float is the scale of the data to make; an int is the index of the
    candidate to run.
    """
    if not Path(lakeformat.__file__).is_relative_to(Path.cwd()):
        sys.exit(f"{Path.cwd()} is not a checkout: it has no lakeformat")
    with suppress(ImportError):  # an earlier tree may not have this module
        import_module("lakeformat.rows.freed_memory").keep_freed_memory()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # output of candidates is not an answer
    question, opened = find_question(name), None
    for line in sys.stdin:
        request: Any = json.loads(line)
        if isinstance(request, float):
            question.make_data(Path(data), max(1, round(question.rows * request)))
            seconds = 0.0
        else:
            opened = question.open_data(Path(data)) if opened is None else opened
            seconds = time_work(question, candidates_of(name)[request], opened).cpu_seconds
        print(seconds, file=answers, flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(*sys.argv[2:])
    else:
        sys.exit(main(sys.argv[1:]))
