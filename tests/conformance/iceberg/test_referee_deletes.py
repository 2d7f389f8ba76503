"""Compacted delete files of tables whose delete files Java rewrote."""

from __future__ import annotations

from typing import Any

import pytest
from pyiceberg.table import StaticTable

import lakeformat as lake
from tests.golden.referee import referee_run

OF_WRITERS = {"added-files-size", "removed-files-size", "total-files-size"}
REWRITES = ("rewrite_position_deletes", "rewrite_position_deletes_dangling")
SAME = ("content", "records", "sequence_number", "file_sequence_number", "partition")


def counts_of(summary: dict[str, str]) -> dict[str, str]:
    known = ("added-", "removed-", "deleted-", "total-", "changed-", "manifests-", "operation")
    return {k: v for k, v in summary.items() if k.startswith(known) and k not in OF_WRITERS}


def delete_entries(table: lake.Table) -> dict[str, dict[str, Any]]:
    """The live delete files by their paths below the table."""
    found = {}
    for row in table.system_table("entries").scan().to_arrow().to_pylist():
        file = row["data_file"]
        if row["status"] != 2 and file["content"]:
            members = {**row, **file, "records": file["record_count"]}
            path = "data" + file["file_path"].rpartition("/data")[2]
            found[path] = {name: members[name] for name in SAME}
    return found


def read_by_pyiceberg(table: lake.Table) -> list[dict[str, Any]]:
    newest = table.system_table("metadata_log_entries").scan().to_arrow()["file"].to_pylist()[-1]
    return StaticTable.from_metadata(newest).scan().to_arrow().sort_by("id").to_pylist()


@pytest.mark.parametrize("name", REWRITES)
def test_position_deletes_are_rewritten_as_by_java(name, tmp_path):
    java = referee_run(name, tmp_path / "t").result
    table = lake.open_table(str(tmp_path / "t"))
    rows, before = table.scan().to_arrow().sort_by("id"), delete_entries(table)

    report = table.compact_deletes(rewrite_all=True)

    after = delete_entries(table)
    assert before.keys() - after.keys() == {each["path"] for each in java["files_removed"]}
    added = [after[path] for path in after.keys() - before.keys()]
    expected = [{key: each[key] for key in SAME} for each in java["files_added"]]
    assert sorted(map(repr, added)) == sorted(map(repr, expected))
    [called] = java["result"]
    assert report.replaced + report.dangling == called["rewritten_delete_files_count"]
    assert report.added == called["added_delete_files_count"]
    [snapshot] = java["new_snapshots"]
    assert counts_of(table.latest_snapshot().summary) == counts_of(snapshot["summary"])
    assert table.scan().to_arrow().sort_by("id") == rows
    assert read_by_pyiceberg(table) == rows.to_pylist()


def test_dangling_deletes_are_removed_as_by_java(tmp_path):
    java = referee_run("binpack_remove_dangling", tmp_path / "t").result
    table = lake.open_table(str(tmp_path / "t"))
    rows = table.scan().to_arrow().sort_by("id")
    table.compact(rewrite_all=True)

    report = table.compact_deletes()

    assert (report.dangling, report.added, delete_entries(table)) == (2, 0, {})
    expected = counts_of(java["new_snapshots"][1]["summary"])
    found = counts_of(table.latest_snapshot().summary)
    of_java = {"manifests-created", "manifests-kept", "manifests-replaced"}
    assert {k: found[k] for k in found.keys() - of_java} == {
        k: expected[k] for k in expected.keys() - of_java
    }
    assert table.scan().to_arrow().sort_by("id") == rows
    assert table.compact_deletes().reason == "no delete file needs merging"
