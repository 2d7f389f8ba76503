"""Every kind of commit dies at every storage call; the table is as before or as after."""

from __future__ import annotations

import pytest

import lakeformat as lake
from lakeformat.environment import Environment
from lakeformat.paimon.commit.commit import CommitOptions, commit_messages, commit_statistics
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.statistics import TableStatistics
from lakeformat.paimon.partition_filter import some_partitions
from lakeformat.testing import CrashableStorage, FaultKind, every_fault
from tests.crash.references import metadata_files, referenced_metadata
from tests.paper import file, head, live, message, paper_table, vectors
from tests.sampling import SEED, count, sampled_states

A, B, C, D, E = (file(name) for name in "abcde")
MERGED = file("m", level=5)


def append(orders, options):
    new = message(orders, A, B, dt="1", changelog_files=[file("log")])
    return commit_messages(orders, [new, message(orders, C, dt="2")], options)


def compact(orders, options):
    merged = message(orders, dt="1", compact_before=[A, B], compact_after=[MERGED])
    return commit_messages(orders, [merged], options)


def append_and_compact(orders, options):
    both = message(orders, D, dt="2", compact_before=[C], compact_after=[file("n", level=5)])
    return commit_messages(orders, [both], options)


def mark_deleted(orders, options):
    marked = message(orders, new_index_files=[vectors(orders, "v", "m", dt="1")], dt="1")
    return commit_messages(orders, [marked], options)


def overwrite(orders, options):
    first_day = some_partitions(orders.schema, [{"dt": "1"}])
    return commit_messages(orders, [message(orders, E, dt="1")], options, overwrite=first_day)


def analyze(orders, options):
    return commit_statistics(orders, TableStatistics(snapshot_id=1, schema_id=0), options)


def truncate(orders, options):
    everything = some_partitions(orders.schema, [{}])
    return commit_messages(orders, [], options, overwrite=everything)


STEPS = (append, compact, append_and_compact, mark_deleted, overwrite, analyze, truncate)
STATES = (
    [],
    ["1/a", "1/b", "2/c"],
    ["1/m@5", "2/c"],
    ["1/m@5", "2/d", "2/n@5"],
    ["1/m@5", "2/d", "2/n@5"],
    ["1/e@5", "2/d", "2/n@5"],
    ["1/e@5", "2/d", "2/n@5"],
    [],
)
"""The live files before each step, and after the last."""

HALF_WAY = {append_and_compact: ["1/m@5", "2/c", "2/d"]}
"""Appended, but not compacted yet: two snapshots of one commit."""


def handle_on(storage) -> TableHandle:
    """The table on a storage, in a world in which every run makes the same calls."""
    names = iter(range(len(storage.files()) * 1000, 10**9))
    world = Environment(
        now_millis=lambda: 1_700_000_000_000,
        new_id=lambda: f"{next(names):08d}",
        sleep_seconds=lambda seconds: None,
        random_fraction=lambda: 0.5,
    )
    empty = paper_table(keyed=True, partitioned=True)
    return TableHandle(storage, empty.layout, empty.schema, world)


def before(number: int) -> CrashableStorage:
    """The table as a step finds it."""
    storage = CrashableStorage()
    paper_table(keyed=True, partitioned=True, storage=storage)
    for earlier in range(number):
        take(earlier)(storage, [])
    return storage


def take(number: int):
    """One step as a scenario."""

    def scenario(storage, acknowledged):
        options = CommitOptions(commit=lake.CommitId("run", number))
        STEPS[number](handle_on(storage), options)
        acknowledged.append(number)

    return scenario


every_step = pytest.mark.parametrize("number", range(len(STEPS)), ids=lambda n: STEPS[n].__name__)


@every_step
@pytest.mark.parametrize("seed", range(SEED, SEED + count(1, whole=2)))
def test_a_fault_at_any_call_leaves_the_state_before_or_after(number, seed):
    for trial in sampled_states(take(number), start=before(number), seed=seed):
        orders = handle_on(trial.reopened())
        allowed = [STATES[number + 1]]
        if not trial.acknowledged:
            allowed += [STATES[number], HALF_WAY.get(STEPS[number], STATES[number])]
        try:
            assert live(orders) in allowed
            assert referenced_metadata(orders) <= metadata_files(orders)
        except (AssertionError, lake.LakeError) as error:
            error.add_note(f"in {trial}\n{trial.storage.trace()}")
            raise


@every_step
def test_repeating_the_step_publishes_it_once(number):
    start = before(number)
    snapshots = handle_on(take_on(start, number)), handle_on(start)
    published = [0 if head(orders) is None else head(orders).id for orders in snapshots]
    for trial in sampled_states(take(number), start=start):
        orders = handle_on(take_on(trial.reopened(), number))
        assert live(orders) == STATES[number + 1], str(trial)
        assert head(orders).id == published[0], str(trial)
        assert referenced_metadata(orders) <= metadata_files(orders), str(trial)
    assert published[0] > published[1]


def take_on(storage: CrashableStorage, number: int) -> CrashableStorage:
    """A copy of a storage on which a step was taken."""
    copy = storage.reopened()
    take(number)(copy, [])
    return copy


@every_step
def test_a_commit_that_fails_before_publication_leaves_nothing_behind(number):
    for trial in every_fault(take(number), start=before(number)):
        if trial.fault.kind is not FaultKind.FAIL_BEFORE:
            continue
        trial.run()
        orders = handle_on(trial.storage)
        unused = metadata_files(orders) - referenced_metadata(orders)
        if isinstance(trial.error, lake.UnavailableError) and trial.call.operation != "delete":
            assert unused == set(), str(trial)
