"""The nearest name ends a message: nothing follows its question mark."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lakeformat.types.closest import closest

PROJECT = Path(__file__).parents[3]
PACKAGES = ("lakeformat", "spark_jobs", "airflow_provider_lake")
FOLLOWED = re.compile(r"\{closest\([^\n]*\)\}[^\"}\s]")


def test_the_most_similar_name_is_offered_in_any_letter_case():
    assert closest("Amunt", ["id", "amount"]) == "; did you mean 'amount'?"
    assert closest("x", ["id", "amount"]) == ""


@pytest.mark.parametrize("package", PACKAGES)
def test_no_message_goes_on_after_the_question_mark(package):
    found = [
        f"{path.relative_to(PROJECT)}: {line.strip()}"
        for path in sorted((PROJECT / package).rglob("*.py"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if FOLLOWED.search(line)
    ]
    assert found == []
