"""A stream whose runs are interrupted anywhere, again and again, copies a table exactly.

Between its runs rows are added, changed and deleted, and both tables are maintained.
``STREAM_CHAINS`` is the number of chains of runs per kind of table.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from copy import deepcopy
from functools import partial
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lakeformat as lake
from lakeformat.testing import CrashableStorage, Fault, PowerCut
from lakeformat.testing.faults import kinds_for
from spark_jobs.source.read_request import request_of_options
from spark_jobs.source.stream_reader import LakeStreamReader
from spark_jobs.source.writers import LakeStreamWriter, written_as
from tests.expired import missing
from tests.sampling import count
from tests.spark.micro_batches import Checkpoint, Query
from tests.spark.test_stream_faults import COLUMNS, ONE_THREAD, Tables

CHAINS = count(5, 12, "STREAM_CHAINS")
KEYED = {"primary_key": ["id"], "options": {"bucket": "2", "changelog-producer": "input"}}
KINDS = {
    "rows that stay": {},
    "rows that change and go": KEYED,
    "rows that an index places": {**KEYED, "options": {**KEYED["options"], "bucket": "-1"}},
}

ids = st.lists(st.integers(0, 9), min_size=1, max_size=4)
steps = st.one_of(
    st.tuples(st.just("put"), ids),
    st.tuples(st.just("put"), ids),
    st.tuples(st.just("delete"), ids),
    st.tuples(st.just("cut short"), st.integers(0, 10**6)),
    st.tuples(st.just("cut short at publication"), st.integers(0, 10**6)),
    st.tuples(st.sampled_from(["run", "compact", "expire"]), st.none()),
)


class Streamed:
    """Two tables in a storage that can fail, and the stream between them."""

    def __init__(self, kind: str) -> None:
        self.is_keyed = "primary_key" in KINDS[kind]
        self.storage = CrashableStorage()
        self.checkpoint = Checkpoint()
        catalog = Tables(self.storage).catalog
        catalog.create_database("shop")
        wanted = KINDS[kind]
        options = {**wanted.get("options", {}), **ONE_THREAD}
        for name in ("shop.events", "shop.copy"):
            catalog.create_table(name, COLUMNS, **{**wanted, "options": options})
        self.notes = 0

    def table(self, name: str) -> lake.Table:
        return Tables(self.storage).table(f"shop.{name}")

    def put(self, numbers: list[int]) -> None:
        self.notes += 1
        note = [f"{self.notes}"] * len(numbers)
        self.table("events").write(pa.table({"id": pa.array(numbers, pa.int64()), "note": note}))

    def delete(self, numbers: list[int]) -> None:
        if self.is_keyed:
            rows = pa.table({"id": pa.array(numbers, pa.int64()), "note": ["x"] * len(numbers)})
            self.table("events").write(rows, kinds=["-D"] * len(numbers))

    def compact(self, _: None) -> None:
        for name in ("events", "copy"):
            self.table(name).compact(strategy="full")

    def expire(self, _: None) -> None:
        """Expire the copy, and the source once its consumer keeps unread snapshots."""
        for name in ("events", "copy") if self.checkpoint.done else ("copy",):
            with suppress(lake.CorruptTableError):  # a consumer that was cut short
                self.table(name).expire_snapshots(retain_max=1, retain_min=1)

    def run(self, _: None = None) -> None:
        _query(self.storage, self.checkpoint, is_keyed=self.is_keyed).run()

    def cut_short(self, where: int, among: str = "") -> None:
        """A run that meets a fault at any storage call; the power is off afterwards."""
        rehearsal = self.storage.reopened(seed=where)
        _query(rehearsal, deepcopy(self.checkpoint), is_keyed=self.is_keyed).run()
        calls = [each for each in rehearsal.log if among in each.path] or rehearsal.log
        random = Random(where)
        call = random.choice(calls)
        fault = Fault(call.number, random.choice([*kinds_for(call.operation)]))
        broken = self.storage.reopened(fault, seed=where)
        with suppress(PowerCut, lake.LakeError):
            _query(broken, self.checkpoint, is_keyed=self.is_keyed).run()
        self.storage = broken.reopened()

    def cut_short_at_publication(self, where: int) -> None:
        """Faults before and after a commit: a sample of calls, and those that matter."""
        self.cut_short(where, "/copy/snapshot/snapshot-")


def _query(storage: CrashableStorage, checkpoint: Checkpoint, *, is_keyed: bool) -> Query:
    tables = Tables(storage)
    said = {"path": "shop.events", "max-snapshots-per-batch": "2", "consumer-id": "copy"}
    said |= {"rowkind": "true"} if is_keyed else {}
    asked = request_of_options(tables.table("shop.events"), said)
    reader = LakeStreamReader(asked, said, tables, "shop.events", 1)
    to = {"query": "q", **({"kinds": "rowkind"} if is_keyed else {})}
    now = partial(tables.table, "shop.copy")
    writer = LakeStreamWriter(now(), written_as(to, overwrite=False), now)
    return Query(checkpoint, reader, writer)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=CHAINS)
@given(chain=st.lists(steps, min_size=3, max_size=12))
def test_whatever_cuts_its_runs_short_the_copy_is_as_the_table(kind, chain):
    streamed = Streamed(kind)
    streamed.put([1, 2])
    for name, argument in chain:
        getattr(streamed, name.replace(" ", "_"))(argument)
    streamed.run()

    copy, events = (
        Counter(map(str, streamed.table(name).scan().to_arrow().to_pylist()))
        for name in ("copy", "events")
    )
    assert copy == events
    assert missing(streamed.table("copy")) == set()
