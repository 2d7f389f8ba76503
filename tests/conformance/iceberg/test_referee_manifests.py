"""Merged manifests of tables whose manifests Java merged: the same entries and counts."""

from __future__ import annotations

import pytest
from pyiceberg.table import StaticTable

import lakeformat as lake
from tests.golden.referee import referee_run

RUNS = ("rewrite_manifests", "rewrite_manifests_deletes")
KINDS = ("added", "existing", "deleted")
COUNTS = [f"{kind}_{content}_files_count" for kind in KINDS for content in ("data", "delete")]
OF_WRITERS = {
    "entries-processed",  # Spark writes the manifests before its commit, which then counts none
}


@pytest.mark.parametrize("name", RUNS)
def test_the_manifests_and_the_summary_are_those_of_java(name, tmp_path):
    java = referee_run(name, tmp_path / "t").result
    table = lake.open_table(str(tmp_path / "t"))
    rows = table.scan().to_arrow().sort_by("id")

    report = table.compact_manifests()

    found = table.system_table("manifests").scan().to_arrow()
    expected = java["after"]["manifests"]
    assert found.select(COUNTS).to_pylist() == [{k: e[k] for k in COUNTS} for e in expected]
    (called,) = java["result"]
    assert report.manifests_merged == called["rewritten_manifests_count"]
    assert report.manifests_after == called["added_manifests_count"]
    (snapshot,) = java["new_snapshots"]
    summary = table.latest_snapshot().summary
    assert {key: snapshot["summary"][key] for key in summary.keys() - OF_WRITERS} == {
        key: summary[key] for key in summary.keys() - OF_WRITERS
    }
    assert table.scan().to_arrow().sort_by("id") == rows
    newest = table.system_table("metadata_log_entries").scan().to_arrow()["file"].to_pylist()[-1]
    read = StaticTable.from_metadata(newest).scan().to_arrow().sort_by("id")
    assert read.to_pylist() == rows.to_pylist()
