"""The map of ARCHITECTURE.md names real files, and each file is short enough to be one concept."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEAD = "| you look for | in `paimon/` | in `iceberg/` |"


def rows() -> list[tuple[str, str, str]]:
    """The topic of each row, its wing and a path in it."""
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    lines = page[page.index(HEAD) :].splitlines()[2:]
    table = lines[: lines.index("")]
    found = []
    for topic, *columns in (line.strip("|").split("|") for line in table):
        for wing, column in zip(("paimon", "iceberg"), columns, strict=True):
            found += [(topic.strip(), wing, path) for path in re.findall(r"`([^`]+)`", column)]
    return found


@pytest.mark.parametrize(("topic", "wing", "path"), rows())
def test_a_place_that_it_names_exists(topic, wing, path):
    assert (ROOT / "lakeformat" / wing / path).exists(), topic


def test_no_module_is_longer_than_400_lines():
    packages = ("lakeformat", "spark_jobs", "airflow_provider_lake", "benchmarks", "dags")
    paths = [path for package in packages for path in (ROOT / package).rglob("*.py")]
    lengths = {str(path.relative_to(ROOT)): path.read_bytes().count(b"\n") for path in paths}
    assert lengths
    assert not {path: lines for path, lines in lengths.items() if lines > 400}
