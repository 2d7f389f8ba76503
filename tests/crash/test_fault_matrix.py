"""The fault matrix is complete, and every test it names is there."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from tests.crash.fault_matrix import AREAS, ROWS, page, rows_of_the_specification

ROOT = Path(__file__).resolve().parents[2]


def test_every_row_of_the_specification_is_there_once_and_in_its_order():
    specified = rows_of_the_specification()
    assert len(specified) == 88
    assert [row.number for row in ROWS[:88]] == specified
    assert [row.number for row in ROWS[88:]] == [str(87 + n) for n in range(len(ROWS) - 88)]


def test_every_row_is_shown_by_a_test_or_says_what_it_waits_for():
    print(page())
    assert [row.number for row in ROWS if not (row.tests or row.later)] == []
    assert [row.number for row in ROWS if row.later and ", so " not in row.later] == []


def test_every_row_belongs_to_one_area():
    numbers = [number for area in AREAS.values() for number in area]
    assert numbers == list(range(1, 87 + len(ROWS) - 88))


def test_every_test_that_is_named_is_there():
    """Read in the files, because collecting all of them takes seconds."""
    missing = [
        test
        for test in sorted({test for row in ROWS for test in row.tests})
        if test.partition("::")[2] not in names_in(test.partition("::")[0])
    ]
    assert missing == []


@cache
def names_in(file: str) -> set[str]:
    """Return the names of the tests of a file, those of a class behind its name."""
    found = set()
    for node in ast.parse((ROOT / file).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef):
            inside = [each for each in node.body if isinstance(each, ast.FunctionDef)]
            found |= {f"{node.name}::{each.name}" for each in inside}
        elif isinstance(node, ast.FunctionDef):
            found.add(node.name)
    return {name for name in found if name.rpartition("::")[2].startswith("test_")}
