"""Our compaction does what Amoro's optimizing did, from the state before each golden run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import lakeformat as lake
from lakeformat.mixed.file_names import FileKind, parse_file_name
from tests.conformance.mixed.earlier_state import go_back
from tests.golden.iceberg_values import json_rows, sorted_rows
from tests.golden.mixed import MIXED_TABLES, MixedTable, mixed_copy, mixed_table
from tests.sampling import sample
from tests.unit.mixed.edited_stores import newest_metadata


def kind_of_run(run: tuple[str, int]) -> tuple[str, bool]:
    """Return the type of a run, and True if the run changes the number of buckets."""
    step = mixed_table(run[0]).steps[run[1]]
    return step["args"]["type"], "base buckets" in step["label"]


RUNS = sample(
    [
        (name, number)
        for name in MIXED_TABLES
        for number, step in enumerate(mixed_table(name).steps)
        if step["kind"] == "optimize"
        and step["args"]["necessary"]
        and (name, step["label"]) != ("late_low_tx", "optimize")
    ],
    6,
    kind=kind_of_run,
    ends=False,
    of="runs of Amoro",
)
"""Each golden run but the first of ``late_low_tx``, which merges newer changes than an open
batch."""


def properties_of(args: dict[str, Any]) -> dict[str, str]:
    own = {
        "target-size": args["target_size"],
        "fragment-ratio": args["fragment_ratio"],
        "minor.trigger.file-count": args["minor_file_count"],
        "full.trigger.interval": args["full_interval"],
        "max-file-count": args["max_file_count"],
        "full.rewrite-all-files": str(args["full_rewrite_all"]).lower(),
        "minor.trigger.interval": 0,
        # The golden runs do not record it; runs of other types than major had a higher one.
        "major.trigger.duplicate-ratio": "0.1" if args["type"] == "MAJOR" else "2",
    }
    return {f"self-optimizing.{key}": str(value) for key, value in own.items()}


def rows_of(table: lake.MixedTable) -> list[str]:
    scan = table.scan()
    return sorted_rows(json_rows(scan.to_arrow(), scan.fields))


def before(golden: MixedTable, number: int) -> lake.MixedTable:
    """The table before a step, with the settings of the step."""
    earlier = golden.steps[number - 1]
    go_back(golden.root / golden.expected["stores"]["change"], earlier["change_snapshot"])
    step = golden.steps[number]
    settings = properties_of(step["args"])
    if buckets := re.search(r"into (\d+) base buckets", step["label"]):
        settings["base.file-index.hash-bucket"] = buckets[1]
    go_back(Path(golden.location), earlier["base_snapshot"], **settings)
    table = lake.open_table(golden.location)
    assert isinstance(table, lake.MixedTable)
    assert rows_of(table) == sorted_rows(earlier["merged_rows"])
    return table


@pytest.mark.parametrize(("name", "number"), RUNS)
def test_a_compaction_has_the_rows_the_files_and_the_record_of_amoros_run(tmp_path, name, number):
    golden = mixed_copy(name, tmp_path / name)
    step = golden.steps[number]
    table = before(golden, number)
    assert step["args"]["type"].lower() == table.compact(executor="serial").type, step["label"]
    assert rows_of(table) == sorted_rows(step["merged_rows"]), step["label"]
    merged = table.scan()._state.merged
    assert merged.sequences == step["optimized_sequence"]
    assert merged.times.keys() == step["base_optimized_time"].keys()
    files = table.system_table("files").scan().to_arrow().to_pylist()
    ours = [
        (each["partition"], f"TreeNode{each['node']}", each["transaction_id"], each["record_count"])
        for each in files
        if each["kind"] == "base"
    ]
    theirs = [
        (each["partition"], each["node"], each["transaction_id"], each["records"])
        for each in step["base_files"]
        if each["type"] == "BASE_FILE"
    ]
    assert sorted(ours) == sorted(theirs), step["label"]
    ours = [
        parse_file_name(each.path) for split in table.base.scan().splits() for each in split.deletes
    ]
    theirs = [
        parse_file_name(each["path"])
        for each in step["base_files"]
        if each["type"] == "POS_DELETE_FILE"
    ]
    assert {each.kind for each in ours} <= {FileKind.POSITION_DELETE}
    assert sorted((each.node, each.transaction) for each in ours) == sorted(
        (each.node, each.transaction) for each in theirs
    ), step["label"]
    again = table.compact(strategy="full", executor="serial")
    assert rows_of(table) == sorted_rows(step["merged_rows"]), again.sentence


def test_changes_that_are_newer_than_an_open_batch_wait_for_it(tmp_path):
    """Amoro merges them, and leaves two rows of a key when the batch commits late."""
    golden = mixed_copy("late_low_tx", tmp_path / "late_low_tx")
    steps = golden.steps
    number = next(place for place, each in enumerate(steps) if each["kind"] == "optimize")
    late = next(each for each in steps if each["label"] == "A commits late")
    newest = before(golden, number).snapshots()[-1].time_millis
    # A batch of Amoro that is days old counts as dead.
    then = lake.Environment(now_millis=lambda: newest)
    table = lake.open_table(golden.location, environment=then)
    assert isinstance(table, lake.MixedTable)
    report = table.compact()
    assert "newer changes wait for the batch with transaction 2, begun at " in report.sentence
    assert table.scan()._state.merged.sequences == {"": 1}
    assert rows_of(table) == sorted_rows(steps[number]["merged_rows"])
    # The batch commits: its change snapshot is the one that Amoro's writer made then.
    other = mixed_copy("late_low_tx", tmp_path / "again")
    go_back(other.root / "t_change_", late["change_snapshot"])
    assert late["change_snapshot"]["sequence_number"] == 4
    change = newest_metadata(golden.root / "t_change_")
    text = newest_metadata(other.root / "t_change_").read_text()
    change.write_text(text.replace(str(other.root), str(golden.root)))
    table = lake.open_table(golden.location)
    in_order = [(1, "s3"), (2, "A"), (3, "s3"), (4, "A")]
    assert pairs(table) == in_order
    assert "wait" not in table.compact().sentence
    assert pairs(table) == in_order
    assert not table.check(unique=["id"]).failed


def pairs(table: lake.MixedTable) -> list[tuple[int, str]]:
    found = table.scan(["id", "v"]).to_arrow().to_pydict()
    return sorted(zip(found["id"], found["v"], strict=True))
