"""One fault that a table must survive."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One fault."""

    number: str
    fault: str
    truth: str
    """The required outcome."""
    tests: tuple[str, ...] = ()
    """Tests of the outcome, as ``bin/test`` takes them after ``--``."""
    later: str = ""
    """The part without a test, and the reason."""
