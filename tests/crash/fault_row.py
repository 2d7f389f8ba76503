"""One fault a table has to survive."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One fault."""

    number: str
    fault: str
    truth: str
    """What must hold afterwards."""
    tests: tuple[str, ...] = ()
    """Tests that show it, as ``bin/test`` takes them after ``--``."""
    later: str = ""
    """What is not shown yet, why, and the step that brings it."""
