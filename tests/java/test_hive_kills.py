"""A writer is killed at each request of its commit to a Hive metastore.

The table is as before or as after the commit, and other programs write it again as soon as the
metastore deletes the lock of the dead process.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from signal import SIGKILL

import pyarrow as pa
import pytest
from hive_metastore.ttypes import ShowLocksRequest
from pyiceberg.catalog.hive import HiveCatalog

from tests.java.hive_metastore import running_metastore
from tests.java.killed_hive_writer import CALLS, TABLE, append, open_catalog

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 3
"""The time after which the metastore deletes the lock of a process that does not answer."""
DEATHS = [
    (number, name, number > 2 * place + 1)
    for place, (_, name) in enumerate(CALLS)
    for number in (2 * place + 1, 2 * place + 2)
]


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    place = tmp_path_factory.mktemp("metastore")
    with running_metastore(place, metastore_txn_timeout=f"{SECONDS}s") as address:
        yield address


def ids(place: tuple[str, str]) -> list[int]:
    found = open_catalog(*place).table(TABLE).scan().to_arrow()
    return sorted(found["id"].to_pylist())


def locks(uri: str) -> int:
    """Return the number of locks of the table in the metastore."""
    database, table = TABLE.split(".")
    with HiveCatalog("test", uri=uri)._create_hive_client({"uri": uri}) as client:
        return len(client.show_locks(ShowLocksRequest(dbname=database, tablename=table)).locks)


def killed_writer(place: tuple[str, str], number: int) -> int:
    command = [sys.executable, "-m", "tests.java.killed_hive_writer", *place, str(number)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


@pytest.mark.parametrize(("number", "call", "is_after"), DEATHS)
def test_a_killed_writer_leaves_the_old_or_the_new_state_and_no_lock_for_ever(
    uri, tmp_path, number, call, is_after
):
    place = (str(tmp_path), uri)
    catalog = open_catalog(*place)
    catalog.create_database("shop", properties={"location": f"file://{tmp_path}/shop"})
    catalog.create_table(TABLE, [("id", "BIGINT")]).write(pa.table({"id": [0]}))

    assert killed_writer(place, number) == -SIGKILL
    assert locks(uri) == (1 if number in range(2, 6) else 0)
    is_published = call == "unlock" or (call.startswith("alter") and is_after)
    assert ids(place) == ([0, 1] if is_published else [0])

    open_catalog(*place).table(TABLE).write(pa.table({"id": [2]}))
    assert locks(uri) == 0
    append(*place)
    assert ids(place) == [0, 1, 2]
    open_catalog(*place).drop_table(TABLE)
    open_catalog(*place).drop_database("shop")
