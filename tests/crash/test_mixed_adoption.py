"""Adoptions and detaches die at every storage call; no row changes, and a retry completes them."""

from __future__ import annotations

import pytest

import lakeformat as lake
from lakeformat.testing import CrashableStorage
from tests.crash.mixed_catalogs import COLUMNS, path_catalog, rows
from tests.sampling import SEED, count, sampled_states

SEEDS = pytest.mark.parametrize("seed", range(SEED, SEED + count(1, whole=4)))
ROWS = {1: "a", 2: "b"}
CHANGED = {2: "c", 3: "d"}


def iceberg_table() -> CrashableStorage:
    storage = CrashableStorage()
    catalog = path_catalog(storage)
    catalog.create_database("db")
    catalog.create_table("db.t", COLUMNS).write(rows(_1="a", _2="b"))
    return storage


def mixed_table() -> CrashableStorage:
    storage = iceberg_table()
    adopt(storage, [])
    table = path_catalog(storage).table("db.t")
    table.write(rows(_2="c", _3="d"))
    table.write(rows(_1="gone"), kinds=["-D"])
    return storage


def adopt(storage: CrashableStorage, acknowledged: list[bool]) -> None:
    path_catalog(storage).adopt_table("db.t", primary_key=["id"])
    acknowledged.append(True)


def detach(storage: CrashableStorage, acknowledged: list[bool]) -> None:
    path_catalog(storage).detach_table("db.t", merge=True)
    acknowledged.append(True)


def stored(storage: CrashableStorage) -> dict[int, str]:
    found = path_catalog(storage).table("db.t").scan().to_arrow().to_pydict()
    assert len({*found["id"]}) == len(found["id"])
    return dict(zip(found["id"], found["v"], strict=True))


def is_mixed(storage: CrashableStorage) -> bool:
    return isinstance(path_catalog(storage).table("db.t"), lake.MixedTable)


@SEEDS
def test_an_adoption_that_dies_changes_no_row_and_a_repeated_one_completes_it(seed):
    for trial in sampled_states(adopt, start=iceberg_table(), seed=seed):
        recovered = trial.reopened()
        assert stored(recovered) == ROWS, str(trial)
        assert is_mixed(recovered) or not trial.acknowledged, str(trial)
        adopt(recovered, [])
        assert is_mixed(recovered), str(trial)
        path_catalog(recovered).table("db.t").write(rows(_2="new"))
        assert stored(recovered) == {**ROWS, 2: "new"}, str(trial)


@SEEDS
def test_a_detach_that_dies_changes_no_row_and_a_repeated_one_completes_it(seed):
    for trial in sampled_states(detach, start=mixed_table(), seed=seed, most=9):
        recovered = trial.reopened()
        assert stored(recovered) == CHANGED, str(trial)
        assert not (trial.acknowledged and is_mixed(recovered)), str(trial)
        catalog = path_catalog(recovered)
        if is_mixed(recovered) or "t_change_" in catalog._metastore.tables("db"):
            detach(recovered, [])
        assert not is_mixed(recovered), str(trial)
        assert catalog._metastore.tables("db") == ["t"], str(trial)
        assert stored(recovered) == CHANGED, str(trial)
        assert "mixed-format.table-store" not in catalog.table("db.t").properties
