"""Writes of Mixed tables die at every storage call; each acknowledged change is merged once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.iceberg.commit.directory_pointer import DirectoryPointer
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.create.new_table import create_at_path, location_at, new_table_metadata
from lakeformat.mixed.stores.store_pair import StorePair
from lakeformat.mixed.table import MixedTable
from lakeformat.storage import NO_ROOTS
from lakeformat.testing import CrashableStorage
from tests.crash.simulated import simulated
from tests.sampling import SEED, count, sampled_states

SEEDS = pytest.mark.parametrize("seed", range(SEED, SEED + count(1, whole=4)))
COLUMNS = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("v", pa.string())])
CHANGES = (
    {1: "a", 2: "a", 3: "a"},
    {1: "b", 2: None, 4: "b"},
    {2: "c", 3: None, 4: "c"},
)
"""The values that each commit stores by id; None for a delete."""


def new_pair(
    columns: pa.Schema = COLUMNS,
    properties: Mapping[str, str] = MappingProxyType({}),
    partitioned_by: Sequence[str] = (),
) -> CrashableStorage:
    storage = CrashableStorage()
    key = {"mixed-format.primary-key-fields": "id", "change.file-index.hash-bucket": "2"}
    for store, more in (
        ("t", {"mixed-format.table-store": "base", "mixed-format.change.identifier": "db.c"}),
        ("c", {"mixed-format.table-store": "change"}),
    ):
        metadata = new_table_metadata(
            location_at(storage, store),
            columns,
            partitioned_by=partitioned_by,
            properties={**key, **more, **properties},
            environment=simulated(),
        )
        create_at_path(storage, store, metadata)
    return storage


def table_in(storage: CrashableStorage) -> MixedTable:
    world = simulated(len(storage.files()))
    base, change = (DirectoryPointer(storage, each, NO_ROOTS, world) for each in ("t", "c"))
    return MixedTable(StorePair(TableHandle(base, "main", world), change))


def write_three_times(
    storage: CrashableStorage, acknowledged: list[int], first: int = len(CHANGES)
) -> None:
    """Write the changes of all commits, or of the ``first`` ones."""
    table = table_in(storage)
    for number, changes in enumerate(CHANGES[:first]):
        rows = pa.table([[*changes], pa.array(changes.values(), pa.string())], schema=COLUMNS)
        kinds = ["-D" if value is None else "+U" for value in changes.values()]
        commit = lake.CommitId("run", number)
        if number == 1:  # as Spark's tasks write, and its driver commits
            with table.new_writer() as writer:
                writer.write(rows, kinds)
                messages = writer.prepare()
            table.commit(messages, commit=commit)
        else:
            table.write(rows, kinds=kinds, commit=commit)
        acknowledged.append(number)


def merged(table: MixedTable) -> dict[int, str]:
    found = table.scan().to_arrow().to_pydict()
    assert len({*found["id"]}) == len(found["id"])
    return dict(zip(found["id"], found["v"], strict=True))


def states() -> list[dict[int, str]]:
    """The rows before the first commit and after each."""
    found: list[dict[int, str]] = [{}]
    for changes in CHANGES:
        after = {**found[-1], **changes}
        found.append({key: value for key, value in after.items() if value is not None})
    return found


@SEEDS
def test_a_fault_at_any_storage_call_leaves_the_state_before_or_after_a_commit(seed):
    for trial in sampled_states(write_three_times, start=new_pair(), seed=seed):
        table = table_in(trial.reopened())
        reached = states().index(merged(table))
        assert reached >= len(trial.acknowledged), f"an acknowledged commit is lost after {trial}"


@SEEDS
def test_repeating_an_interrupted_run_publishes_every_change_once(seed):
    for trial in sampled_states(write_three_times, start=new_pair(), seed=seed):
        recovered = trial.reopened()
        write_three_times(recovered, [])
        table = table_in(recovered)
        assert merged(table) == states()[-1], str(trial)
        assert len(table.snapshots()) == len(CHANGES), str(trial)
