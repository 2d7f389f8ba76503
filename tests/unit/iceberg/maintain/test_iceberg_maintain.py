# SPDX-License-Identifier: Apache-2.0
"""One call does every step that an Iceberg table needs, and reports what still prevents health."""

from __future__ import annotations

import itertools
import os
from dataclasses import replace

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.environment import Environment
from lakeformat.iceberg.maintain.steps import STEPS, IcebergProgress
from lakeformat.iceberg.table.table import IcebergTable, load_iceberg_table
from lakeformat.iceberg.write.append import append
from lakeformat.storage import MemoryStorage
from lakeformat.tables.health.verdict import Verdict
from lakeformat.tables.maintain.maintain_report import MaintainReport
from tests.crash.simulated import NOW_MILLIS
from tests.golden.iceberg_orders import IcebergOrders
from tests.unit.iceberg.compact.made_deletes import delete_by_key, delete_by_position
from tests.unit.iceberg.path_table import ROOT, handle_on
from tests.unit.iceberg.write.made_tables import ids_of, made_table, stored_files

DAY = 24 * 3600 * 1000
NAMES = itertools.count()
LATER = Environment(
    now_millis=lambda: NOW_MILLIS + 30 * DAY,
    new_id=lambda: f"later-{next(NAMES):08d}",
    sleep_seconds=lambda _: None,
)
"""All snapshots but the newest are beyond the retention then."""


def neglected(storage: MemoryStorage, **properties: str) -> IcebergTable:
    """A table with 6 small files, as many manifests, and keys that each read compares."""
    merging = {"commit_manifest-merge_enabled": "false", "commit_manifest_min-count-to-merge": "4"}
    handle = made_table(storage, **merging, **properties)
    for number in range(6):
        append(handle, pa.table({"id": [number, 10 + number], "k": ["a", "b"]}))
    delete_by_key(handle, 0, 1, 12)
    return IcebergTable(handle_on(storage, LATER))


def small(storage: MemoryStorage, commits: int = 2, **properties: str) -> IcebergTable:
    """A table with some old snapshots; nothing else is due."""
    handle = made_table(storage, **properties)
    for number in range(commits):
        append(handle, pa.table({"id": [number], "k": ["a"]}))
    return IcebergTable(handle_on(storage, LATER))


def outcomes(report: MaintainReport) -> dict[str, str]:
    return {each.step: str(each.outcome) for each in report.steps}


def fail(*_: object, **__: object) -> None:
    raise lake.CommitConflictError("another writer was faster")


def test_one_call_does_every_step_that_is_due(storage):
    table = neglected(storage)
    rows = ids_of(table._handle)
    report = table.maintain()
    assert outcomes(report) == {
        "compact_deletes": "done",
        "compact": "done",
        "compact_manifests": "done",
        "expire": "done",
        "orphans": "not needed",
    }
    before, after = report.before, report.after
    assert (before.verdict, after.verdict) == (Verdict.DEGRADED, Verdict.HEALTHY)
    assert (before.files, after.files, before.delete_files) == (6, 1, 1)
    assert (before.snapshots, after.snapshots) == (7, 3)  # those of the three compactions are new
    assert sorted(ids_of(table._handle)) == sorted(rows)
    assert report.snapshot_ids[-1] == table.latest_snapshot().snapshot_id
    assert report.is_healthy
    assert "9 files of " in str(report.note)  # files for those three


def test_no_orphan_is_removed_if_the_newest_metadata_file_was_lost(clock):
    """The expiry publishes the number of the lost file, so the hint is right again after it."""
    storage = MemoryStorage("lost", clock=clock)
    table = small(storage, commits=4)
    data = {each for each in stored_files(storage) if "/data/" in each}
    storage.delete(f"{ROOT}/metadata/v5.metadata.json")
    clock.millis += 30 * DAY
    table = IcebergTable(handle_on(storage, LATER))
    report = table.maintain()
    assert outcomes(report)["expire"] == "done"
    assert outcomes(report)["orphans"] == "failed"
    [problem] = [each for each in report.obstacles if each.finding.startswith("orphans failed")]
    assert "newer metadata files up to version 5 were lost" in problem.finding
    assert data - stored_files(storage) == set()


def test_a_second_call_finds_nothing_to_do(storage):
    table = neglected(storage)
    table.maintain()
    files = stored_files(storage)
    report = table.maintain()
    assert report.is_idle
    assert report.reason == "healthy; no step was needed"
    assert stored_files(storage) == files


def test_a_dry_run_reports_the_steps_and_changes_nothing(storage):
    table = neglected(storage)
    files, position = stored_files(storage), table.position()
    report = table.maintain(dry_run=True)
    assert outcomes(report) == {
        "compact_deletes": "planned",
        "compact": "planned",
        "compact_manifests": "planned",
        "expire": "planned",
        "orphans": "not needed",
    }
    assert (report.after.files, report.after.snapshots) == (1, 1)
    assert "would compact 6 files in 1 group" in report.reason
    assert "would expire" in report.reason
    assert (stored_files(storage), table.position()) == (files, position)
    assert report.to_dict()["dry_run"]


