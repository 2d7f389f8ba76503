"""Merged rows are those that Amoro's own reader returns, after every step of every golden table."""

from __future__ import annotations

import pickle
from functools import cache, reduce
from itertools import product
from operator import and_
from typing import Any

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.iceberg.read.plan import plan_files
from lakeformat.iceberg.read.scan import Scan
from lakeformat.mixed.file_names import FileKind
from lakeformat.mixed.read.store_files import change_files
from lakeformat.mixed.stores.file_offset import FILE_OFFSET
from tests.golden.iceberg_values import json_rows, sorted_rows
from tests.golden.mixed import MIXED_TABLES, MixedTable, mixed_table
from tests.sampling import sample


def opened(golden: MixedTable) -> lake.MixedTable:
    table = lake.open_table(golden.location)
    assert isinstance(table, lake.MixedTable)
    return table


def position_after(step: dict[str, Any]) -> lake.Position:
    stores = (step["change_snapshot"], step["base_snapshot"])
    return lake.Position(tuple(each["sequence_number"] if each else 0 for each in stores))


@cache
def scan_after(name: str, step: int) -> Any:
    """The scan of the state after a step; its plan is made once."""
    golden = mixed_table(name)
    return opened(golden).scan(snapshot=position_after(golden.steps[step]))


def rows_of(scan: Any) -> list[str]:
    return sorted_rows(json_rows(scan.to_arrow(), scan.fields))


@pytest.mark.parametrize("name", MIXED_TABLES)
def test_merged_rows_after_each_step_are_amoros(name):
    golden = mixed_table(name)
    for number, step in enumerate(golden.steps):
        scan = scan_after(name, number)
        assert rows_of(scan) == sorted_rows(step["merged_rows"]), step["label"]
        assert scan.count() == len(step["merged_rows"]), step["label"]
    assert rows_of(opened(golden).scan()) == sorted_rows(golden.steps[-1]["merged_rows"])


def test_rows_of_a_transaction_that_came_too_late_are_all_there_as_amoro_reads_them():
    """Amoro optimized newer transactions before it; this pins the reader, not a wanted state."""
    golden = mixed_table("late_low_tx")
    late = next(each for each in golden.steps if each["label"] == "A commits late")
    rows = opened(golden).scan(snapshot=position_after(late)).to_arrow()
    pairs = sorted(zip(rows["id"].to_pylist(), rows["v"].to_pylist(), strict=True))
    assert pairs == [(1, "A"), (1, "s3"), (2, "A"), (2, "s1"), (3, "s3"), (4, "A")]


@pytest.mark.parametrize("name", MIXED_TABLES)
def test_splits_have_the_files_of_amoros_tasks(name):
    """Deletes that are older than all rows of a node are left out, as they delete none."""
    golden = mixed_table(name)
    for number, step in enumerate(golden.steps):
        ours = {}
        for split in scan_after(name, number).splits():
            rows = frozenset(golden.relative(each.path) for each in split.files)
            ours[rows] = (split.node, {golden.relative(each.path) for each in split.deletes})
        theirs = {}
        for task in step["scan_tasks"]:
            rows = frozenset((*task["base"], *task["insert"]))
            theirs[rows] = (task["tree_nodes"], {*task["equality_deletes"]})
        assert ours.keys() == theirs.keys(), step["label"]
        for rows, (node, deletes) in ours.items():
            of_task, listed = theirs[rows]
            assert of_task == f"TreeNode{node}", step["label"]
            assert deletes <= listed, step["label"]


@pytest.mark.parametrize("name", MIXED_TABLES)
def test_what_is_merged_already_is_what_amoro_recorded(name):
    for number, step in enumerate(mixed_table(name).steps):
        merged = scan_after(name, number)._state.merged
        assert merged.sequences == step["optimized_sequence"], step["label"]
        assert merged.times == step["base_optimized_time"], step["label"]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", MIXED_TABLES)
