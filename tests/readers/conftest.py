"""Each reader in turn."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.json_process import JsonProcess
from tests.own_environment import own_python
from tests.readers.readers import IN_OWN_ENVIRONMENT, Reader, asked, pyiceberg, running_worker


@pytest.fixture(scope="session")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JsonProcess]:
    """One process for all readers with packages of their own."""
    with running_worker(own_python("readers"), tmp_path_factory.getbasetemp()) as worker:
        yield worker


@pytest.fixture(params=["PyIceberg", *IN_OWN_ENVIRONMENT])
def reader(request: pytest.FixtureRequest, tmp_path: Path) -> Reader:
    """A reader of Iceberg tables."""
    if request.param == "PyIceberg":
        return pyiceberg()
    return asked(request.getfixturevalue("worker"), request.param, tmp_path / "rows.arrow")
