"""The map names real files, modules are short, and private classes have names of their own."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("lakeformat", "spark_jobs", "airflow_provider_lake")
VAGUE = {
    *("_Attempt", "_Data", "_File", "_Files", "_Info", "_Item", "_Place", "_Plan", "_Request"),
    *("_Run", "_Search", "_State", "_Statistics", "_Values", "_Window", "_Work", "_Writer"),
}
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
    paths = [
        path
        for package in (*PACKAGES, "benchmarks", "dags")
        for path in (ROOT / package).rglob("*.py")
    ]
    lengths = {str(path.relative_to(ROOT)): path.read_bytes().count(b"\n") for path in paths}
    assert lengths
    assert not {path: lines for path, lines in lengths.items() if lines > 400}


def private_classes() -> dict[str, list[str]]:
    """The files that define each private class, by its name."""
    found = defaultdict(list)
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            for name in re.findall(r"^\s*class (_\w+)", path.read_text("utf-8"), re.MULTILINE):
                found[name].append(str(path.relative_to(ROOT)))
    return found


def test_no_two_private_classes_share_a_name_and_no_name_is_vague():
    found = private_classes()
    assert found
    assert not {name: files for name, files in found.items() if len(files) > 1}
    assert not {name: found[name] for name in VAGUE & found.keys()}
