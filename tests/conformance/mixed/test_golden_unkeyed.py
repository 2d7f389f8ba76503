"""A table without a key has the rows, files and optimizing runs of Amoro after each step."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import lakeformat as lake
from lakeformat.mixed.file_names import parse_file_name
from lakeformat.mixed.optimizing.evaluate import FileUse, LastRuns, PartitionFile, evaluate
from lakeformat.mixed.optimizing.settings import OptimizingSettings
from tests.conformance.mixed.earlier_state import go_back
from tests.golden.iceberg_values import json_rows, sorted_rows
from tests.golden.mixed import mixed_copy, mixed_table

UNKEYED = "unkeyed"
RUNS = [
    pytest.param(number, id=step["label"])
    for number, step in enumerate(mixed_table(UNKEYED).steps)
    if step["kind"] == "optimize"
]


def opened(location: str) -> lake.IcebergTable:
    table = lake.open_table(location)
    assert isinstance(table, lake.IcebergTable)
    return table


def rows_of(scan: Any) -> list[str]:
    return sorted_rows(json_rows(scan.to_arrow(), scan.fields))


def by_partition(files: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for each in files:
        found.setdefault(each["partition"], []).append(each)
    return found


def test_rows_and_files_after_each_step_are_amoros():
    golden = mixed_table(UNKEYED)
    table = opened(golden.location)
    assert len(golden.steps) == 8
    for step in golden.steps:
        scan = table.scan(snapshot=step["base_snapshot"]["snapshot_id"])
        assert rows_of(scan) == sorted_rows(step["merged_rows"]), step["label"]
        ours = []
        for split in scan.splits():
            assert not split.deletes
            name = parse_file_name(split.file.path)
            ours.append(
                (
                    golden.relative(split.file.path),
                    split.file.record_count,
                    split.file.sequence_number,
                    {"B": "BASE_FILE"}[str(name.kind)],
                    name.transaction,
                    f"TreeNode{name.node}",
                )
            )
        theirs = [
            (
                each["path"],
                each["records"],
                each["data_sequence_number"],
                each["type"],
                each["transaction_id"],
                each["node"],
            )
            for each in step["base_files"]
        ]
        assert sorted(ours) == sorted(theirs), step["label"]


@pytest.mark.parametrize("number", RUNS)
def test_decisions_about_partitions_have_the_files_of_amoros_tasks(number):
    golden = mixed_table(UNKEYED)
    args = golden.steps[number]["args"]
    settings = OptimizingSettings(
        target_size=args["target_size"],
        fragment_ratio=args["fragment_ratio"],
        minor_file_count=args["minor_file_count"],
        full_interval=args["full_interval"],
        full_rewrite_all=args["full_rewrite_all"],
        duplicate_ratio=Decimal(2),
    )
    ours = {}
    for partition, files in by_partition(golden.steps[number - 1]["base_files"]).items():
        given = [
            PartitionFile(each["path"], False, each["size"], each["records"]) for each in files
        ]
        decision = evaluate(given, settings, LastRuns(), 1 << 50, keyed=False)
        if decision.necessary:
            assert decision.type.upper() == args["type"]
            used = zip(given, decision.uses, strict=True)
            ours[partition] = {each.path for each, use in used if use is not FileUse.KEEP}
    theirs = {each["partition"]: {*each["rewritten_data"]} for each in args["tasks"]}
    assert ours == theirs


@pytest.mark.parametrize("number", RUNS)
def test_a_compaction_rewrites_the_files_of_amoros_run_and_keeps_the_rows(tmp_path, number):
    golden = mixed_copy(UNKEYED, tmp_path / UNKEYED)
    step, earlier = golden.steps[number], golden.steps[number - 1]
    go_back(Path(golden.location), earlier["base_snapshot"])
    table = opened(golden.location)
    assert rows_of(table.scan()) == sorted_rows(earlier["merged_rows"])
    strategy = step["args"]["type"].lower()
    planned = [
        (unit.partition, sorted(golden.relative(each.split.file.path) for each in unit.files))
        for unit in table.plan_compaction(strategy=strategy).units
    ]
    tasks = [(each["partition"], sorted(each["rewritten_data"])) for each in step["args"]["tasks"]]
    assert sorted(planned) == sorted(tasks)
    table.compact(strategy=strategy, executor="serial")
    assert rows_of(table.scan()) == sorted_rows(step["merged_rows"])
    ours = [
        (Path(split.file.path).parent.name, split.file.record_count)
        for split in table.scan().splits()
    ]
    assert sorted(ours) == sorted(
        (each["partition"], each["records"]) for each in step["base_files"]
    )
    again = table.plan_compaction(strategy=strategy)
    assert again.units == (), "a second run has nothing to do"
