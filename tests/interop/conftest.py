"""pypaimon, and one warehouse per test that both sides use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import lakeformat as lake
from tests.interop.peer import Peer, running_worker
from tests.json_process import JsonProcess
from tests.own_environment import own_python


@pytest.fixture(scope="session")
def worker() -> Iterator[JsonProcess]:
    """One pypaimon process for all tests."""
    with running_worker(own_python("interop")) as worker:
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
