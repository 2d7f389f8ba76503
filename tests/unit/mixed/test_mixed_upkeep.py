"""Health, orphan files and maintenance of both stores of a Mixed table."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import lakeformat as lake
from lakeformat.cli.app import app
from lakeformat.iceberg.orphans.remove import OrphanOptions, find_orphans
from lakeformat.mixed.health import score_of_partitions
from lakeformat.mixed.optimizing.evaluate import PendingFiles
from lakeformat.mixed.optimizing.settings import OptimizingSettings
from spark_jobs import health as health_job
from spark_jobs import maintain as maintain_job
from spark_jobs import remove_orphans as orphans_job
from tests.unit.mixed.aged_table import HOUR, AgedTable
from tests.unit.mixed.edited_stores import edit

MIB = 1 << 20
WEEK = 7 * 24 * HOUR


@pytest.fixture
def aged(tmp_path: Path) -> AgedTable:
    return AgedTable(tmp_path)


def put(path: Path, days: float) -> Path:
    """Put a file there that was last changed a number of days ago."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"unused")
    changed = path.stat().st_mtime - days * 24 * 60 * 60
    os.utime(path, (changed, changed))
    return path


# Health


def test_the_score_is_that_of_the_worked_example():
    """40 files with 160 MB become 2 files without deletes."""
    settings = OptimizingSettings()
    before = PendingFiles(files=40, bytes=160 * MIB, rows=1000, equality_rows=20, position_rows=50)
    found = score_of_partitions([before], settings)
    assert (found.small_files, found.rows_to_merge, found.hidden_rows, found.total) == (
        2,
        32,
        15,
        49,
    )
    after = PendingFiles(files=2, bytes=160 * MIB, rows=1000, equality_rows=0, position_rows=0)
    found = score_of_partitions([after], settings)
    assert (found.small_files, found.rows_to_merge, found.hidden_rows, found.total) == (
        39,
        40,
        20,
        99,
    )
    assert score_of_partitions([], settings).total == 100


def test_health_counts_what_a_read_merges_and_advises_the_optimizing(aged):
    for number in range(7):
        aged.write((number, "x", "a"), (number, "y", "b"))
    report = aged.table.health()
    assert (report.files.files, report.files.rows, report.files.partitions) == (14, 14, 2)
    assert (report.deletes.equality_delete_files, report.deletes.equality_keys) == (14, 14)
    assert report.files.partitions_due == len(report.worst_partitions) == 2
    assert report.verdict == "degraded"
    [reason] = report.reasons
    assert reason.finding.startswith(
        "minor optimizing of 2 of 2 partitions in 2 tasks is due, for example of partition "
    )
    assert reason.finding.endswith(" fragments and deletes)")
    assert reason.advice.startswith("lake compact file:/")
    assert reason.advice.endswith("/db/t --strategy minor")
    aged.table.compact()
    report = aged.table.health()
    assert (report.verdict, report.score, report.reasons) == ("healthy", 100, ())
    assert (report.files.files, report.deletes.equality_keys) == (2, 0)
    aged.now += WEEK + 2 * HOUR
    report = aged.table.health()
    assert (report.merged_files, report.snapshots.count) == (28, 8)
    assert "28 files of" in report.reasons[-1].finding
    assert report.reasons[-1].advice.startswith("lake expire ")


def test_health_of_an_empty_table_and_of_one_that_cannot_be_optimized(aged):
    assert aged.table.health().verdict == "empty"
    edit(aged.root / "db/t", **{"format-version": 1})
    [reason] = lake.open_table(str(aged.root / "db/t")).health().reasons
    assert reason.finding.startswith("it cannot be optimized: the base store of ")
    assert reason.is_severe


# Orphan files


def test_orphan_files_of_both_stores_are_found_and_removed(aged):
    aged.write((1, "x", "a"))
    aged.merge()
    gone = [put(aged.root / f"db/{store}/data/p=x/old.parquet", 4) for store in ("t", "t_change_")]
    young = put(aged.root / "db/t/data/p=x/young.parquet", 1)
    table, files = lake.open_table(aged.table.location), aged.files()
    report = table.remove_orphans()
    assert (report.orphan_files, report.young_files, report.removed_files) == (2, 1, 0)
    assert {Path(each.path.removeprefix("file:")) for each in report.files} == {*gone}
    assert aged.files() == files
    report = table.remove_orphans(dry_run=False)
    assert report.removed_files == 2
    assert report.reason.startswith("change store: removed 1 orphan of ")
    assert files - aged.files() == {*gone}
    assert young.exists()


