"""Each private class has its own name, and the name describes the class."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("lakeformat", "spark_jobs", "airflow_provider_lake")
VAGUE = {
    *("_Attempt", "_Data", "_File", "_Files", "_Info", "_Item", "_Place", "_Plan", "_Request"),
    *("_Run", "_Search", "_State", "_Statistics", "_Values", "_Window", "_Work", "_Writer"),
}


def private_classes() -> dict[str, list[str]]:
    """The files that define each private class, by its name."""
    found = defaultdict(list)
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_bytes())):
                if isinstance(node, ast.ClassDef) and node.name.startswith("_"):
                    found[node.name].append(str(path.relative_to(ROOT)))
    return found


def test_no_two_private_classes_share_a_name_and_no_name_is_vague():
    found = private_classes()
    assert found
    assert not {name: files for name, files in found.items() if len(files) > 1}
    assert not {name: found[name] for name in VAGUE & found.keys()}
