"""A stream of files dies at any storage call, and resumes: each file is in the table once.

While it is down other writers commit to its table, and all snapshots but the newest expire, unless
a consumer keeps them. Calls are met one in ``STREAM_KILLS_APART`` (1: all of them).
"""

from __future__ import annotations

import json
from contextlib import contextmanager, suppress

import pyarrow as pa

import lakeformat as lake
from lakeformat.storage.local import LocalStorage
from spark_jobs import ingest
from tests.expired import missing
from tests.sampling import SEED, count

APART = count(5, 1, "STREAM_KILLS_APART")
CALLS = (
    "create",
    "delete",
    "exists",
    "list",
    "make_directory",
    "open_input",
    "open_output",
    "overwrite",
    "read",
)


class Killed(BaseException):
    """The process is dead: from here on it makes no storage call."""


@contextmanager
def killed_at(number):
    """Die before or after a storage call. Return True if the run reached that call."""
    met, done = [0], {name: getattr(LocalStorage, name) for name in CALLS}

    def meet():
        met[0] += 1
        if met[0] >= number:
            raise Killed

    def counted(call):
        def counting(*args, **kwargs):
            meet()
            answer = call(*args, **kwargs)
            meet()
            return answer

        return counting

    for name, call in done.items():
        setattr(LocalStorage, name, counted(call))
    try:
        with suppress(Killed):
            yield lambda: met[0] >= number
    finally:
        for name, call in done.items():
            setattr(LocalStorage, name, call)


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
