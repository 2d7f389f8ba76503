"""Generated pages match the code, and every page has a place on the site."""

from __future__ import annotations

import importlib.util
import re
from functools import cache
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


@cache
def generated_pages() -> dict[str, str]:
    spec = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.pages()


PAGES = (
    "reference/catalog-options.md",
    "reference/options.md",
    "reference/options-of-other-engines.md",
    "reference/command-line.md",
    "reference/procedures.md",
    "reference/spark-options.md",
    "fault-matrix.md",
    "jobs.md",
    "licences.md",
    "reference/api.md",
    "reference/api-spark.md",
    "reference/api-airflow.md",
    "../provider.yaml",
)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_the_code_generates(name):
    on_disk = (DOCS / name).read_text()
    assert on_disk == generated_pages()[name], "run: .venv/bin/python docs/generate.py"


def test_every_generated_page_is_compared_here():
    assert set(generated_pages()) == set(PAGES)


def test_every_page_has_a_place_in_the_navigation_of_the_site():
    navigation = (DOCS.parent / "mkdocs.yml").read_text()
    listed = re.findall(r"[\w./-]+\.md$", navigation, re.MULTILINE)
    pages = [path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")]
    assert sorted(listed) == sorted(pages), "add the page to the nav of mkdocs.yml"