def test_deletes_of_no_data_file_are_removed(storage):
    handle = made_table(storage)
    append(handle, pa.table({"id": [1], "k": ["a"]}))
    for _ in range(5):
        delete_by_position(handle, "file:///gone", 0, referenced_data_file="file:///gone")
    report = IcebergTable(handle).maintain()
    assert outcomes(report)["compact_deletes"] == "done"
    assert (report.before.delete_files, report.after.delete_files) == (5, 0)


def test_a_failed_step_does_not_stop_the_next(storage, monkeypatch):
    monkeypatch.setattr("lakeformat.iceberg.maintain.steps.compact", fail)
    table = neglected(storage)
    report = table.maintain()
    assert outcomes(report)["compact"] == "failed"
    assert outcomes(report)["expire"] == "done"
    [obstacle] = report.obstacles
    assert obstacle.finding == "compact failed: another writer was faster"
    assert obstacle.advice == f"lake maintain {table.location}"


def test_files_that_other_tables_may_use_are_kept(storage):
    """With ``gc.enabled = false`` a missing expiry is no problem of the table."""
    table = small(storage, gc_enabled="false")
    report = table.maintain()
    kept = "'gc.enabled' = 'false': other tables may use the files of this one"
    assert [each.reason for each in report.steps[-2:]] == [kept, kept]
    assert (report.before.snapshots, report.after.snapshots) == (2, 2)
    assert report.is_healthy


def test_an_invalid_property_is_an_obstacle(storage):
    table = small(storage, **{"history_expire_max-snapshot-age-ms": "soon"})
    [obstacle] = table.maintain().obstacles
    assert obstacle.finding.startswith("expire failed: ")
    assert "'soon'" in obstacle.finding


def test_a_consumer_that_stopped_is_an_obstacle_until_it_is_deleted(storage):
    small(storage, commits=3).consumers.set("mirror", next_snapshot=2)
    [file] = storage.list(f"{ROOT}/_lake/consumer/4f2b")
    later = replace(LATER, now_millis=lambda: file.modified_millis + 3 * DAY)
    table = IcebergTable(handle_on(storage, later))
    planned = table.maintain(dry_run=True, expire_consumers="2 d")
    assert (planned.obstacles, planned.after.snapshots) == ((), 1)
    assert "would delete 1 consumer ('mirror')" in planned.reason

    [obstacle] = table.maintain().obstacles
    assert obstacle.finding == (
        "consumer 'mirror' has not moved for 3 d; all consumers together keep 2 snapshots from "
        "expiring"
    )
    assert obstacle.advice.endswith(f"lake maintain {table.location} --expire-consumers '3 d'")

    done = table.maintain(expire_consumers="2 d")
    assert (done.obstacles, done.after.snapshots) == ((), 1)
    assert "deleted 1 consumer ('mirror')" in done.reason


def test_orphan_files_are_removed_after_three_days(tmp_path):
    orders = IcebergOrders(tmp_path)
    lost = orders.root / "data/lost.parquet"
    lost.write_bytes(b"lost")
    young = orders.root / "data/young.parquet"
    young.write_bytes(b"young")
    os.utime(lost, (1_600_000_000, 1_600_000_000))
    newest = lake.open_table(str(orders.root)).snapshots()[-1].snapshot.timestamp_ms
    then = replace(LATER, now_millis=lambda: newest + DAY)  # no snapshot expires yet
    table = lake.open_table(str(orders.root), environment=then)
    planned = table.maintain(dry_run=True).steps[-1]
    done = table.maintain()
    assert planned.reason.startswith("would remove 1 orphan file of 4 B")
    assert done.steps[-1].reason.startswith("removed 1 orphan file of 4 B, kept ")
    assert (done.before.dead_files, done.after.dead_files) == (1, 0)
    assert (lost.exists(), young.exists()) == (False, True)
    assert "files" in str(done.note)


def test_a_wrong_choice_is_refused_before_the_first_step(storage):
    table = small(storage)
    files = stored_files(storage)
    wrong = {"expire_consumers": "soon", "executor": "elsewhere", "on_progress": "loud"}
    for name, value in wrong.items():
        with pytest.raises(lake.InvalidRequestError, match=name):
            table.maintain(**{name: value})
    fixed = load_iceberg_table(storage, ROOT, metadata_file=f"{ROOT}/metadata/v3.metadata.json")
    with pytest.raises(lake.UnsupportedError, match="read-only"):
        fixed.maintain()
    assert stored_files(storage) == files
    assert fixed.maintain(dry_run=True).dry_run


def test_progress_knows_the_order_of_the_steps(storage):
    heard: list[lake.MaintainProgress] = []
    neglected(storage).maintain(on_progress=heard.append)
    begun = dict.fromkeys(each.step for each in heard if each.step in each.steps)
    assert IcebergProgress.steps == (*STEPS,) == (*begun,)
    assert ("compact", 1, "units") in {(each.step, each.total, each.unit) for each in heard}


def test_a_table_without_a_commit_needs_nothing(storage):
    report = IcebergTable(made_table(storage)).maintain()
    assert report.is_idle
    assert report.after.verdict == Verdict.EMPTY
