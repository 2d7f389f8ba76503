"""The released Java Paimon, and one warehouse per test that both sides use."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import lakeformat as lake
from tests.java.peer_process import JavaPeer, running_java
from tests.json_process import JsonProcess

MAKE_PEER = Path(__file__).resolve().parents[2] / "bin" / "javapeer.py"
UNFIT_MACHINE = 2


@pytest.fixture(scope="session")
def java_start() -> dict[str, str]:
    """The ``java`` and the ``classpath`` of the peer."""
    return java_program("peer")


def java_program(name: str) -> dict[str, str]:
    """Build a program of this folder and return its ``java`` and its ``classpath``."""
    # A process of its own, because the scripts in bin/ import one another by bare names.
    command = [sys.executable, "-B", str(MAKE_PEER), name]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode == UNFIT_MACHINE:
        pytest.skip(done.stdout.strip())
    done.check_returncode()
    start: dict[str, str] = json.loads(done.stdout)
    return start


@pytest.fixture(scope="session")
def java(
    java_start: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[JsonProcess]:
    """One JVM for all tests."""
    scratch = tmp_path_factory.mktemp("java")
    with running_java(**java_start, scratch=scratch) as process:
        yield process


@pytest.fixture
def catalog(tmp_path: Path) -> lake.Catalog:
    """Our view of the warehouse, with an empty database ``shop``."""
    catalog = lake.open_catalog(
        str(tmp_path / "warehouse"), options={"external-roots": str(tmp_path)}
    )
    catalog.create_database("shop")
    return catalog


@pytest.fixture
def peer(java: JsonProcess, tmp_path: Path) -> JavaPeer:
    """Java's view of the same warehouse."""
    return JavaPeer(java, tmp_path / "warehouse")
