"""A benchmark: a question and its candidates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

__all__ = ["Candidate", "Question"]

Data = TypeVar("Data")
Result = TypeVar("Result")

Candidate = Callable[[Data, Path], Callable[[], Result]]
"""Prepares the work in an empty folder of its own, and returns the work to be timed."""


def _leave(result: object) -> object:
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class Question(Generic[Data, Result]):
    """Candidates that must give equal answers, and how much slower than the baseline they may be.

    Data is made once in each run. The process that measures times opens it, and so does each fresh
    process that measures peak memory, so both read the same bytes.
    """

    sentence: str
    """The question, which the ratios of the report answer."""
    rows: int
    """The number of rows at scale 1."""
    make_data: Callable[[Path, int], None]
    """Writes data for a number of rows into an empty folder; the same number gives the same
    rows.
    """
    open_data: Callable[[Path], Data]
    """Opens the data that ``make_data`` wrote, for every candidate."""
    candidates: Mapping[str, Candidate[Data, Result]]
    baseline: str
    """The candidate with which each other candidate is compared, for example the unavoidable part
    of the work (a floor), or another library (a peer).
    """
    answer: Callable[[Result], object]
    """Returns a value that must be equal (``==``) for all candidates before any is timed."""
    consume: Callable[[Result], object] = _leave
    """Uses the result while the time is measured, for example drains a stream."""
    targets: Mapping[str, float] = field(default_factory=dict)
    """The required ratio of each candidate: the baseline's CPU time divided by the candidate's."""
    controls: frozenset[str] = frozenset()
    """The candidates, besides the baseline, that run no code of the library: if their times in two
    checkouts differ, that is noise."""

    def __post_init__(self) -> None:
        unknown = {self.baseline, *self.targets, *self.controls} - set(self.candidates)
        if unknown:
            raise ValueError(
                "the baseline, targets or controls name unknown candidates: "
                f"{', '.join(sorted(unknown))}. Use the names in candidates"
            )
