"""Alters of Mixed tables die at every storage call: each is made whole or not at all."""

from __future__ import annotations

import pytest

import lakeformat as lake
from lakeformat.catalog.iceberg.alter import alter_opened, alteration_of
from lakeformat.testing import CrashableStorage
from tests.crash.test_mixed_writes import new_pair, table_in, write_three_times
from tests.sampling import SEED, count, sampled_states

SEEDS = pytest.mark.parametrize("seed", range(SEED, SEED + count(1, whole=4)))
ALTERS = (
    (lake.add_column("w", "BIGINT"), lake.set_option("a", "1")),
    (lake.rename_column("v", "name"), lake.drop_column("w"), lake.remove_option("a")),
)
STATES = (
    (["id", "v"], None),
    (["id", "v", "w"], "1"),
    (["id", "name"], None),
)
"""The columns and the property ``a`` before the first alter and after each."""


def with_rows() -> CrashableStorage:
    storage = new_pair()
    write_three_times(storage, [], first=1)
    return storage


def alter_twice(storage: CrashableStorage, acknowledged: list[int], first: int = 0) -> None:
    """Make the alters from number ``first`` on."""
    for number, changes in enumerate(ALTERS[first:], first):
        alter_opened(table_in(storage), alteration_of("t", changes))
        acknowledged.append(number)


def state(storage: CrashableStorage) -> int:
    table = table_in(storage)
    found = table.scan().to_arrow().sort_by("id")
    assert found.columns[1].to_pylist() == ["a", "a", "a"]
    return STATES.index((found.column_names, table.properties.get("a")))


@SEEDS
def test_a_fault_at_any_storage_call_leaves_each_alter_whole_and_the_next_completes_it(seed):
    for trial in sampled_states(alter_twice, start=with_rows(), seed=seed):
        recovered = trial.reopened()
        reached = state(recovered)
        assert reached >= len(trial.acknowledged), f"an acknowledged alter is lost after {trial}"
        alter_twice(recovered, [], reached)
        assert state(recovered) == len(ALTERS), str(trial)
        table = table_in(recovered)
        alter_opened(table, alteration_of("t", [lake.set_option("b", "1")]))
        base, change = table.base, table.change
        assert base.schema.fields == change.schema.fields, str(trial)
        assert "a" not in {**base.properties, **change.properties}, str(trial)
        assert base.properties["b"] == change.properties["b"] == "1", str(trial)
