"""pypaimon, and one warehouse per test that both sides use."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import lakeformat as lake
from tests.interop.peer import Peer, running_worker
from tests.json_process import JsonProcess

REPOSITORY = Path(__file__).resolve().parents[2]

# What bin/test does before this group: makes .venv-pypaimon, or returns at once when it is there.
# A process of its own, because the scripts in bin/ import one another by bare names.
PREPARE = """
import os, sys
sys.path.insert(0, sys.argv[1])
import environment, packages
pypaimon = environment.pypaimon(environment.ROOT)
try:
    packages.prepare(pypaimon, os.environ)
except environment.SetupError as error:
    print(error)
    sys.exit(2)
print(pypaimon.python)
"""
UNFIT_MACHINE = 2


@pytest.fixture(scope="session")
def worker() -> Iterator[JsonProcess]:
    """One pypaimon process for all tests."""
    with running_worker(_pypaimon_python()) as worker:
        yield worker


@pytest.fixture
def catalog(tmp_path: Path) -> lake.Catalog:
    """Our view of the warehouse, with an empty database ``shop``."""
    catalog = lake.open_catalog(
        str(tmp_path / "warehouse"), options={"external-roots": str(tmp_path)}
    )
    catalog.create_database("shop")
    return catalog


@pytest.fixture
def peer(worker: JsonProcess, tmp_path: Path) -> Peer:
    """pypaimon's view of the same warehouse."""
    exchange = tmp_path / "exchange"
    exchange.mkdir()
    return Peer(worker, tmp_path / "warehouse", exchange)


def _pypaimon_python() -> Path:
    command = [sys.executable, "-B", "-c", PREPARE, str(REPOSITORY / "bin")]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode == UNFIT_MACHINE:
        pytest.skip(f"bin/test interop cannot make pypaimon's environment: {done.stdout.strip()}")
    done.check_returncode()
    return Path(done.stdout.strip())
