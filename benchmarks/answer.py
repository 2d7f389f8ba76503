"""The measurements of a question's candidates, compared with the baseline."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks.timing import Timing

__all__ = ["Answer", "Spread", "cpu_seconds", "wall_seconds"]

Clock = Callable[[Timing], float]


def wall_seconds(timing: Timing) -> float:
    """Return the wall seconds of a measurement."""
    return timing.wall_seconds


def cpu_seconds(timing: Timing) -> float:
    """Return the CPU seconds of a measurement."""
    return timing.cpu_seconds


@dataclass(frozen=True, slots=True)
class Spread:
    """The median and the extremes of some measurements."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Return the median and the extremes of ``values``."""
        return cls(median(values), min(values), max(values))


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """All measurements of one question at one scale."""

    rows: int
    baseline: str
    timings: Mapping[str, Sequence[Timing]]
    """One timing for each round, by candidate."""
    peak_bytes: Mapping[str, int]

    def seconds(self, candidate: str, clock: Clock) -> Spread:
        """Return the spread of a candidate's seconds over all rounds."""
        return Spread.of([clock(timing) for timing in self.timings[candidate]])

    def ratios(self, candidate: str, clock: Clock) -> list[float]:
        """Return for each round the baseline's time divided by the candidate's, so more is
        better.
        """
        pairs = zip(self.timings[self.baseline], self.timings[candidate], strict=True)
        return [clock(base) / clock(own) for base, own in pairs]
