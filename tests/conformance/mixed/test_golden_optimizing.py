"""Decisions and tasks of an optimizing are those of Amoro's evaluator and planner."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

import lakeformat as lake
from lakeformat.mixed.health import score_of_partitions
from lakeformat.mixed.optimizing.evaluate import (
    DeleteKind,
    FileUse,
    LastRuns,
    PartitionDecision,
    PartitionFile,
    PartitionFileDelete,
    evaluate,
)
from lakeformat.mixed.optimizing.ordered_sequence import ChangeGroup, ordered_sequence
from lakeformat.mixed.optimizing.settings import OptimizingSettings
from tests.golden.mixed import MIXED_TABLES, evaluator_vectors, mixed_table

VECTORS = evaluator_vectors()["partitions"]
KINDS = {
    "position": DeleteKind.POSITION,
    "equality": DeleteKind.EQUALITY,
    "change-delete": DeleteKind.EQUALITY,
}


def settings_of(vector: dict[str, Any]) -> OptimizingSettings:
    config = vector["config"]
    return OptimizingSettings(
        target_size=config["target-size"],
        fragment_ratio=config["fragment-ratio"],
        min_target_size_ratio=Decimal(str(config["min-target-size-ratio"])),
        minor_file_count=config["minor.trigger.file-count"],
        minor_interval=config["minor.trigger.interval"],
        duplicate_ratio=Decimal(str(config["major.trigger.duplicate-ratio"])),
        full_interval=config["full.trigger.interval"],
        full_rewrite_all=config["full.rewrite-all-files"],
        base_buckets=config["base.file-index.hash-bucket"],
        base_refresh_interval=config["base.refresh-interval"],
        open_file_cost=config["open-file-cost"],
        size_tolerance=config["evaluation.file-size.mse-tolerance"],
        fallback_interval=config["evaluation.fallback-interval"],
    )


def file_of(written: dict[str, Any]) -> PartitionFile:
    deletes = (
        PartitionFileDelete(each["path"], KINDS[each["content"]], each["size"], each["records"])
        for each in written["deletes"]
    )
    is_change = written["type"] == "change-insert"
    return PartitionFile(
        written["path"], is_change, written["size"], written["records"], tuple(deletes)
    )


def decision_of(vector: dict[str, Any]) -> PartitionDecision:
    last = LastRuns(
        minor=vector["last_minor"],
        full=vector["last_full"],
        base_optimized=int(vector["partition_properties"].get("base-op-time", 0)),
    )
    files = [file_of(each) for each in vector["files"]]
    keyed = vector["kind"] == "keyed"
    return evaluate(files, settings_of(vector), last, vector["plan_time"], keyed=keyed)


@pytest.mark.parametrize("kind", ["keyed", "iceberg"])
def test_decisions_are_amoros(kind):
    vectors = [each for each in VECTORS if each["kind"] == kind]
    assert len(vectors) == 80
    for vector in vectors:
        decision, expected = decision_of(vector), vector["expected"]
        assert decision.necessary is expected["necessary"], vector
        assert decision.type.upper() == expected["optimizing_type"], vector
        assert decision.cost == expected["cost"], vector
        assert decision.fragments == expected["fragment_files"], vector
        used = [use is not FileUse.KEEP for use in decision.uses]
        assert used == [each["added"] for each in vector["files"]], vector
        assert (decision.reason == "nothing is due") is not decision.necessary, vector
        score = score_of_partitions([decision.pending], settings_of(vector))
        parts = (score.small_files, score.rows_to_merge, score.hidden_rows)
        names = ("small_file", "equality_delete", "position_delete")
        assert parts == tuple(expected[f"health_{name}"] for name in names), vector


@pytest.mark.parametrize(("deleted", "use"), [(10, FileUse.KEEP), (11, FileUse.REWRITE)])
def test_a_file_is_rewritten_only_above_the_ratio_of_deleted_rows(deleted, use):
    delete = PartitionFileDelete("1-PD-1-00000-0-1-00001.parquet", DeleteKind.POSITION, 1, deleted)
    file = PartitionFile("1-B-1-00000-0-1-00001.parquet", False, 1 << 30, 100, (delete,))
    assert evaluate([file], OptimizingSettings(), LastRuns(), 0).uses == (use,)


def test_selected_sequences_keep_the_order_of_transactions_as_amoros():
    vectors = evaluator_vectors()["ordered_sequences"]
    assert len(vectors) == 80
    for vector in vectors:
        groups = [ChangeGroup(*each) for each in vector["groups_sequence_tx_files"]]
        found = ordered_sequence(groups, vector["max_file_count"])
        newest = max((each.sequence for each in groups), default=None)
        if vector["result"] == "all":
            assert found == newest, vector
        else:
            assert found == (None if vector["result"] == "none" else vector["result"]), vector


@pytest.mark.parametrize(("late", "expected"), [(2, None), (4, 3)])
def test_a_change_waits_for_a_lower_transaction_that_an_open_batch_holds_back(late, expected):
    groups = [ChangeGroup(3, 3, 1), ChangeGroup(5, late, 2)]
    assert ordered_sequence(groups, 100, before=4) == expected


@pytest.mark.parametrize("name", MIXED_TABLES)
def test_tasks_of_a_plan_have_the_files_of_amoros_tasks(name):
    golden = mixed_table(name)
    table = lake.open_table(golden.location)
    for before, step in zip(golden.steps, golden.steps[1:], strict=False):
        args = step["args"]
        if step["kind"] != "optimize":
            continue
        is_limited = "max-file-count 3" in step["label"]
        stores = (before["change_snapshot"], before["base_snapshot"])
        position = lake.Position(tuple(each["sequence_number"] if each else 0 for each in stores))
        settings = OptimizingSettings(
            target_size=args["target_size"],
            fragment_ratio=args["fragment_ratio"],
            minor_file_count=args["minor_file_count"],
            full_interval=args["full_interval"],
            max_file_count=3 if is_limited else args["max_file_count"],
            full_rewrite_all=args["full_rewrite_all"],
            # The golden runs do not record it; runs of other types than major had a higher one.
            duplicate_ratio=Decimal("0.1" if args.get("type") == "MAJOR" else "2"),
            base_buckets=int(table.properties.get("base.file-index.hash-bucket", 4)),
        )
        plan = table.plan_optimizing(
            settings=settings, snapshot=position, last_minor=0, last_full=0
        )
        assert (plan.type is not None) is args["necessary"], step["label"]
        if plan.type is None:
            continue
        assert plan.type.upper() == args["type"], step["label"]
        ours = [
            (
                partition.partition,
                files_of(golden, task.rewritten),
                files_of(golden, task.with_deletes),
                files_of(golden, task.kept_deletes),
                files_of(golden, task.replaced_deletes),
            )
            for partition in plan.partitions
            if partition.decision.necessary
            for task in partition.tasks
        ]
        theirs = [
            (
                task["partition"],
                sorted(task["rewritten_data"]),
                sorted(task["pos_delete_rewritten_data"]),
                sorted(task["readonly_deletes"]),
                sorted(task["rewritten_deletes"]),
            )
            for task in args["tasks"]
        ]
        assert sorted(ours) == sorted(theirs), step["label"]
        merged = {each.partition: each.sequences for each in plan.partitions if each.sequences}
        for partition, first in args["from_sequence"].items():
            assert merged[partition] == (first, args["to_sequence"][partition]), step["label"]


def files_of(golden: Any, paths: tuple[str, ...]) -> list[str]:
    return sorted(golden.relative(each) for each in paths)
