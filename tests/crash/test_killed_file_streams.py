"""A stream of files dies at any storage call, and resumes: each file is in the table once.

While it is down other writers commit to its table, and all snapshots but the newest expire, unless
a consumer keeps them. Calls are met one in ``STREAM_KILLS_APART`` (1: all of them).
"""

from __future__ import annotations

import json
from contextlib import suppress

import pyarrow as pa

import lakeformat as lake
from spark_jobs import ingest
from tests.crash.killed_process import killed_at
from tests.expired import missing
from tests.sampling import SEED, count

APART = count(5, 1, "STREAM_KILLS_APART")


def drop(place, *numbers):
    for number in numbers:
        (place / f"{number}.jsonl").write_text(json.dumps({"id": number}) + "\n")


def others_commit_and_expire(wanted, number):
    with suppress(lake.NotFoundError):
        table = lake.open_catalog(wanted["warehouse"]).table("shop.orders")
        table.write(pa.table({"id": [number]}))
        with suppress(lake.CorruptTableError):  # a consumer that was cut short
            table.expire_snapshots(retain_max=1, retain_min=1)
        return [number]
    return []


def test_a_stream_of_files_that_dies_anywhere_takes_each_file_once(tmp_path):
    number, was_killed = 1 + SEED % APART, True
    while was_killed:
        place = tmp_path / str(number)
        (place / "incoming").mkdir(parents=True)
        wanted = {
            "warehouse": str(place / "warehouse"),
            "table": "shop.orders",
            "source": str(place / "incoming" / "*.jsonl"),
            "checkpoint": str(place / "checkpoint"),
            "files_per_batch": 1,
            "create": True,
        }
        drop(place / "incoming", 1, 2)
        with killed_at(number) as came_so_far:
            ingest.run(wanted)
        was_killed = came_so_far()
        others = others_commit_and_expire(wanted, 100)
        drop(place / "incoming", 3)
        ingest.run(wanted)

        table = lake.open_catalog(wanted["warehouse"]).table("shop.orders")
        found = sorted(table.scan().to_arrow()["id"].to_pylist())
        assert found == [1, 2, 3, *others], f"killed at {number}"
        assert table.consumers.list() == []
        assert missing(table) == set()
        number += APART
