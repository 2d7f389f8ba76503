"""The answer to a question of the benchmarks, as a page in Markdown."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version
from typing import Any

from benchmarks.answer import Answer, Clock, Spread, cpu_seconds, wall_seconds
from benchmarks.question import Question

__all__ = ["Run", "format_report"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The settings of a run."""

    name: str
    scale: float
    rounds: int
    day: date

    @property
    def command(self) -> str:
        """The command that repeats the run."""
        return f"bin/bench {self.name} --scale {self.scale:g} --rounds {self.rounds}"


def format_report(run: Run, question: Question[Any, Any], answer: Answer) -> str:
    """Return the page in Markdown, which shows the plot in the same folder."""
    lines = [
        f"# {question.sentence}",
        "",
        *verdicts(question, answer),
        f"![ratios]({run.name}.png)",
        "",
        f"{answer.rows:,} rows, {run.rounds} rounds. Each cell is the median of the "
        "rounds and, in brackets, their range.",
        "",
        *measurements(answer),
        "",
        f"A ratio is the time of *{answer.baseline}* divided by the candidate's in the same "
        "round: 1 is as fast, more is faster. Candidates took turns in one process, in another "
        "order each round, after all of them had given equal answers. CPU time counts all "
        "threads. Peak memory is what one run in a fresh process needs on top of the opened data.",
        "",
        "## CPU ratio by round",
        "",
        *rounds(answer),
        "",
        "## Made by",
        "",
        f"    {run.command}",
        "",
        f"{run.day.isoformat()}; {os.cpu_count()} cores, {platform.system()} "
        f"{platform.machine()}; Python {platform.python_version()}, "
        f"pyarrow {version('pyarrow')}, numpy {version('numpy')}.",
        "",
    ]
    return "\n".join(lines)


def verdicts(question: Question[Any, Any], answer: Answer) -> Iterator[str]:
    """Yield one paragraph for each target: the required and the measured ratio."""
    for candidate, wanted in question.targets.items():
        reached = Spread.of(answer.ratios(candidate, cpu_seconds)).median
        verdict = "reached" if reached >= wanted else "**missed**"
        yield (
            f"*{candidate}* has {reached:.2f} times the speed of *{answer.baseline}* by CPU time; "
            f"the target of {wanted:.2f} is {verdict}."
        )
        yield ""


def measurements(answer: Answer) -> Iterator[str]:
    """Yield the lines of the table, one for each candidate."""
    yield "| | CPU ratio | wall ratio | CPU s | wall s | rows/s by CPU | peak MB |"
    yield "|---|---|---|---|---|---|---|"
    for candidate in answer.timings:
        rate = answer.rows / answer.seconds(candidate, cpu_seconds).median
        cells = [
            candidate,
            ratio(answer, candidate, cpu_seconds),
            ratio(answer, candidate, wall_seconds),
            spread(answer.seconds(candidate, cpu_seconds)),
            spread(answer.seconds(candidate, wall_seconds)),
            f"{rate:,.0f}",
            f"{answer.peak_bytes[candidate] / 1e6:,.0f}",
        ]
        yield f"| {' | '.join(cells)} |"


def rounds(answer: Answer) -> Iterator[str]:
    """Yield the lines of the table with the ratios of each round."""
    compared = [name for name in answer.timings if name != answer.baseline]
    yield f"| round | {' | '.join(compared)} |"
    yield "|---" * (len(compared) + 1) + "|"
    columns = [answer.ratios(candidate, cpu_seconds) for candidate in compared]
    for number, ratios in enumerate(zip(*columns, strict=True), start=1):
        yield f"| {number} | {' | '.join(f'{ratio:.2f}' for ratio in ratios)} |"


def ratio(answer: Answer, candidate: str, clock: Clock) -> str:
    """Return the ratio to the baseline with its range; ``1`` for the baseline itself."""
    if candidate == answer.baseline:
        return "1"
    return spread(Spread.of(answer.ratios(candidate, clock)), digits=2)


def spread(values: Spread, digits: int = 3) -> str:
    """Return the median and, in brackets, the range."""
    low, high = f"{values.low:.{digits}f}", f"{values.high:.{digits}f}"
    return f"{values.median:.{digits}f} ({low}–{high})"
