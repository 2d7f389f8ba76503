"""A removal of orphans deletes the files that Java's procedure does."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import lakeformat as lake
from lakeformat.iceberg.table import IcebergTable
from tests.golden.iceberg import iceberg_table
from tests.golden.referee import referee_run
from tests.golden.relocated import relocate

LONG_AGO = 1_600_000_000
REMOVED = (
    "metadata/o8.metadata.json",
    "metadata/o7.avro",
    "else/o9",
    "data/o2.parquet",
    "data/p=a/o1.parquet",
)
HIDDEN = (
    "data/_tmp/o3.parquet",
    "data/.hid/o4.parquet",
    "data/p=a/.o5.parquet",
    "data/p=a/_o6.parquet",
)


def opened(root: Path) -> IcebergTable:
    table = lake.open_table(str(root))
    assert isinstance(table, IcebergTable)
    return table


def below(root: Path, report: lake.OrphanReport) -> set[str]:
    prefix = f"{root.as_uri()}/"
    return {each.path.removeprefix(prefix) for each in report.files}


def make_old(root: Path, *paths: str) -> None:
    for path in paths:
        os.utime(root / path, (LONG_AGO, LONG_AGO))


def sorted_rows(table: IcebergTable) -> list[dict[str, Any]]:
    return sorted(table.scan().to_arrow().to_pylist(), key=str)


def test_a_dry_run_lists_the_files_that_java_lists(tmp_path):
    golden, root = iceberg_table("orphans"), tmp_path / "t"
    relocate(golden.as_written, root, golden.expected["original_root"])
    make_old(root, *golden.expected["planted_old"])
    report = opened(root).remove_orphans()
    assert below(root, report) == set(golden.expected["remove_orphan_dry_run"])
    assert (report.young_files, report.removed_files) == (1, 0)
    assert report.scanned_bytes > report.orphan_bytes == 7 * 603
    assert all((root / path).exists() for path in golden.expected["planted_old"])


def test_a_removal_leaves_the_files_that_java_left(tmp_path):
    run = referee_run("orphans_removed", tmp_path / "t")
    make_old(run.root, *REMOVED, *HIDDEN)
    table = opened(run.root)
    before = sorted_rows(table)
    report = table.remove_orphans(dry_run=False)
    assert below(run.root, report) == set(run.result["physically_deleted"]) == set(REMOVED)
    assert run.files() == run.files_after()
    assert sorted_rows(table) == before
    assert table.remove_orphans(dry_run=False).orphan_files == 0


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_file_that_metadata_names_under_another_scheme_is_an_error(dry_run, tmp_path):
    run = referee_run("orphans_prefix_mismatch", tmp_path / "t")
    make_old(run.root, *run.files())
    before = run.files()
    # The metadata now names the place as one of an object store, as in Java's call.
    for file in run.root.glob("metadata/*.metadata.json"):
        metadata = json.loads(file.read_text())
        metadata["location"] = f"s3a://bucket{run.root}"
        file.write_text(json.dumps(metadata))
    with pytest.raises(lake.InvalidRequestError, match="was moved or copied"):
        opened(run.root).remove_orphans(dry_run=dry_run)
    assert run.files() == before


def test_links_are_neither_followed_nor_removed(tmp_path):
    root, outside = tmp_path / "t", tmp_path / "other"
    golden = iceberg_table("v1_append")
    relocate(golden.as_written, root, golden.expected["original_root"])
    outside.mkdir()
    (outside / "f.parquet").write_bytes(b"1")
    (root / "data/linked").symlink_to(outside)
    (root / "data/f.parquet").symlink_to(outside / "f.parquet")
    (root / "data/lost.parquet").write_bytes(b"1")
    for name in ("linked", "f.parquet", "lost.parquet"):
        os.utime(root / "data" / name, (LONG_AGO, LONG_AGO), follow_symlinks=False)
    report = opened(root).remove_orphans("1 d", dry_run=False)
    assert [each.path.rpartition("/")[2] for each in report.files] == ["lost.parquet"]
    assert report.unknown_files == 2
    assert (root / "data/linked").is_symlink()
    assert (outside / "f.parquet").exists()
