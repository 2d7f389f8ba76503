"""The pages about what is proven name tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/iceberg-proofs.md"
OF_MIXED = ROOT / "docs/mixed-proofs.md"


@pytest.mark.parametrize("page", [PAGE, OF_MIXED])
def test_every_named_test_exists(page):
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", page.read_text())
    assert len(named) > 20
    missing = [
        f"{path}::{name}"
        for path, name in named
        if not (ROOT / path).is_file() or f"def {name}(" not in (ROOT / path).read_text()
    ]
    assert missing == []


def test_every_promise_of_the_specification_has_a_test():
    rows = re.findall(r"^\| (I\d+) \|.*`tests/", PAGE.read_text(), re.MULTILINE)
    assert rows == [f"I{number}" for number in range(1, 14)]


def test_every_expectation_of_mixed_tables_has_a_test_or_is_absent():
    rows = re.findall(
        r"^\| (X\d+) \|.*(?:`tests/| absent[;,. ])", OF_MIXED.read_text(), re.MULTILINE
    )
    assert rows == [f"X{number}" for number in range(1, 16)]
