"""The page about error messages quotes messages that the code has."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import lakeformat as lake

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text()
PACKAGES = ("lakeformat", "spark_jobs", "airflow_provider_lake")
VALUE = "…"

QUOTED = re.findall(r"^\| `([^`]+)` \|.*\|.*\|$", PAGE, re.MULTILINE)
ERRORS = {
    name
    for row in re.findall(r"^\| (`\w+Error`.*?) \|", PAGE, re.M)
    for name in re.findall(r"\w+", row)
}


@cache
def messages() -> str:
    """Return every text of the packages in a line of its own, with a mark for each value."""
    files = [file for package in PACKAGES for file in sorted((ROOT / package).rglob("*.py"))]
    return "\n".join(text for file in files for text in texts(ast.parse(file.read_text())))


def texts(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [str(p.value) if isinstance(p, ast.Constant) else VALUE for p in node.values]
            yield "".join(parts).replace("\n", " ")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value.replace("\n", " ")


@pytest.mark.parametrize("quoted", QUOTED)
def test_a_quoted_message_is_in_the_code(quoted):
    parts = [re.escape(part.strip()) for part in quoted.split(VALUE)]
    assert re.search(".*".join(parts), messages()), "reword the page as the message"


def test_the_page_quotes_thirty_messages_or_more():
    assert len(QUOTED) >= 30


def test_every_error_of_the_library_has_an_answer():
    ours = {name for name in lake.__all__ if name.endswith("Error")} - {"LakeError"}
    assert ours - ERRORS == set()
