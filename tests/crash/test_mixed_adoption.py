"""Adoptions and detaches die at every storage call; no row changes, and a retry completes them."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.catalog.iceberg import IcebergCatalog
from lakeformat.catalog.iceberg.catalog_files import CatalogFiles
from lakeformat.catalog.iceberg.path import PathMetastore
from lakeformat.storage import NO_ROOTS
from lakeformat.testing import CrashableStorage
from tests.crash.simulated import simulated
from tests.sampling import SEED, count, sampled_states

SEEDS = pytest.mark.parametrize("seed", range(SEED, SEED + count(1, whole=4)))
COLUMNS = pa.schema([pa.field("id", pa.int64()), pa.field("v", pa.string())])
ROWS = {1: "a", 2: "b"}
CHANGED = {2: "c", 3: "d"}


class Listed(PathMetastore):
    """A metastore that fails if a directory cannot be listed, instead of leaving it out."""

    def tables(self, database: str) -> list[str]:
        found = (each for each in self._storage.list(f"wh/{database}") if each.is_directory)
        return [each.name for each in found if self._storage.list(f"{each.path}/metadata")]


def catalog_in(storage: CrashableStorage) -> IcebergCatalog:
    world = simulated(len(storage.files()))
    metastore = Listed(CatalogFiles(storage, "wh", {}, NO_ROOTS), world)
    return IcebergCatalog(metastore, "wh", world)


def rows(**values: str) -> pa.Table:
    return pa.table([[int(each[1:]) for each in values], [*values.values()]], schema=COLUMNS)


def iceberg_table() -> CrashableStorage:
    storage = CrashableStorage()
    catalog = catalog_in(storage)
    catalog.create_database("db")
    catalog.create_table("db.t", COLUMNS).write(rows(_1="a", _2="b"))
    return storage


def mixed_table() -> CrashableStorage:
    storage = iceberg_table()
    adopt(storage, [])
    table = catalog_in(storage).table("db.t")
    table.write(rows(_2="c", _3="d"))
    table.write(rows(_1="gone"), kinds=["-D"])
    return storage


def adopt(storage: CrashableStorage, acknowledged: list[bool]) -> None:
    catalog_in(storage).adopt_table("db.t", primary_key=["id"])
    acknowledged.append(True)


def detach(storage: CrashableStorage, acknowledged: list[bool]) -> None:
    catalog_in(storage).detach_table("db.t", merge=True)
    acknowledged.append(True)


def stored(storage: CrashableStorage) -> dict[int, str]:
    found = catalog_in(storage).table("db.t").scan().to_arrow().to_pydict()
    assert len({*found["id"]}) == len(found["id"])
    return dict(zip(found["id"], found["v"], strict=True))


def is_mixed(storage: CrashableStorage) -> bool:
    return isinstance(catalog_in(storage).table("db.t"), lake.MixedTable)


@SEEDS
def test_an_adoption_that_dies_changes_no_row_and_a_repeated_one_completes_it(seed):
    for trial in sampled_states(adopt, start=iceberg_table(), seed=seed):
        recovered = trial.reopened()
        assert stored(recovered) == ROWS, str(trial)
        assert is_mixed(recovered) or not trial.acknowledged, str(trial)
        adopt(recovered, [])
        assert is_mixed(recovered), str(trial)
        catalog_in(recovered).table("db.t").write(rows(_2="new"))
        assert stored(recovered) == {**ROWS, 2: "new"}, str(trial)


@SEEDS
def test_a_detach_that_dies_changes_no_row_and_a_repeated_one_completes_it(seed):
    for trial in sampled_states(detach, start=mixed_table(), seed=seed):
        recovered = trial.reopened()
        assert stored(recovered) == CHANGED, str(trial)
        assert not (trial.acknowledged and is_mixed(recovered)), str(trial)
        catalog = catalog_in(recovered)
        if is_mixed(recovered) or "t_change_" in catalog._metastore.tables("db"):
            detach(recovered, [])
        assert not is_mixed(recovered), str(trial)
        assert catalog._metastore.tables("db") == ["t"], str(trial)
        assert stored(recovered) == CHANGED, str(trial)
        assert "mixed-format.table-store" not in catalog.table("db.t").properties
