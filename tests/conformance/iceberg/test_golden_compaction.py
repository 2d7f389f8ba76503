"""Compactions of tables that Java compacted: the same files, rows and counts."""

from __future__ import annotations

from typing import Any

import pyarrow.parquet as pq
import pytest

import lakeformat as lake
from tests.golden.referee import referee_run

RUNS: dict[str, dict[str, Any]] = {
    "after_spec_change": {},
    "binpack_default": {},
    "binpack_delete_ratio": {"min_input_files": 100},
    "binpack_deletes_threshold": {"delete_file_threshold": 1, "min_input_files": 100},
    "binpack_min_input_files": {},
    "binpack_nothing": {},
    "eq_deletes_start_seq": {"rewrite_all": True},
    "partial_progress": {"rewrite_all": True, "max_commits": 2},
    "sort": {"strategy": "sort", "order_by": ["id desc nulls last"], "rewrite_all": True},
    "sort_table_order": {"strategy": "sort", "rewrite_all": True},
    "split_large": {"target_file_bytes": 7000, "min_input_files": 2},
    "v3_dv_rewrite": {"rewrite_all": True},
    "where_filter": {"where": "p = 'b'", "rewrite_all": True},
    "zorder": {"strategy": "zorder", "order_by": ["x", "y"], "rewrite_all": True},
}
"""The options of each run, as Java was called."""
OF_WRITERS = (
    "added-files-size",  # each writer has its own encodings
    "removed-files-size",  # files of position deletes change their size when they are copied
    "total-files-size",
)
OF_ATTEMPTS = {"partial_progress": "manifests-replaced"}
"""Java published the second part in its second attempt, a number in the name of the manifest list,
and counts the manifests that both attempts replaced.
"""
LINEAGE = ["_row_id", "_last_updated_sequence_number"]


def rows_of(table: lake.Table, *more: str) -> list[str]:
    columns = [*table.schema.column_names, *more]
    return sorted(map(repr, table.scan(columns).to_arrow().to_pylist()))


def live_files(table: lake.Table) -> dict[str, dict[str, Any]]:
    """The live files by their paths below the table."""
    rows = table.system_table("files").scan().to_arrow().to_pylist()
    return {"data" + each["file_path"].rpartition("/data")[2]: each for each in rows}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", RUNS)
def test_the_same_files_are_replaced_as_in_java(name, tmp_path):
    java = referee_run(name, tmp_path / "t").result
    table = lake.open_table(str(tmp_path / "t"))
    more = LINEAGE if name.startswith("v3") else []
    rows, before = rows_of(table, *more), live_files(table)

    report = table.compact(**RUNS[name])

    after = live_files(table)
    assert rows_of(table, *more) == rows
    assert before.keys() - after.keys() == {each["path"] for each in java["files_removed"]}
    added = [after[path] for path in after.keys() - before.keys()]
    assert len(added) == len(java["files_added"])
    for member in ("spec_id", "sort_order_id"):
        assert [each[member] for each in added] == [each[member] for each in java["files_added"]]
    assert report.files_out == len(added)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", RUNS)
def test_the_summary_has_the_counts_of_java(name, tmp_path):
    run = referee_run(name, tmp_path / "t")
    table = lake.open_table(str(tmp_path / "t"))
    head = table.latest_snapshot()
    report = table.compact(**RUNS[name])
    java = run.result["new_snapshots"]
    if not java:
        assert report.snapshot_ids == ()
        assert report.reason == "no action needed: no group of files is due"
        assert table.latest_snapshot() == head
        return
    made = [each.snapshot for each in table.snapshots() if each.snapshot_id in report.snapshot_ids]
    assert len(made) == len(report.snapshot_ids) == len(java)
    for found, expected in zip(made, java, strict=True):
        assert found.operation == "replace"
        counted = found.summary.keys() - {*OF_WRITERS, OF_ATTEMPTS.get(name)}
        assert {key: found.summary[key] for key in counted} == {
            key: expected["summary"][key] for key in counted
        }


@pytest.mark.parametrize("name", ["eq_deletes_start_seq", "split_large", "v3_dv_rewrite"])
def test_new_files_have_the_sequence_number_of_the_planned_snapshot(name, tmp_path):
    run = referee_run(name, tmp_path / "t")
    table = lake.open_table(str(tmp_path / "t"))
    table.compact(**RUNS[name])
    entries = table.system_table("entries").scan().to_arrow().to_pylist()
    added = [each for each in entries if each["status"] == 1]
    numbers = {(each["sequence_number"], each["file_sequence_number"]) for each in added}
    java = run.result["files_added"]
    assert numbers == {(each["sequence_number"], each["file_sequence_number"]) for each in java}


def test_a_new_sequence_number_which_java_offers_is_refused(tmp_path):
    """An equality delete that is committed meanwhile would not apply to the new file."""
    run = referee_run("eq_deletes_new_seq", tmp_path / "t")
    table = lake.open_table(str(tmp_path / "t"))
    rows = rows_of(table)
    with pytest.raises(lake.InvalidRequestError, match=r"equality deletes .* must apply to them"):
        table.compact(use_starting_sequence_number=False, rewrite_all=True)
    report = table.compact(rewrite_all=True)
    removed = [each for each in run.result["files_removed"] if not each["content"]]
    assert (report.files_in, run.result["rows_unchanged"]) == (len(removed), True)
    assert rows_of(table) == rows


@pytest.mark.parametrize("name", ["sort", "sort_table_order", "zorder"])
def test_rows_are_in_the_order_of_java(name, tmp_path):
    run = referee_run(name, tmp_path / "t")
    [java] = (run.as_written / "after/table" / each["path"] for each in run.result["files_added"])
    table = lake.open_table(str(tmp_path / "t"))
    table.compact(**RUNS[name])
    assert table.scan().to_arrow().to_pylist() == pq.read_table(java).to_pylist()
