"""A chain table's rows are merged from two branches, which is refused wherever rows count."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import lakeformat as lake
from tests.golden.foreign import unpack_foreign

REFUSAL = r"sets 'chain-table.enabled'.*merged from branches.*Use Spark or Flink"


@pytest.fixture
def place(tmp_path) -> str:
    return unpack_foreign("chain_table", tmp_path)


@pytest.fixture
def chain(place) -> lake.Table:
    """Java reads three rows of it; main has none of its own."""
    return lake.open_table(place)


def files_of(place: str) -> list[str]:
    return sorted(str(path) for path in Path(place).rglob("*") if path.is_file())


ROW = pa.table({"t1": ["9"], "t2": ["9"], "t3": ["9"], "date": ["20250812"]})

OPERATIONS: dict[str, Callable[[lake.Table], object]] = {
    "scan": lambda table: table.scan().to_arrow(),
    "count": lambda table: table.scan().count(),
    "explain": lambda table: table.scan().explain(),
    "changes": lambda table: [*table.changes(0, mode="delta").to_batches()],
    "health": lambda table: table.health(),
    "drop partitions": lambda table: table.plan_drop_partitions([{"date": "20250811"}]),
    "write": lambda table: table.write(ROW),
    "delete": lambda table: table.delete("t1 = '1'"),
    "update": lambda table: table.update({"t3": "'x'"}, "t1 = '1'"),
    "compact": lambda table: table.compact(),
    "expire": lambda table: table.expire_snapshots(),
    "expire partitions": lambda table: table.expire_partitions(expiration_time="7 d"),
    "dry run": lambda table: table.expire_partitions(expiration_time="7 d", dry_run=True),
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_no_operation_takes_main_alone_for_the_table(chain, place, operation):
    before = files_of(place)
    with pytest.raises(lake.UnsupportedError, match=REFUSAL):
        OPERATIONS[operation](chain)
    assert files_of(place) == before


@pytest.mark.parametrize(("branch", "keys"), [("snapshot", ["1"]), ("delta", ["2"])])
def test_each_of_its_branches_is_read_alone(place, branch, keys):
    rows = lake.open_table(place, branch=branch).scan().to_arrow()
    assert rows["t1"].to_pylist() == keys


@pytest.mark.parametrize("operation", ["write", "delete", "compact", "expire partitions"])
def test_a_branch_it_is_merged_from_is_not_changed(place, operation):
    delta, before = lake.open_table(place, branch="delta"), files_of(place)
    with pytest.raises(lake.UnsupportedError, match=r"'delta' of .* is one of the two branches"):
        OPERATIONS[operation](delta)
    assert files_of(place) == before


def test_the_snapshots_of_such_a_branch_expire(place):
    branch = lake.open_table(place, branch="snapshot")
    report = branch.expire_snapshots(retain_max=1, retain_min=1)
    assert report.snapshots == (1,)
    assert branch.scan().to_arrow()["t1"].to_pylist() == ["1"]


def test_a_branch_it_is_merged_from_cannot_be_deleted(chain):
    with pytest.raises(lake.InvalidRequestError, match=r"'scan.fallback-delta-branch'"):
        chain.branches.delete("delta")


def test_orphan_removal_keeps_the_files_of_all_branches(chain, place):
    before = files_of(place)
    chain.remove_orphans(dry_run=False)
    assert files_of(place) == before


def test_a_clone_of_one_state_is_refused_and_a_full_one_copies_every_branch(chain, catalog):
    with pytest.raises(lake.UnsupportedError, match=r"clone the table with full=True"):
        lake.clone_table(chain, catalog, "shop.copy")
    lake.clone_table(chain, catalog, "shop.copy", full=True)
    rows = catalog.table("shop.copy$branch_delta").scan().to_arrow()
    assert rows["t1"].to_pylist() == ["2"]
