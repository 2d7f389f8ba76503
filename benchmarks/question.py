"""One benchmark: its question and its candidates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

__all__ = ["Candidate", "Question"]

Data = TypeVar("Data")
Result = TypeVar("Result")

Candidate = Callable[[Data, Path], Callable[[], Result]]
"""Gets ready, in an empty folder of its own, and returns the work to be timed."""


def _leave(result: object) -> object:
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class Question(Generic[Data, Result]):
    """Candidates that must give equal answers, and how much slower than the baseline they may be.

    Data is made once per run; it is opened in the process that times and in each fresh process
    that measures peak memory, so both meet the same bytes.
    """

    sentence: str
    """The question, answered by the ratios of its report."""
    rows: int
    """Rows at scale 1; a rate per second is reported of them."""
    make_data: Callable[[Path, int], None]
    """Writes the data for a number of rows into an empty folder; same rows, same data."""
    open_data: Callable[[Path], Data]
    """Opens what ``make_data`` wrote, as every candidate gets it."""
    candidates: Mapping[str, Candidate[Data, Result]]
    baseline: str
    """The candidate, a floor or a peer, whose time every other one is compared with."""
    answer: Callable[[Result], object]
    """The value that must be equal (``==``) for all candidates before a time counts."""
    consume: Callable[[Result], object] = _leave
    """The timed use of the result: a stream is drained here."""
    targets: Mapping[str, float] = field(default_factory=dict)
    """By candidate: the baseline's CPU time divided by its own is to reach this."""

    def __post_init__(self) -> None:
        unknown = {self.baseline, *self.targets} - set(self.candidates)
        if unknown:
            raise ValueError(f"not among the candidates: {', '.join(sorted(unknown))}")