@pytest.mark.parametrize("store", ["t", "t_change_"])
def test_nothing_is_removed_while_the_newest_metadata_of_one_store_may_be_lost(aged, store):
    aged.write((1, "x", "a"))
    aged.merge()
    for each in ("t", "t_change_"):
        put(aged.root / f"db/{each}/data/p=x/old.parquet", 4)
    hint = aged.root / f"db/{store}/metadata/version-hint.text"
    right = hint.read_text()
    hint.write_text("99")
    files = aged.files()
    table = lake.open_table(aged.table.location)
    assert "version-hint.text has 99" in table.remove_orphans().objection
    with pytest.raises(lake.InvalidRequestError, match=r"no orphan file is deleted"):
        table.remove_orphans(dry_run=False)
    assert aged.files() == files
    [failed] = [each for each in table.maintain().steps if each.step == "orphans"]
    assert "no orphan file is deleted" in failed.reason
    hint.write_text(right)
    assert lake.open_table(aged.table.location).remove_orphans(dry_run=False).removed_files == 2


def test_a_file_of_one_store_that_the_other_one_names_is_no_orphan(aged):
    aged.write((1, "x", "a"))
    put(aged.root / "db/t/data/old.parquet", 4)
    other = put(aged.root / "db/t/data/of-the-change-store.parquet", 4)
    pair = lake.open_table(aged.table.location)._pair
    handle = replace(pair.base, pointer=pair.change)
    search = find_orphans(pair.base, OrphanOptions(), dry_run=True, beside=[handle])
    assert [search.is_needed(each) for each in search.orphans] == [False, False]
    search.beside[0]._name(other.as_uri())
    assert [each.name for each in search.orphans if search.is_needed(each)] == [other.name]


def test_a_refused_removal_of_one_store_deletes_no_file_of_the_other(aged):
    aged.write((1, "x", "a"))
    for number in range(120):
        put(aged.root / f"db/t/data/old-{number}.parquet", 4)
    put(aged.root / "db/t_change_/data/old.parquet", 4)
    files = aged.files()
    table = lake.open_table(aged.table.location)
    with pytest.raises(lake.InvalidRequestError, match="has no snapshot, so all its files look"):
        table.remove_orphans(dry_run=False)
    assert aged.files() == files
    with pytest.raises(lake.UnsupportedError, match="does not take external_paths: leave it out"):
        table.remove_orphans(external_paths=True)


# Maintenance


def test_a_maintenance_does_what_is_due_and_a_dry_run_says_so(aged):
    for number in range(7):
        aged.write((number, "x", "a"))
    aged.now += WEEK
    rows, files = aged.rows(), aged.files()
    planned = aged.table.maintain(dry_run=True)
    assert [str(each.outcome) for each in planned.steps] == ["planned", "planned", "not needed"]
    assert aged.files() == files
    steps: list[str] = []
    report = aged.table.maintain(on_progress=lambda each: steps.append(each.step))
    assert [each.step for each in report.steps] == ["compact", "expire", "orphans"]
    assert report.steps[0].reason.startswith("compacted 14 files of ")
    assert report.steps[1].report.change.snapshots == planned.steps[1].report.change.snapshots
    assert (report.before.verdict, report.after.verdict) == ("degraded", "healthy")
    assert report.is_healthy
    assert {*steps} == {"health", "compact", "expire", "orphans"}
    aged.now += 2 * HOUR
    assert aged.table.maintain().steps[1].report.merged_files == 14
    assert aged.table.maintain().steps[1].snapshots == 1  # the one before the removal
    assert aged.table.maintain().is_idle
    assert aged.rows() == rows


def test_a_maintenance_follows_the_properties_that_forbid_an_expiry(aged):
    aged.write((1, "x", "a"))
    aged.merge()
    aged.now += 2 * WEEK
    aged.set({"table-expire.enabled": "false"})
    assert "'table-expire.enabled' = 'false'" in aged.table.maintain().steps[1].reason
    aged.set({"gc.enabled": "false"}, "t_change_")
    steps = aged.table.maintain().steps
    assert ["gc.enabled" in each.reason for each in steps] == [False, True, True]


def test_commands_and_jobs_take_the_pair(tmp_path):
    aged = AgedTable(tmp_path)
    aged.write((1, "x", "a"))
    options = ["--format", "iceberg", "--warehouse", str(tmp_path)]

    def run(*words: str) -> str:
        shown = CliRunner().invoke(app, [*options, *words], env={"COLUMNS": "400"})
        assert shown.exit_code == 0, (shown.output, shown.exception)
        return shown.output

    assert "/db/t --strategy minor" in run("health", "db.t")
    assert "no orphans" in run("orphans", "db.t")
    assert "/db/t is healthy" in run("maintain", "db.t")
    [shown] = json.loads(run("health", "db", "--json"))
    assert shown["verdict"] == "healthy"
    request = {"warehouse": str(tmp_path), "catalog_options": {"format": "iceberg"}}
    request["table"] = "db.t"
    assert health_job.run(request)["report"]["score"] == 100
    assert maintain_job.run(request)["skipped"] is True
    assert orphans_job.run(request)["report"]["orphan_files"] == 0
    with pytest.raises(
        lake.UnsupportedError, match=r"is a Mixed table\. Its orphan files are searched"
    ):
        orphans_job.run({**request, "engine": "spark"})
