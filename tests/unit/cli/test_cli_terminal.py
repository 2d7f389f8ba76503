"""``lake`` where a person looks on and a file or a program gets the output."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pyarrow as pa
import pytest

import lakeformat as lake
from tests.lake_command import lake_ends, lake_on_a_terminal

COMMANDS = {
    "orphans shop.orders": "looking for orphan files",
    "compact-database shop": "planning",
    "analyze shop.orders": "reading",
}


@pytest.fixture
def warehouse(tmp_path) -> str:
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    orders = catalog.create_table(
        "shop.orders", [("id", "BIGINT")], primary_key=["id"], options={"bucket": "1"}
    )
    orders.write(pa.table({"id": [1]}))
    orphan = Path(tmp_path) / "shop.db/orders/bucket-0"
    orphan /= "data-0a1b2c3d-0000-4000-8000-0123456789ab-0.parquet"
    orphan.write_bytes(b"orphan")
    old = time.time() - 3 * 24 * 60 * 60
    os.utime(orphan, (old, old))
    return str(tmp_path)


@pytest.mark.parametrize(("command", "progress"), COMMANDS.items())
def test_progress_is_for_the_terminal_and_the_output_for_the_pipe(warehouse, command, progress):
    piped, seen = lake_on_a_terminal(warehouse, *command.split(), "--json")
    assert json.loads(piped)
    assert progress in seen
    assert '"table"' not in seen
    assert "\x1b" not in piped


def test_without_a_terminal_there_is_neither_progress_nor_colour(warehouse):
    for command in COMMANDS:
        code, output, progress = lake_ends("-w", warehouse, *command.split())
        assert (code, progress) == (0, "")
        assert "\x1b" not in output
