"""Updates and merges that Spark made, made again: the same rows, counts and row ids."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyiceberg.table import StaticTable

import lakeformat as lake
from lakeformat.iceberg.commit.commit import commit_metadata
from lakeformat.iceberg.metadata.updates import set_properties
from tests.golden.iceberg import iceberg_table
from tests.golden.relocated import relocate

OPERATIONS = ("delete", "update", "merge")
SIZES = ("added-files-size", "removed-files-size", "total-files-size")
"""Each writer has its own encodings of Parquet, and copies of tables have longer paths."""
UPDATES = [
    ("cow_dml", 1, "copy-on-write", "id = 2", {"v": "B"}),
    (
        "mor_position_deletes",
        3,
        "merge-on-read",
        "id IN (3, 6)",
        {"v": lambda rows: pc.binary_join_element_wise(rows["v"], "!", "")},
    ),
    (
        "v3_deletion_vectors",
        3,
        "merge-on-read",
        "id = 3",
        {"v": lambda rows: pc.utf8_upper(rows["v"])},
    ),
]
"""Tables, the places of snapshots in which Spark updated rows, and these updates."""


def before(name: str, place: int, mode: str, root: Path) -> tuple[Any, Mapping[str, Any]]:
    """A copy of a table as it was before a commit of Java, and this commit."""
    golden = iceberg_table(name)
    relocate(golden.as_written, root, golden.expected["original_root"])
    table = lake.open_table(str(root))
    modes = {f"write.{each}.mode": mode for each in OPERATIONS}
    commit_metadata(table._handle, lambda loaded: set_properties(loaded.metadata, modes))
    of_java = golden.expected["snapshots"][place]
    table.rollback(snapshot=of_java["parent_id"])
    return table, of_java


def rows_of(table: Any, snapshot: int | None = None) -> list[dict[str, Any]]:
    """The rows by id, in version 3 with their row ids and the numbers of their last updates."""
    lineage = ["_row_id", "_last_updated_sequence_number"] if table.format_version > 2 else []
    columns = [*table.schema.column_names, *lineage]
    return table.scan(columns, snapshot=snapshot).to_arrow().sort_by("id").to_pylist()


def read_by_pyiceberg(table: Any) -> list[dict[str, Any]]:
    log = table.system_table("metadata_log_entries").scan().to_arrow()
    newest = log["file"].to_pylist()[-1]
    return StaticTable.from_metadata(newest).scan().to_arrow().sort_by("id").to_pylist()


def counts_in(summary: Mapping[str, str]) -> dict[str, str]:
    kinds = ("added-", "changed-", "deleted-", "removed-", "total-")
    return {key: summary[key] for key in summary.keys() - SIZES if key.startswith(kinds)}


@pytest.mark.parametrize(("name", "place", "mode", "where", "values"), UPDATES)
def test_an_update_has_the_rows_the_counts_and_the_row_ids_of_java(
    name, place, mode, where, values, tmp_path
):
    table, of_java = before(name, place, mode, tmp_path / "t")
    expected = rows_of(table, of_java["snapshot_id"])
    table.update(where, values)
    newest = table.latest_snapshot()
    found = rows_of(table)
    number = newest.snapshot.sequence_number
    for row in found:  # the snapshot of Java has a smaller number than one made later
        if row.get("_last_updated_sequence_number") == number:
            row["_last_updated_sequence_number"] = of_java["sequence_number"]
    assert found == expected
    assert newest.operation == of_java["operation"]
    if name == "mor_position_deletes":  # row 6 is alone in its file, which leaves
        assert newest.summary["deleted-data-files"] == "1"
        assert "deleted-data-files" not in of_java["summary"], "Java lists the row's position"
    else:
        assert counts_in(newest.summary) == counts_in(of_java["summary"])
    plain = [{key: row[key] for key in row if not key.startswith("_")} for row in expected]
    assert read_by_pyiceberg(table) == plain


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_an_upsert_has_the_rows_of_a_merge_of_java(mode, tmp_path):
    """Java writes kept and new rows of a partition to one file, this library to two."""
    table, of_java = before("cow_dml", 4, mode, tmp_path / "t")
    given = pa.table({"id": [1, 8], "v": ["A", "h"], "p": [1, 2]})
    report = table.upsert(given, by=["id"])
    assert (report.rows, report.replaced_rows) == (2, 1)
    assert rows_of(table) == rows_of(table, of_java["snapshot_id"])
    assert read_by_pyiceberg(table) == rows_of(table)
    assert table.latest_snapshot().operation == of_java["operation"]


@pytest.mark.parametrize("name", ["equality_deletes", "schema_evolution", "spec_evolution"])
def test_a_delete_that_rewrites_files_of_java_keeps_the_other_rows(name, tmp_path):
    """Also with older deletes by key, renamed columns, and files of older partition specs."""
    golden = iceberg_table(name)
    relocate(golden.as_written, tmp_path / "t", golden.expected["original_root"])
    table = lake.open_table(str(tmp_path / "t"))
    modes = {f"write.{each}.mode": "copy-on-write" for each in OPERATIONS}
    commit_metadata(table._handle, lambda loaded: set_properties(loaded.metadata, modes))
    everything = rows_of(table)
    first = everything[0]["id"]
    assert table.delete(f"id = {first}").rows == sum(row["id"] == first for row in everything)
    assert rows_of(table) == [row for row in everything if row["id"] != first]
