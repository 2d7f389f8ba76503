"""The table that a streaming writer of another engine leaves behind when it dies."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from shutil import copytree
from tempfile import TemporaryDirectory

import pyarrow as pa

import lakeformat as lake
from lakeformat.paimon.table import Table

__all__ = ["BUCKETS", "DAY", "MANY_COMMITS", "crashed_table"]

MANY_COMMITS = int(os.environ.get("CRASHED_COMMITS", "20"))
"""500, with 6 buckets, make the 3,000 level-0 files of a real one, in a minute or two."""

BUCKETS = int(os.environ.get("CRASHED_BUCKETS", "3"))
DAY, HOUR = 86_400_000, 3_600_000
_WRITTEN = TemporaryDirectory(prefix="lake-crashed-writer-")
"""Copies of the tables that this process has written."""
_COLUMNS = [("id", "BIGINT NOT NULL"), ("name", "STRING"), ("updated", "BIGINT")]


def crashed_table(
    catalog: lake.Catalog,
    *,
    commits: int = 50,
    dead_files: int = 30,
    consumer: str | None = "dashboard",
    options: Mapping[str, str] | None = None,
) -> Table:
    """``shop.orders``: a level-0 file per bucket and commit, all of them two days old.

    The writer has died within a checkpoint three days ago, which left files without a commit; a
    consumer stands at the third snapshot and does not move.
    """
    named = {"bucket": str(BUCKETS), "write-only": "true", **(options or {})}
    made = catalog.create_table("shop.orders", _COLUMNS, primary_key=["id"], options=named)
    then = int(time.time() * 1000) - 2 * DAY
    root = Path(made.location.removeprefix("file://"))
    written = Path(_WRITTEN.name, str(abs(hash((commits, *sorted(named.items()))))))
    if not written.exists():
        _write(_at(made, then), commits)
        copytree(root, written)
    copytree(written, root, dirs_exist_ok=True)
    made = catalog.table("shop.orders")
    _leave_dead_files(root, dead_files, then - DAY - HOUR)
    if consumer is not None:
        made.consumers.set(consumer, next_snapshot=min(3, commits))
        os.utime(root / "consumer" / f"consumer-{consumer}", (then / 1000, then / 1000))
    return made


def _write(table: Table, commits: int) -> None:
    for number in range(commits):
        ids = [(number * 7 + key * 13) % 2_000 for key in range(60)]
        rows = {"id": ids, "name": [f"name {each}" for each in ids], "updated": [number] * 60}
        table.write(pa.table(rows))


def _at(table: Table, millis: int) -> Table:
    """The same table where it is always that time."""
    handle = table._handle
    environment = replace(handle.environment, now_millis=lambda: millis)
    return Table(replace(handle, environment=environment))


def _leave_dead_files(root: Path, count: int, millis: int) -> None:
    there = sorted(root.glob("bucket-*/data-*"))
    for number in range(count):
        live = there[number % len(there)]
        dead = live.with_name(f"data-{number:08x}-0000-0000-0000-000000000000-0{live.suffix}")
        dead.write_bytes(live.read_bytes())
        os.utime(dead, (millis / 1000, millis / 1000))
