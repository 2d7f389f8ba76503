"""Compactions die at every storage call, and meet every other commit: no row changes."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from random import Random

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.catalog import FileSystemCatalog
from lakeformat.errors import CommitOutcomeUnknownError
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.snapshot import CommitKind
from lakeformat.paimon.read.plan import plan_files
from lakeformat.paimon.table import load_table
from lakeformat.storage import MemoryStorage
from lakeformat.testing import CrashableStorage
from tests.crash import append_actors, keyed_actors
from tests.crash.interleaved import Background, Expirer, World
from tests.crash.interrupted import Interrupted, each_moment
from tests.crash.simulated import simulated
from tests.sampling import SEED, count, sampled_faults, sampled_states

INTERLEAVINGS = count(4, 24, "INTERLEAVINGS")
LAYOUT = TableLayout("wh/shop.db/orders")
KEYED = {"primary_key": ["id"], "options": {"bucket": "2"}}
APPEND: dict = {"options": {"bucket": "-1"}}
TABLES = pytest.mark.parametrize("table", [KEYED, APPEND], ids=["keyed", "append"])
_names = itertools.count()


def opened(storage) -> lake.Table:
    return load_table(storage, LAYOUT, simulated(next(_names) + 100))


def fill(storage, table: dict):
    """Two commits, so that every bucket has something to compact."""
    catalog = FileSystemCatalog(storage, "wh", simulated())
    catalog.create_database("shop")
    catalog.create_table("shop.orders", [("id", "BIGINT"), ("note", "STRING")], **table)
    for number in range(2):
        add(storage, f"{number}", range(number * 4, number * 4 + 8))
    return storage


def add(storage, note: str, ids) -> None:
    opened(storage).write(pa.table({"id": list(ids), "note": [note] * len(ids)}))


def content(storage) -> list[tuple]:
    rows = load_table(storage, LAYOUT, simulated()).scan().to_arrow().to_pylist()
    return sorted(tuple(row.values()) for row in rows)


def data_files(storage) -> set[str]:
    return {path for path in storage.files(LAYOUT.root) if "/bucket-" in path}


def compact(storage, acknowledged=None) -> None:
    table = load_table(storage, LAYOUT, simulated(len(storage.files())))
    report = table.compact(executor="serial")
    if acknowledged is not None:
        acknowledged.append(report.snapshot_ids)


@TABLES
def test_a_fault_at_any_storage_call_changes_no_row_and_the_next_compaction_ends_it(table):
    start = fill(CrashableStorage(), table)
    expected = content(start)
    for trial in sampled_states(compact, start=start):
        storage = trial.reopened()
        assert content(storage) == expected, f"in {trial}\n{trial.storage.trace()}"
        compact(storage)
        assert content(storage) == expected, str(trial)
        kinds = [each.commit_kind for each in opened(storage).snapshots()]
        # A bucket that failed does not keep the others from being published.
        assert kinds[:2] == [CommitKind.APPEND] * 2, str(trial)
        assert kinds[2:] in ([CommitKind.COMPACT], [CommitKind.COMPACT] * 2), str(trial)
        assert opened(storage).plan_compaction().units == ()


@TABLES
def test_a_compaction_that_failed_leaves_no_data_file(table):
    failures = []

    def try_once(storage, acknowledged):
        before = data_files(storage)
        try:
            compact(storage)
        except CommitOutcomeUnknownError:
            raise
        except lake.LakeError as error:
            acknowledged.append((before, data_files(storage), str(error)))
            raise

    for trial in sampled_faults(try_once, start=fill(CrashableStorage(), table)):
        trial.run()
        for before, after, error in trial.acknowledged:
            failures.append(error)
            left = {path for path in after - before if not was_kept(trial, path)}
            assert left == set(), f"{trial}: {error}"
    assert failures


def was_kept(trial, path: str) -> bool:
    """The storage would not delete it, or another unit was published with it."""
    faults = {fault.at for fault in trial.storage.faults}
    refused = {call.path for call in trial.storage.log if call.number in faults}
    if path in refused:
        return True
    table = load_table(trial.reopened(), LAYOUT, simulated())
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    names = {entry.file.file_name for entry in plan_files(table._handle, snapshot)}
    return path.rpartition("/")[2] in names


def insert(storage) -> None:
    add(storage, "new", range(3, 6))


def overwrite(storage) -> None:
    opened(storage).write(pa.table({"id": [1, 2], "note": ["only"] * 2}), overwrite={})


def compact_too(storage) -> None:
    opened(storage).compact(executor="serial")


def insert_and_compact(storage) -> None:
    insert(storage)
    compact_too(storage)


def insert_compact_and_expire(storage) -> None:
    """The rows that were read no longer exist."""
    insert_and_compact(storage)
    opened(storage).expire_snapshots(retain_max=1, retain_min=1)


def change_the_schema(storage) -> None:
    catalog = FileSystemCatalog(storage, "wh", simulated())
    catalog.alter_table("shop.orders", lake.add_column("more", "INT"))
    rows = {"id": [50], "note": ["x"], "more": pa.array([7], pa.int32())}
    opened(storage).write(pa.table(rows))


def calls_of_a_compaction(start: MemoryStorage) -> list[tuple[str, str]]:
    watched = Interrupted(start.copy(), 0, lambda: None)
    opened(watched).compact(executor="serial")
    return watched.calls


def new_storage(table: dict) -> MemoryStorage:
    return fill(MemoryStorage(f"compaction-{next(_names)}"), table)


@pytest.mark.sampled(4)
@TABLES
@pytest.mark.parametrize(
    "rival",
    [
        insert,
        overwrite,
        compact_too,
        insert_and_compact,
        insert_compact_and_expire,
        change_the_schema,
    ],
)
def test_a_rival_at_any_moment_costs_nobody_a_row(table, rival: Callable):
    start = new_storage(table)
    before, alone = content(start), start.copy()
    rival(alone)
    expected = content(alone)
    for storage, slept in each_moment(start, calls_of_a_compaction(start), rival):
        opened(slept).compact(executor="serial")
        assert content(storage) == (expected if slept.happened else before), slept.at
        assert unreferenced(storage) == set(), f"at {slept.at}: {slept.calls[slept.at - 1]}"


def unreferenced(storage) -> set[str]:
    """Data files that no snapshot has ever had."""
    table = opened(storage)
    known = {
        entry.file.file_name
        for snapshot in table.snapshots()
        for entry in plan_files(table._handle, snapshot)
    }
    return {path for path in data_files(storage) if path.rpartition("/")[2] not in known}


class TableCompactor(Background):
    """Compacts the table as users do, all of it or what is due."""

    def change(self, commit: lake.CommitId) -> None:
        strategy = self.random.choice(["full", "minor"])
        try:
            self.world.table.compact(strategy=strategy, executor="serial")
        except (lake.CorruptTableError, lake.NotFoundError):
            assert self.world.expired, "only expiry takes files away"


@pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "append"])
def test_every_snapshot_holds_what_the_dict_holds_while_others_compact(keyed):
    actors = keyed_actors if keyed else append_actors
    writers = (
        (keyed_actors.Upserter, keyed_actors.Overwriter, keyed_actors.Compactor)
        if keyed
        else (append_actors.Appender, append_actors.Replacer, append_actors.Concatenator)
    )
    compacted = 0
    for seed in range(SEED, SEED + INTERLEAVINGS):
        chance = Random(f"{seed}:compaction")
        world = World(seed, keyed=keyed)
        kinds = [writers[0], *chance.sample(writers, 1), TableCompactor]
        kinds += chance.choice([[], [TableCompactor], [Expirer]])
        for number, kind in enumerate(kinds):
            name = f"{kind.__name__}-{number}"
            actor = kind(world, name, chance.randint(1, 4), Random(f"{seed}:{name}"))
            world.scheduler.add(name, actor.act)
        try:
            world.run(actors.rows_of)
        except BaseException as error:
            error.add_note(f"replay with SEED={seed} INTERLEAVINGS=1")
            raise
        compacted += world.compacted
    assert compacted
