"""A stream from a table into a table crashes anywhere, and resumes from its checkpoint.

After every crash the target has exactly the rows of the source: no duplicate, no gap. Faults
at storage calls are sampled.
"""

from __future__ import annotations

import itertools
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.catalog import FileSystemCatalog
from lakeformat.environment import Environment
from lakeformat.testing import CrashableStorage, PowerCut
from spark_jobs.source.read_request import request_of_options
from spark_jobs.source.stream_reader import LakeStreamReader
from spark_jobs.source.writers import LakeStreamWriter, written_as
from tests.expired import missing
from tests.sampling import sampled_faults
from tests.spark.micro_batches import Checkpoint, Query

COLUMNS = [("id", "BIGINT"), ("note", "STRING")]
ONE_THREAD = {"file-operation.thread-num": "1"}
_names = itertools.count(1)

STREAMS = {
    "all at once": {},
    "one snapshot at a time": {"max-snapshots-per-batch": "1"},
    "from the first": {"scan.mode": "from-snapshot", "scan.snapshot-id": "1"},
    "with a consumer": {"consumer-id": "copy"},
}
TARGETS = {
    "append": {},
    "keyed": {"primary_key": ["id"], "options": {"bucket": "1"}},
}


@dataclass(frozen=True)
class Tables:
    """Opened anew as often as a stream asks for them."""

    storage: CrashableStorage

    @property
    def catalog(self):
        names, first = itertools.count(), next(_names)
        environment = Environment(
            now_millis=lambda: 1_700_000_000_000,
            new_id=lambda: f"{first:08d}-{next(names):04d}",
            sleep_seconds=lambda seconds: None,
            random_fraction=lambda: 0.5,
        )
        return FileSystemCatalog(self.storage, "wh", environment)

    def table(self, name):
        return self.catalog.table(name)

    table_of_any_format = table


def add(storage, *numbers):
    for number in numbers:
        rows = pa.table({"id": pa.array([number, number + 50], pa.int64()), "note": ["a", "b"]})
        Tables(storage).table("shop.events").write(rows)


def filled(target) -> CrashableStorage:
    storage = CrashableStorage()
    catalog = Tables(storage).catalog
    catalog.create_database("shop")
    catalog.create_table("shop.events", COLUMNS, options=ONE_THREAD)
    more = {**target, "options": {**target.get("options", {}), **ONE_THREAD}}
    catalog.create_table("shop.copy", COLUMNS, **more)
    add(storage, 1, 2)
    return storage


def query(storage, checkpoint, stream, before_step=lambda step: None) -> Query:
    tables = Tables(storage)
    said = {"path": "shop.events", **stream}
    asked = request_of_options(tables.table("shop.events"), said)
    reader = LakeStreamReader(asked, said, tables, "shop.events", 1)
    now = partial(tables.table, "shop.copy")
    writer = LakeStreamWriter(now(), written_as({"query": "q"}, overwrite=False), now)
    return Query(checkpoint, reader, writer, before_step)


def expire(storage):
    """Another writer commits to the target, and then only its snapshot is left."""
    with suppress(lake.CorruptTableError):  # a consumer that was cut short
        copied = Tables(storage).table("shop.copy")
        if copied.analyze().snapshot_id is not None:
            copied.expire_snapshots(retain_max=1, retain_min=1)


def astray(storage):
    """Rows that are there and should not be, rows that are not there and should be, lost files."""
    tables = Tables(storage)
    there, wanted = (
        Counter(map(str, tables.table(name).scan().to_arrow().to_pylist()))
        for name in ("shop.copy", "shop.events")
    )
    lost = missing(tables.table("shop.copy"))
    return [*(there - wanted).elements()], [*(wanted - there).elements()], [*lost]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("stream", STREAMS)
def test_a_fault_at_any_storage_call_costs_no_row_and_makes_none_twice(stream, target):
    start, options = filled(TARGETS[target]), STREAMS[stream]

    def act(storage, kept):
        kept.append(Checkpoint())
        query(storage, kept[0], options).run()

    for trial in sampled_faults(act, start=start):
        storage = trial.run().reopened()
        add(storage, 3, 4)  # it goes on while the stream is down
        expire(storage)
        query(storage, trial.acknowledged[0], options).run()
        assert astray(storage) == ([], [], []), str(trial)
        add(storage, 5)
        query(storage, trial.acknowledged[0], options).run()
        assert astray(storage) == ([], [], []), str(trial)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("stream", STREAMS)
def test_a_query_that_ends_between_any_two_of_its_steps_goes_on(stream, target):
    for killed_at in itertools.count(1):
        storage, checkpoint = filled(TARGETS[target]), Checkpoint()
        steps = iter(range(1, killed_at))

        def meet(step, steps=steps):
            if next(steps, None) is None:
                raise PowerCut(step)

        ended = True
        try:
            query(storage, checkpoint, STREAMS[stream], meet).run()
        except PowerCut:
            ended = False
        add(storage, 3)  # the source goes on, and the restart dies at its first step, too
        expire(storage)
        with suppress(PowerCut):
            query(storage, checkpoint, STREAMS[stream], die).run()
        add(storage, 4)
        expire(storage)
        query(storage, checkpoint, STREAMS[stream]).run()
        assert astray(storage) == ([], [], []), f"killed at step {killed_at}"
        if ended:
            return


def die(step):
    raise PowerCut(step)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_rollback_before_the_end_of_a_batch_is_reported_by_its_commit(count):
    storage = filled({})
    reader = query(storage, Checkpoint(), STREAMS["with a consumer"]).reader
    end = reader.latestOffset()
    reader.partitions(reader.initialOffset(), end)
    Tables(storage).table("shop.events").rollback(snapshot=1, as_latest=False)
    add(storage, *range(count))
    with pytest.raises(lake.NotFoundError, match=r"up to snapshot 2, but .* rolled back"):
        reader.commit(end)
