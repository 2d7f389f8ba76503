"""An expiry removes the snapshots, and deletes the files, that Java's procedure does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import lakeformat as lake
from lakeformat.environment import Environment
from lakeformat.iceberg.table import IcebergTable
from lakeformat.tables.removal import FileClass
from tests.golden.referee import RefereeRun, referee_run

CALLS: dict[str, dict[str, Any]] = {
    "expire_retain_last": {"older_than": "at", "retain_min": 2},
    "expire_refs": {"older_than": "at", "retain_min": 1},
    "expire_ids": {"snapshots": [2076450243334241493, 3322887244782634479]},
    "expire_clean_metadata": {"older_than": "at", "retain_min": 1, "clean_metadata": True},
}
COUNTED = {
    FileClass.DATA: "deleted_data_files_count",
    FileClass.MANIFEST: "deleted_manifest_files_count",
    FileClass.MANIFEST_LIST: "deleted_manifest_lists_count",
    FileClass.STATISTICS: "deleted_statistics_files_count",
}
pytestmark = pytest.mark.parametrize("name", CALLS)


def opened(run: RefereeRun) -> tuple[IcebergTable, dict[str, Any]]:
    """The table at the time of Java's call, and the arguments."""
    now = run.result["at_ms"]
    world = Environment(now_millis=lambda: now)
    table = lake.open_table(str(run.root), environment=world)
    assert isinstance(table, IcebergTable)
    arguments = CALLS[run.name]
    return table, arguments | ({"older_than": now} if "older_than" in arguments else {})


def rows(table: IcebergTable) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table.scan().to_arrow().to_pylist()
    return sorted(found, key=str)


def test_the_files_left_are_those_that_java_left(name, tmp_path):
    run = referee_run(name, tmp_path / "t")
    table, arguments = opened(run)
    before = rows(table)
    report = table.expire_snapshots(**arguments)
    assert set(report.snapshots) == set(run.result["snapshots_removed"])
    assert run.files() == run.files_after()
    [counts] = run.result["result"]
    assert {key: report.deleted.files.get(kind, 0) for kind, key in COUNTED.items()} == {
        key: counts[key] for key in COUNTED.values()
    }
    assert rows(table) == before
    assert report.is_complete


def test_the_metadata_left_is_that_of_java(name, tmp_path):
    run = referee_run(name, tmp_path / "t")
    table, arguments = opened(run)
    table.expire_snapshots(**arguments)
    current = run.result["after"]["current_metadata"]
    ours = json.loads((run.root / current).read_bytes())
    java = json.loads((run.as_written / "after/table" / current).read_bytes())
    for key in ("current-snapshot-id", "refs", "current-schema-id", "default-spec-id"):
        assert ours[key] == java[key]
    for key, name_of in (
        ("snapshots", "snapshot-id"),
        ("snapshot-log", "snapshot-id"),
        ("schemas", "schema-id"),
        ("partition-specs", "spec-id"),
        ("statistics", "snapshot-id"),
        ("metadata-log", "metadata-file"),
    ):
        assert [_name(each[name_of]) for each in ours[key]] == [
            _name(each[name_of]) for each in java[key]
        ], key


def test_a_dry_run_names_the_same_files_and_deletes_none(name, tmp_path):
    run = referee_run(name, tmp_path / "t")
    table, arguments = opened(run)
    before = run.files()
    report = table.expire_snapshots(**arguments, dry_run=True)
    assert run.files() == before
    planned = {Path(removal.path).relative_to(run.root).as_posix() for removal in report.removals}
    deleted = set(run.result["physically_deleted"])
    assert planned == {path for path in deleted if not path.endswith(".metadata.json")}


def _name(value: Any) -> Any:
    return value.rpartition("/")[2] if isinstance(value, str) else value
