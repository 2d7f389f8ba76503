"""The faults that a table must survive, with the required outcome and the tests of each.

Numbers up to 86 are those of the specification's fault matrix. ``docs/generate.py`` makes a page.
"""

from __future__ import annotations

from tests.crash import (
    faults_beyond,
    faults_of_commits,
    faults_of_maintenance,
    faults_of_mixed_tables,
)
from tests.crash.fault_row import Row

__all__ = ["AREAS", "ROWS", "page", "rows_of_the_specification"]

ROWS = (
    *faults_of_commits.ROWS,
    *faults_of_maintenance.ROWS,
    *faults_beyond.ROWS,
    *faults_of_mixed_tables.ROWS,
)

AREAS = {
    "Writing and committing": range(1, 16),
    "The outcome of a publication": range(16, 31),
    "Conflicts": range(31, 45),
    "Recovery": range(45, 50),
    "Expiry, tags, branches, readers": range(50, 67),
    "Other maintenance": range(67, 87),
    "Staged results, streams, ingestion, batches": range(87, 100),
    "Mixed tables": range(100, 116),
}


def rows_of_the_specification() -> list[str]:
    """Return every number; 66 follows 66a and 66b."""
    numbers = [str(number) for number in range(1, 87)]
    numbers[65:65] = ["66a", "66b"]
    return numbers


def page() -> str:
    """Return the matrix as Markdown, without faults that need code that this library lacks."""
    text = []
    for area, numbers in AREAS.items():
        text += ["", f"## {area}", "", "| fault | required outcome |", "|---|---|"]
        inside = [row for row in ROWS if _number(row) in numbers and not row.later]
        # A letter follows its number.
        text += [_line(row) for row in sorted(inside, key=lambda row: (_number(row), row.number))]
    return "\n".join(text[1:]) + "\n"


def _number(row: Row) -> int:
    return int(row.number.rstrip("ab"))


def _line(row: Row) -> str:
    return f"| {row.number}: {row.fault} | {row.truth} |"
