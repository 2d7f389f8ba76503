# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests of Iceberg tables."""

import pytest

from lakeformat.storage import MemoryStorage
from tests.crash.simulated import Clock


@pytest.fixture
def clock() -> Clock:
    """The time of a test that changes it."""
    return Clock()


@pytest.fixture
def storage():
    """An empty storage in memory, at memory://t."""
    return MemoryStorage("t")
