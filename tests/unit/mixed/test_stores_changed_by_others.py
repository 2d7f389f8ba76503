"""Mixed tables with deletes and schemas that other programs left in one of the stores."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import lakeformat as lake
from lakeformat.iceberg.read.data_file import DeleteFile
from lakeformat.iceberg.table import IcebergTable
from lakeformat.mixed.optimizing.evaluate import LastRuns
from lakeformat.mixed.optimizing.plan import plan_optimizing, plan_splits
from lakeformat.mixed.optimizing.settings import OptimizingSettings
from lakeformat.mixed.read.node_splits import NodeSplit
from lakeformat.mixed.table.newest_runs import newest_state
from lakeformat.mixed.write.write_changes import change_handle
from tests.unit.mixed.aged_table import AgedTable
from tests.unit.mixed.edited_stores import edit, newest_metadata

EVERYWHERE = DeleteFile("everywhere.parquet", None, 1, 10, 9, scope="", equality_ids=(1,))
"""An equality delete of an unpartitioned spec: it applies to every partition."""


@pytest.fixture
def aged(tmp_path: Path) -> AgedTable:
    return AgedTable(tmp_path)


def with_delete(split: NodeSplit) -> NodeSplit:
    """Return a split whose base files also have the delete."""
    files = [
        each if each.in_change else replace(each, split=replace(each.split, deletes=(EVERYWHERE,)))
        for each in split.files
    ]
    return replace(split, files=tuple(files))


@pytest.mark.parametrize(("full", "is_replaced"), [(-1, False), (0, True)])
def test_an_equality_delete_of_every_partition_is_kept_for_partitions_that_are_not_due(
    aged, full, is_replaced
):
    aged.write((1, "x", "a"), (2, "y", "a"))
    aged.merge()
    aged.write((1, "x", "b"))
    _, state, _ = newest_state(aged.table._pair)
    small = OptimizingSettings(
        minor_file_count=3, base_buckets=1, minor_interval=-1, full_interval=full
    )
    splits = [with_delete(each) for each in plan_splits(state, small).splits]
    plan = plan_optimizing(state, small, LastRuns(), aged.now, splits)
    due = [each.partition for each in plan.partitions if each.decision.necessary]
    assert due == (["p=x", "p=y"] if is_replaced else ["p=x"])
    task = next(each.tasks[0] for each in plan.partitions if each.partition == "p=x")
    assert (EVERYWHERE.path in task.replaced_deletes) is is_replaced
    assert (EVERYWHERE.path in task.kept_deletes) is not is_replaced


def test_delete_files_of_iceberg_in_the_change_store_do_not_block_the_compaction(aged):
    """Merged rows are without the deleted ones; the delete file remains in its store."""
    aged.write((1, "x", "a"), (2, "x", "a"))
    foreign = IcebergTable(change_handle(aged.table._pair))
    assert foreign.delete("k = 1").snapshot_id is not None
    assert any(each.deletes for each in foreign.scan().splits())
    for table in (lake.open_table(aged.table.location), aged.table):
        assert table.scan(["k"]).to_arrow()["k"].to_pylist() == [2]
        table.compact(strategy="full", executor="serial")
        assert table.base.scan(["k"]).to_arrow()["k"].to_pylist() == [2]


def test_a_column_that_only_the_change_store_has_is_in_no_state(aged):
    """A change of the schema reaches the change store first."""
    aged.write((1, "x", "a"))
    change = aged.root / "db/t_change_"
    found = json.loads(newest_metadata(change).read_text())
    schema = found["schemas"][0]
    more = {"id": 9, "name": "more", "required": False, "type": "int"}
    ahead = {**schema, "schema-id": 1, "fields": [*schema["fields"], more]}
    edit(change, schemas=[schema, ahead], **{"current-schema-id": 1, "last-column-id": 9})
    table = lake.open_table(aged.table.location)
    table.write(table.scan().to_arrow())
    assert table.scan(snapshot=table.position()).schema.names == ["k", "p", "v"]
    assert table.scan().schema.names == ["k", "p", "v"]


def test_changes_that_no_run_can_merge_in_order_are_reported(aged, caplog):
    aged.write((1, "x", "a"))
    aged.set({"self-optimizing.max-file-count": "1"})
    report = aged.merge()
    message = "1 file of changes cannot be merged, because a merge in the order of transactions"
    assert message in report.sentence
    assert message in caplog.text
    assert message in aged.table.health().reasons[0].finding
    aged.set({"self-optimizing.max-file-count": "2"})
    aged.merge()
    assert aged.table.base.scan().count() == 1
