"""Asks a question: checks that answers are equal, then measures times in turns, then memory."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.answer import Answer
from benchmarks.peak_memory import peak_memory_bytes
from benchmarks.question import Question
from benchmarks.timing import Timing, ready_work, time_work

__all__ = ["UnequalAnswersError", "ask", "measure_times"]

OnProgress = Callable[[str], None]


class UnequalAnswersError(Exception):
    """The results of a candidate and the baseline differ, so the candidate's time means nothing."""


def ask(
    name: str, question: Question[Any, Any], *, scale: float, rounds: int, on_progress: OnProgress
) -> Answer:
    """Measure every candidate of a question, and report progress."""
    rows = max(1, round(question.rows * scale))
    with tempfile.TemporaryDirectory(prefix="lake-bench-data-") as folder:
        on_progress(f"making {rows:,} rows")
        question.make_data(Path(folder), rows)
        return Answer(
            rows=rows,
            baseline=question.baseline,
            timings=measure_times(question, Path(folder), rounds=rounds, on_progress=on_progress),
            peak_bytes=measure_memory(name, question, Path(folder), on_progress=on_progress),
        )


def orders(candidates: Sequence[str], rounds: int) -> Iterator[list[str]]:
    """Yield the order of the candidates for each round; each round begins with the next
    candidate.
    """
    for number in range(rounds):
        first = number % len(candidates)
        yield [*candidates[first:], *candidates[:first]]


def measure_times(
    question: Question[Any, Any], folder: Path, *, rounds: int, on_progress: OnProgress
) -> dict[str, list[Timing]]:
    """Time the candidates round by round; the comparison of their answers is the warm-up."""
    data = question.open_data(folder)
    check_answers(question, data, on_progress=on_progress)
    timings: dict[str, list[Timing]] = {candidate: [] for candidate in question.candidates}
    for number, order in enumerate(orders(list(question.candidates), rounds), start=1):
        for candidate in order:
            on_progress(f"round {number} of {rounds}: {candidate}")
            timings[candidate].append(time_work(question, candidate, data))
    return timings


def check_answers(question: Question[Any, Any], data: object, *, on_progress: OnProgress) -> None:
    """Raise if the answers of a candidate and the baseline differ."""
    expected = answer_of(question, question.baseline, data, on_progress=on_progress)
    for candidate in question.candidates:
        if candidate == question.baseline:
            continue
        if answer_of(question, candidate, data, on_progress=on_progress) != expected:
            raise UnequalAnswersError(
                f"{candidate!r} does not give the answer of {question.baseline!r}; "
                "nothing was measured"
            )


def answer_of(
    question: Question[Any, Any], candidate: str, data: object, *, on_progress: OnProgress
) -> object:
    """Return the result of a candidate."""
    on_progress(f"checking the answer of {candidate}")
    with ready_work(question, candidate, data) as work:
        return question.answer(work())


def measure_memory(
    name: str, question: Question[Any, Any], folder: Path, *, on_progress: OnProgress
) -> dict[str, int]:
    """Return the peak memory of each candidate in bytes."""
    peaks = {}
    for candidate in question.candidates:
        on_progress(f"peak memory of {candidate}")
        peaks[candidate] = peak_memory_bytes(name, candidate, folder)
    return peaks
