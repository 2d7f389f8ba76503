"""Readers that follow a Mixed table, and removals of its orphan files, die at every call."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.iceberg.orphans.remove import OrphanOptions, find_orphans
from lakeformat.mixed.table import MixedTable
from lakeformat.tables.position import Position
from lakeformat.tables.stream import StreamedChanges
from lakeformat.testing import CrashableStorage
from tests.crash.simulated import NOW_MILLIS
from tests.crash.test_mixed_writes import COLUMNS, merged, new_pair, table_in
from tests.sampling import sampled_states

SAMPLED = pytest.mark.sampled(1, among="followers of Mixed tables")
DAY = 24 * 60 * 60 * 1000
Mirror = dict[int, str]


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    """Each run makes its calls in one order."""
    monkeypatch.setattr("lakeformat.tables.parallel._PER_PROCESSOR", 1)
    monkeypatch.setattr("os.cpu_count", lambda: 1)


def opened(storage: CrashableStorage, days: int = 0) -> MixedTable:
    """The table as a new process sees it some days later."""
    pair = table_in(storage)._pair
    now = pair.base.environment.now_millis() + days * DAY
    world = replace(pair.base.environment, now_millis=lambda: now)
    return MixedTable(replace(pair, base=replace(pair.base, environment=world)))


def write(storage: CrashableStorage, changes: dict[int, str | None]) -> None:
    values = pa.array(changes.values(), pa.string())
    kinds = ["-D" if value is None else "+U" for value in changes.values()]
    opened(storage).write(pa.table([[*changes], values], schema=COLUMNS), kinds=kinds)


# ------------------------------------------------------- consumers


Read = tuple[Position | None, Mirror]
"""The progress that the reader stores: a position, and its rows there."""


def followed() -> tuple[CrashableStorage, Read]:
    """A table with a consumer that has read the first commit, two more commits, and a merge."""
    storage = new_pair()
    write(storage, {1: "a", 2: "a", 3: "a"})
    stream = opened(storage).stream(consumer="mirror")
    assert [each.is_full for each in stream] == [True]
    stream.acknowledge()
    write(storage, {1: "b", 2: None})
    opened(storage).compact(strategy="full", executor="serial")
    write(storage, {2: "c", 3: None})
    return storage, (stream.position, {1: "a", 2: "a", 3: "a"})


def apply(mirror: Mirror, changes: StreamedChanges) -> Mirror:
    after = dict(mirror)
    for row in changes.to_arrow().to_pylist():
        if row["rowkind"][0] == "+":
            after[row["id"]] = row["v"]
        else:
            after.pop(row["id"], None)
    return after


def restart(storage: CrashableStorage, read: Read) -> None:
    """Do what the error advises if the process died while it wrote the file of the consumer."""
    try:
        [state] = opened(storage).consumers.list()
        assert not state.is_stale, "changes have expired that the reader needs"
    except lake.CorruptTableError as damaged:
        if "consumer-mirror (0 bytes)" not in str(damaged):
            raise
        opened(storage).consumers.set("mirror", after=read[0])


@SAMPLED
def test_a_reader_that_dies_misses_no_commit_and_its_consumer_keeps_what_it_has_not_read():
    start, first = followed()

    def follow(storage: CrashableStorage, read: list[Read]) -> None:
        """Apply each commit to the rows of the reader, which it stores; then the expiry runs."""
        stream = opened(storage).stream(consumer="mirror")
        for changes in stream:
            assert not changes.is_full
            read.append((changes.position, apply((read or [first])[-1][1], changes)))
            stream.acknowledge()
            opened(storage, days=30).expire_snapshots(older_than="1 h")

    for trial in sampled_states(follow, start=start):
        recovered, read = trial.reopened(), trial.acknowledged
        assert merged(opened(recovered)) == {1: "b", 2: "c"}, str(trial)
        restart(recovered, (read or [first])[-1])
        follow(recovered, read)
        assert (read or [first])[-1][1] == {1: "b", 2: "c"}, str(trial)
        assert [each.id for each in opened(recovered).consumers.list()] == ["mirror"], str(trial)


# ------------------------------------------------------- orphan files


ORPHANS = [
    f"{store}/{place}"
    for store in ("t", "c")
    for place in ("data/lost.parquet", "metadata/lost-m0.avro")
]


def with_orphans() -> CrashableStorage:
    """A table with rows in both stores, with files of writes that died, and with a neighbour."""
    storage = new_pair()
    storage._clock = storage._disk._clock = lambda: NOW_MILLIS
    write(storage, {1: "a", 2: "a", 3: "a"})
    opened(storage).compact(strategy="full", executor="serial")
    write(storage, {1: "b", 2: None})
    writer = opened(storage).new_writer()
    writer.write(pa.table([[9], ["lost"]], schema=COLUMNS))
    writer.prepare()
    for path in (*ORPHANS, "t2/data/kept.parquet", "c2/metadata/v1.metadata.json"):
        storage.overwrite(path, b"lost")
    return storage


def remove(storage: CrashableStorage, acknowledged: list[int]) -> None:
    report = opened(storage, days=3).remove_orphans("1 d", dry_run=False, max_share=1)
    acknowledged.append(report.removed_files)


def orphans(storage: CrashableStorage) -> set[str]:
    """Return the files that no metadata names, of any age."""
    table, options = opened(storage, days=9), OrphanOptions(older_than="1 d", max_share=1)
    change = replace(table._pair.base, pointer=table._pair.change)
    found = [
        find_orphans(handle, options, dry_run=True, beside=[other])
        for handle, other in ((change, table._pair.base), (table._pair.base, change))
    ]
    return {each.path for search in found for each in search.orphans}


@SAMPLED
def test_a_removal_of_orphans_that_dies_deletes_no_needed_file_and_the_next_one_the_rest():
    start = with_orphans()
    there, lost = {*start.files()}, orphans(start)
    assert lost > {*ORPHANS}
    for trial in sampled_states(remove, start=start):
        recovered = trial.reopened()
        assert there - lost <= {*recovered.files()}, str(trial)
        assert merged(opened(recovered)) == {1: "b", 3: "a"}, str(trial)
        base = opened(recovered).base.scan().to_arrow()
        assert sorted(base["id"].to_pylist()) == [1, 2, 3], str(trial)
        remove(recovered, [])
        assert {*recovered.files()} == there - lost, str(trial)
        assert merged(opened(recovered)) == {1: "b", 3: "a"}, str(trial)
