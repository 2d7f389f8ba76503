"""The report that compares compactions by this library and by Java, as a page in Markdown."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version

from benchmarks.answer import Spread

__all__ = ["MeasuredCase", "Turn", "compact_report"]


@dataclass(frozen=True, slots=True)
class Turn:
    """The CPU seconds of one round, and the load average in the minute before."""

    ours: float
    theirs: float
    load: float


@dataclass(frozen=True, slots=True)
class MeasuredCase:
    """The measurements of one compaction."""

    sentence: str
    target: float
    size: int
    warm_ups: Sequence[float]
    turns: Sequence[Turn]

    @property
    def ratios(self) -> Spread:
        """The CPU time of Java divided by ours, over the rounds."""
        return Spread.of([turn.theirs / turn.ours for turn in self.turns])

    def line(self) -> str:
        """Return the line of the report."""
        size, ratios = self.size / 1e6, self.ratios
        ours = Spread.of([turn.ours for turn in self.turns])
        theirs = Spread.of([turn.theirs for turn in self.turns])
        verdict = "reached" if ratios.median >= self.target else "**missed**"
        cells = [
            self.sentence,
            f"{size:.0f}",
            _spread(ours),
            f"{size / ours.median:.0f}",
            f"{self.warm_ups[0]:.1f}" if self.warm_ups else "",
            _spread(theirs),
            f"{size / theirs.median:.0f}",
            f"{ratios.median:.1f} ({ratios.low:.1f}–{ratios.high:.1f})",
            f"{self.target:.0f}, {verdict}",
        ]
        return f"| {' | '.join(cells)} |"


def compact_report(cases: Sequence[MeasuredCase], arguments: str) -> str:
    """Return the page; ``arguments`` are those of the command that repeats the run."""
    load = Spread.of([turn.load for case in cases for turn in case.turns])
    rounds, warm_ups = len(cases[0].turns), len(cases[0].warm_ups)
    cores = os.cpu_count()
    lines = [
        "# What does compacting an Iceberg table cost beside Java?",
        "",
        "Small files become one. Java calls `rewrite_data_files` in a Spark of two threads, and "
        "this library calls `compact`. Both start from the same files and end with the same rows; "
        "where they sort, in the same order. After "
        f"{warm_ups} rounds in which Java's compiler warmed up, "
        f"both took turns for {rounds} rounds. Each cell is their median and, in brackets, their "
        "range. The CPU time is that of the calls alone, commits and all threads included. The "
        f"machine's load was {load.median:.1f} ({load.low:.1f}–{load.high:.1f}) on {cores} cores.",
        "",
        "| | MB | ours, CPU s | MB/s a core | Java's first round | Java, CPU s | MB/s a core "
        "| times ours | target |",
        f"{'|---' * 9}|",
        *(case.line() for case in cases),
        "",
        "## Made by",
        "",
        f"    {f'.venv/bin/python -m benchmarks.iceberg_compact_peer {arguments}'.rstrip()}",
        "",
        f"{datetime.now(UTC).date().isoformat()}; {cores} cores, {platform.system()} "
        f"{platform.machine()}; Python {platform.python_version()}, pyarrow {version('pyarrow')}, "
        f"Spark {version('pyspark')}, Iceberg 1.12.0.",
        "",
    ]
    return "\n".join(lines)


def _spread(spread: Spread) -> str:
    return f"{spread.median:.2f} ({spread.low:.2f}–{spread.high:.2f})"
