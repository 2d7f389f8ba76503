"""Shared by all groups: markers by folder, and a private home for the tools they start."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Generator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import core, settings
from typer import testing

from tests.postgres_server import postgres
from tests.quick_java import quick_java
from tests.sampling import IS_WHOLE, SEED, count, sampled_items

__all__ = ["postgres", "quick_java"]

TESTS = Path(__file__).resolve().parent

# On a shared machine a deadline says more about the machine than about the code.
settings.register_profile(
    "lake", deadline=None, derandomize=False, max_examples=count(6, whole=100)
)
settings.load_profile("lake")
core.global_force_seed = SEED

# Building all commands of `lake` takes longer than most calls of one.
testing._get_command = cache(testing._get_command)


def pytest_configure(config: pytest.Config) -> None:
    """Give Airflow, Spark and Matplotlib a home of this run's own before a test imports them."""
    home = tempfile.mkdtemp(prefix="lake-home-")
    config.add_cleanup(lambda: shutil.rmtree(home, ignore_errors=True))
    os.environ["AIRFLOW_HOME"] = home
    os.environ["MPLBACKEND"] = "agg"
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    java = Path(sys.prefix, "java")
    if java.is_dir():
        os.environ.setdefault("JAVA_HOME", str(java))
    if not IS_WHOLE:
        # Only a power cut shows if a disk has taken the bytes, and tests of power cuts have a
        # storage in memory. The wait took a fifth of the time of many groups.
        os.fsync = lambda descriptor: None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how to run the same sample again."""
    how = "run whole" if IS_WHOLE else "sampled"
    terminalreporter.write_line(f"{how} with SEED={SEED}, which repeats this run")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Sample the cases of long tables, and mark each test with its group, the folder it lies in."""
    kept = sampled_items(items)
    if left_out := set(items).difference(kept):
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = kept
    for item in items:
        inside = item.path.relative_to(TESTS).parts if item.path.is_relative_to(TESTS) else ()
        if len(inside) > 1:
            item.add_marker(inside[0])


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Let the garbage collector look at what tests make, not at all modules again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.set_threshold(20_000, 20, 20)
        gc.enable()
