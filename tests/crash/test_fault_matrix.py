"""The fault matrix is complete, and every test it names is there."""

from __future__ import annotations

import subprocess
import sys
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
    assert [row.number for row in ROWS if row.later and "step" not in row.later] == []


def test_every_row_belongs_to_one_area():
    numbers = [number for area in AREAS.values() for number in area]
    assert numbers == list(range(1, 87 + len(ROWS) - 88))


def test_every_test_that_is_named_is_collected():
    """By pytest itself, which refuses a name it does not find."""
    named = sorted({test for row in ROWS for test in row.tests})
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run([*command, *named], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