def test_the_system_table_of_files_describes_each_file_as_amoro_does(name):
    golden = mixed_table(name)
    table = opened(golden)
    kinds = {"INSERT_FILE": "insert", "EQ_DELETE_FILE": "change_delete", "BASE_FILE": "base"}
    for step in golden.steps:
        found = table.system_table("files").scan(snapshot=position_after(step)).to_arrow()
        ours = {
            golden.relative(row["file_path"]): (
                row["partition"],
                row["sequence_number"],
                row["kind"],
                row["transaction_id"],
                f"TreeNode{row['node']}",
            )
            for row in found.to_pylist()
        }
        theirs = {
            each["path"]: (
                each["partition"],
                each["data_sequence_number"],
                kinds[each["type"]],
                each["transaction_id"],
                each["node"],
            )
            for each in (*step["base_files"], *step["change_files"])
            if each["type"] in kinds
        }
        assert ours == theirs, step["label"]
        position_deletes = (
            {
                golden.relative(each.path)
                for split in table.base.scan(snapshot=step["base_snapshot"]["snapshot_id"]).splits()
                for each in split.deletes
            }
            if step["base_snapshot"]
            else set()
        )
        assert position_deletes == {
            each["path"] for each in step["base_files"] if each["type"] not in kinds
        }, step["label"]


@pytest.mark.parametrize("name", MIXED_TABLES)
def test_each_row_of_the_change_store_has_the_place_in_the_order_that_amoro_reads(name):
    """Its transaction, its offset and its kind, with the values of its columns."""
    golden = mixed_table(name)
    state = opened(golden).scan()._state.change
    scan = Scan(state, None, None)
    fields = tuple(e for e in state.schema.fields if e.id != FILE_OFFSET.id)
    ours = []
    for file in change_files(state, plan_files(state)):
        batches = [*scan.read_fields(file.split, (*fields, FILE_OFFSET))]
        for row in json_rows(pa.Table.from_batches(batches), (*fields, FILE_OFFSET)):
            row["_transaction_id"] = file.transaction
            row["_change_action"] = "INSERT" if file.kind is FileKind.INSERT else "DELETE"
            ours.append({**row, "file": golden.relative(file.path)})
    assert sorted_rows(ours) == sorted_rows(golden.expected["change_rows"])


def test_a_split_is_read_alone_by_another_process():
    table = opened(mixed_table("multi_key_buckets"))
    scan, splits = pickle.loads(pickle.dumps((table.scan(["no", "v"]), table.scan().splits())))
    rows = pa.concat_tables(
        [pa.Table.from_batches(scan.read(split), scan.schema) for split in reversed(splits)]
    )
    assert rows.sort_by("no") == table.scan(["no", "v"]).to_arrow().sort_by("no")


CONDITIONS = sample(
    product(["keyed_day_minor", "minor_major_full", "multi_key_buckets"], *[[True, False]] * 2),
    6,
    kind=lambda case: case[1:],
    ends=False,
    of="conditions on golden tables",
)


@pytest.mark.parametrize(("name", "by_key", "by_value"), CONDITIONS)
def test_a_condition_selects_rows_after_the_merge(name, by_key, by_value):
    """Files and nodes are skipped by conditions on keys, on other columns and on both."""
    golden = mixed_table(name)
    table = opened(golden)
    changed = [each for each in golden.steps if each["kind"] == "change"]
    for step in changed[-2:]:
        everything = scan_after(name, golden.steps.index(step)).to_arrow().to_pylist()
        keys = {*table.primary_key}
        for row in (everything[0], everything[-1]):
            names = [each for each in row if (by_key, by_value)[each not in keys]]
            names = names or [*table.primary_key][:1]
            tests = [lake.col(each) == row[each] for each in names]
            where = reduce(and_, tests)
            found = table.scan(snapshot=position_after(step), where=where).to_arrow().to_pylist()
            wanted = [each for each in everything if all(each[n] == row[n] for n in names)]
            assert sorted(map(repr, found)) == sorted(map(repr, wanted)) != [], (names, row)


def test_a_lookup_by_key_reads_only_the_nodes_of_the_key():
    table = opened(mixed_table("multi_key_buckets"))
    row = table.scan().to_arrow().to_pylist()[0]
    where = reduce(and_, [lake.col(each) == row[each] for each in table.primary_key])
    explained = table.scan(where=where).explain()
    everywhere = table.scan().explain()
    assert table.scan(where=where).count() == 1
    assert 0 < explained.nodes < everywhere.nodes
    assert explained.left_out_by_node + explained.left_out_by_statistics > 0
