"""Formats the answer to a question about Spark: a page in Markdown."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version

from benchmarks.answer import Answer, Spread, cpu_seconds, wall_seconds
from benchmarks.report import ratio, spread
from benchmarks.spark_questions import Candidate, SparkQuestion

__all__ = ["SparkRun", "format_spark_report", "verdicts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkRun:
    """The settings of a run, and the machine's load during it."""

    name: str
    rows: int
    rounds: int
    day: date
    loads: Sequence[float]
    """The load average in the minute before each measurement."""

    @property
    def command(self) -> str:
        """The command that repeats the run."""
        asked = f"--rows {self.rows} --rounds {self.rounds} {self.name}"
        return f"python -m benchmarks.spark_speed {asked}"


def format_spark_report(
    run: SparkRun, question: SparkQuestion, candidates: Sequence[Candidate], answer: Answer
) -> str:
    """Return the page in Markdown."""
    load = Spread.of(run.loads)
    floors = [candidate.name for candidate in candidates if candidate.answer is None]
    but = f" except *{', '.join(floors)}* (only a part of the work)" if floors else ""
    cores = os.cpu_count()
    lines = [
        f"# {question.sentence}",
        "",
        *verdicts(candidates, answer),
        f"{run.rows:,} rows, {run.rounds} rounds in one session, `local[2]`. Each cell is the "
        "median of the rounds and, in brackets, their range. CPU time is that of the driver, the "
        f"JVM and all Python workers. The machine's load was {load.median:.1f} ({load.low:.1f}–"
        f"{load.high:.1f}) on {cores} cores: at a load above {cores}, wall times are noise.",
        "",
        *_measurements(answer),
        "",
        f"A ratio is the time of *{answer.baseline}* divided by the candidate's in the same round: "
        f"1 is as fast, more is faster. First all candidates{but} gave equal answers. Then the "
        "candidates took turns, in another order each round.",
        "",
        "## Made by",
        "",
        f"    {run.command}",
        "",
        f"{run.day.isoformat()}; {cores} cores, {platform.system()} {platform.machine()}; Python "
        f"{platform.python_version()}, pyspark {version('pyspark')}, pyarrow {version('pyarrow')}.",
        "",
    ]
    return "\n".join(lines)


def verdicts(candidates: Sequence[Candidate], answer: Answer) -> Iterator[str]:
    """Yield one paragraph for each target: the required and the measured ratio."""
    for candidate in candidates:
        if candidate.target is None:
            continue
        by_cpu, by_wall = (
            Spread.of(answer.ratios(candidate.name, clock)).median
            for clock in (cpu_seconds, wall_seconds)
        )
        verdict = "reached" if by_cpu >= candidate.target else "**missed**"
        yield (
            f"*{candidate.name}* has {by_cpu:.2f} times the speed of *{answer.baseline}* by CPU "
            f"time, and {by_wall:.2f} times by wall time; the target of {candidate.target:.2f} is "
            f"{verdict} by CPU."
        )
        yield ""


def _measurements(answer: Answer) -> Iterator[str]:
    yield "| | CPU ratio | wall ratio | CPU s | wall s | rows/s by CPU |"
    yield "|---|---|---|---|---|---|"
    for name in answer.timings:
        cells = [
            name,
            ratio(answer, name, cpu_seconds),
            ratio(answer, name, wall_seconds),
            spread(answer.seconds(name, cpu_seconds), digits=2),
            spread(answer.seconds(name, wall_seconds), digits=2),
            f"{answer.rows / answer.seconds(name, cpu_seconds).median:,.0f}",
        ]
        yield f"| {' | '.join(cells)} |"
