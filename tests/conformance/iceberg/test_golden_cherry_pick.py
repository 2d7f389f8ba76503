"""A staged snapshot is published as Java published it."""

from __future__ import annotations

import lakeformat as lake
from tests.golden.iceberg import iceberg_table
from tests.golden.relocated import relocate

OF_SPARK = {"app-id", "app-name", "engine-name", "engine-version", "iceberg-version"}


def test_the_summary_and_the_rows_are_those_of_java(tmp_path):
    golden = iceberg_table("branches_tags")
    target = tmp_path / "t"
    relocate(golden.as_written, target, golden.expected["original_root"])
    newest = max((target / "metadata").glob("*.metadata.json"))
    newest.rename(newest.with_name("v16.metadata.json"))  # no longer that of a catalog
    snapshots = golden.expected["snapshots"]
    [java] = [each for each in snapshots if "published-wap-id" in each["summary"]]
    table = lake.open_table(str(target))
    table.rollback(snapshot=java["parent_id"])

    table.cherry_pick(wap_id="wap-1")

    found = table.latest_snapshot()
    assert {**found.summary} == {k: v for k, v in java["summary"].items() if k not in OF_SPARK}
    rows = table.scan().to_arrow().sort_by("id").to_pylist()
    assert rows == sorted(java["rows"], key=lambda row: row["id"])
