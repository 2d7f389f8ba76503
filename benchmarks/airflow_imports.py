"""Measures what the provider adds to the import of a DAG file, with each installed version of
Airflow. Each import runs in a fresh process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["CASES", "ImportCost", "import_cost", "import_table", "other_versions"]

MOST_MODULES, MOST_MILLIS = 40, 50
_OURS = "airflow_provider_lake."
_EVERY = "every operator, sensor and decorator"
CASES: Mapping[str, Sequence[str]] = {
    "an operator": ["operators.ingest"],
    "a sensor": ["sensors.snapshot"],
    "a watcher and an asset": ["triggers.snapshot_event", "assets.uri"],
    _EVERY: ["operators.*", "sensors.*", "decorators.lake_job", "decorators.lake_commit"],
}
"""The imports of each kind of DAG file; a star stands for every module of a package."""
_LIMITS = {
    "an operator": f"{MOST_MODULES} modules",
    _EVERY: f"{MOST_MILLIS} ms",
}
_CODE = """
import importlib, json, pkgutil, sys, time
began = time.process_time()
from airflow.sdk import DAG, Asset, BaseHook, BaseOperator, BaseSensorOperator, task
known, loaded = set(sys.modules), time.process_time()
names = []
for name in sys.argv[1:]:
    package, star, _ = name.partition(".*")
    names += [name]
    if star:
        found = pkgutil.iter_modules(importlib.import_module(package).__path__)
        names[-1:] = [f"{package}.{each.name}" for each in found]
for name in names:
    importlib.import_module(name)
ended = time.process_time()
print(json.dumps([len(set(sys.modules) - known), ended - loaded, loaded - began]))
"""


@dataclass(frozen=True, slots=True)
class ImportCost:
    """The cost of an import after ``airflow.sdk``: the number of modules that it adds, and its CPU
    time. For comparison, also the CPU time of importing ``airflow.sdk``.
    """

    modules: int
    millis: float
    sdk_millis: float


def other_versions(root: Path) -> dict[str, str]:
    """Return the paths of the Python interpreters in the environments that ``bin/test compat`` has
    set up. The keys are the Airflow versions of these environments; ``root`` is the project's
    folder.
    """
    ask = "from importlib.metadata import version; print(version('apache-airflow'))"
    pythons = [str(path) for path in sorted(root.glob(".venv-airflow-*/bin/python"))]
    return {subprocess.check_output([each, "-c", ask], text=True).strip(): each for each in pythons}


def import_cost(modules: Sequence[str], rounds: int, python: str = sys.executable) -> ImportCost:
    """Return the cost of importing ``modules`` after ``airflow.sdk``; each time is the smallest of
    ``rounds`` measurements.
    """
    command = [python, "-W", "ignore", "-c", _CODE, *(_OURS + each for each in modules)]
    # An installed package has bytecode.
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    found = []
    for _ in range(rounds):
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        found.append(json.loads(done.stdout.splitlines()[-1]))
    counts, ours, sdk = zip(*found, strict=True)
    return ImportCost(max(counts), 1000 * min(ours), 1000 * min(sdk))


def import_table(
    rounds: int, cases: Mapping[str, Sequence[str]] = CASES, python: str = sys.executable
) -> Iterator[str]:
    """Measure the imports of ``cases``, and yield the lines of a table with the results.

    ``python`` is the interpreter that imports them, with its Airflow.
    """
    yield "| a DAG file with | modules | CPU ms | CPU ms / CPU ms of `airflow.sdk` | at most |"
    yield "|---|---|---|---|---|"
    for name, modules in cases.items():
        cost = import_cost(modules, rounds, python)
        part = cost.millis / cost.sdk_millis
        limit = _LIMITS.get(name, "")
        yield f"| {name} | {cost.modules} | {cost.millis:.0f} | {part:.0%} | {limit} |"
