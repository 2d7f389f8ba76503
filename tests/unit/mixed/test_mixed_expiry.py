"""An expiry of a Mixed table removes old snapshots and merged changes, and nothing needed."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import lakeformat as lake
from lakeformat.cli.app import app
from lakeformat.iceberg.write.file_changes import ChangedFiles
from lakeformat.iceberg.write.publish import publish_change
from spark_jobs import expire_snapshots as expire_job
from tests.unit.mixed.aged_table import COLUMNS, HOUR, AgedTable
from tests.unit.mixed.edited_stores import edit, newest_metadata

DAY = 24 * HOUR
WEEK = 7 * DAY


@pytest.fixture
def aged(tmp_path: Path) -> AgedTable:
    return AgedTable(tmp_path)


def test_merged_changes_are_removed_after_their_time_and_their_files_a_time_later(aged):
    aged.write((1, "x", "a"), (2, "y", "a"))
    aged.write((1, "x", "b"))
    aged.merge()
    aged.write((2, "y", "b"))
    before, files = aged.rows(), aged.files()
    aged.now += WEEK - HOUR
    assert aged.table.expire_snapshots().merged_files == 0
    aged.now += HOUR
    planned = aged.table.expire_snapshots(dry_run=True)
    report = aged.table.expire_snapshots()
    assert (report.merged_files, report.merged_rows) == (planned.merged_files, 6) == (6, 6)
    assert report.removals == ()
    assert aged.change_files() == [3]  # not merged yet, although it is old
    assert aged.rows() == before
    assert aged.table.snapshots()[-1].commit_kind == "COMPACT"
    assert not [each for each in files if "/t_change_/data/" in str(each) and not each.exists()]
    aged.now += WEEK + HOUR
    planned = aged.table.expire_snapshots(dry_run=True)
    assert aged.table.expire_snapshots().snapshots == planned.snapshots
    gone = {each for each in files if "/t_change_/data/" in str(each) and not each.exists()}
    named = {each.path for each in planned.removals if "/t_change_/data/" in each.path}
    assert len(gone) == 6
    assert {each.name for each in gone} == {each.rpartition("/")[2] for each in named}
    assert aged.rows() == before
    aged.merge()
    assert aged.rows() == before


def test_the_report_names_the_command_that_lists_the_consumers_of_the_pair(aged):
    aged.write((1, "x", "a"))
    aged.table.consumers.set("mirror", after=aged.table.position())
    aged.write((2, "y", "a"))
    aged.merge()
    aged.now += 2 * WEEK
    report = aged.table.expire_snapshots()
    listing = [line for line in report.lines if "lake consumer list" in line]
    assert report.change.held
    assert listing
    assert all(f"`lake consumer list {report.table}`" in line for line in listing)
    assert [each.id for each in lake.open_table(report.table).consumers.list()] == ["mirror"]


def test_a_dry_run_counts_base_snapshots_that_are_free_once_the_change_store_is_expired(aged):
    """The begin of a batch in the change store keeps the base snapshot of its overwrite."""
    aged.write((1, "x", "a"))
    aged.merge()
    aged.table.write(pa.table([[1], ["x"], ["batch"]], schema=COLUMNS), overwrite="table")
    for value in ("b", "c"):
        aged.now += HOUR
        aged.write((1, "x", value))
        aged.merge()
    aged.now += 2 * WEEK
    planned = aged.table.expire_snapshots(dry_run=True)
    overdue = aged.table.health().snapshots.overdue
    assert aged.table.expire_snapshots().snapshots == planned.snapshots
    assert overdue == len(planned.snapshots)


def test_a_dry_run_changes_nothing(aged):
    aged.write((1, "x", "a"))
    aged.merge()
    aged.now += 2 * WEEK
    files = aged.files()
    report = aged.table.expire_snapshots(dry_run=True)
    assert report.has_work
    assert report.lines[-1].startswith("would remove 2 files of ")
    assert "from the newest snapshot of the change store" in report.lines[-1]
    assert aged.files() == files


def test_changes_that_were_merged_within_the_hour_are_kept_for_readers(aged):
    """A reader that has loaded the base store before the merge still looks for them."""
    aged.write((1, "x", "a"))
    aged.now += 2 * WEEK
    aged.merge()
    assert aged.table.expire_snapshots().merged_files == 0
    aged.now += HOUR
    assert aged.table.expire_snapshots().merged_files == 2


def test_an_open_batch_finds_the_state_and_the_changes_of_its_beginning(aged, tmp_path):
    aged.write((1, "x", "a"))
    aged.merge()
    batch, seen = aged.begin(), aged.table.position()
    at_begin = aged.rows()
    aged.write((1, "x", "b"))
    aged.now += 2 * HOUR
    aged.set({"change.data.ttl.minutes": "0"})
    aged.merge()  # as Amoro, which does not wait
    aged.set({"change.data.ttl.minutes": "600"})
    aged.now += 2 * HOUR
    aged.set({"change.data.ttl.minutes": "300"})
    report = aged.table.expire_snapshots(older_than="1 s")
    assert report.open_batch is not None
    assert report.lines[-1] == (
        f"kept all changes since the oldest open batch, {report.open_batch}: `lake end-batch "
        f"{aged.table.location}` ends a batch of this library that hangs"
    )
    assert f"transaction {batch}, begun at " in report.lines[-1]
    found = aged.table.scan(snapshot=seen).to_arrow().to_pylist()
    assert [tuple(each.values()) for each in found] == at_begin
    assert max(aged.change_files()) == batch + 1


def test_the_record_of_merged_changes_stays_readable(aged):
    """A rewrite of the base store alone has no record of its own."""
    aged.write((1, "x", "a"), (2, "x", "a"))
    aged.merge()
    record = aged.table.scan()._state.merged
    for _ in range(3):
        publish_change(aged.table._pair.base, ChangedFiles(is_recorded=True), commit=None)
        aged.now += DAY
    report = aged.table.expire_snapshots()
    assert report.base.snapshots == ()
    assert report.base.needed == 3
    assert "base store: kept 3 snapshots that the newest state" in "; ".join(report.lines)
    assert aged.table.scan()._state.merged == record
    aged.write((2, "x", "b"))
    aged.merge()
    aged.now += DAY
    assert len(aged.table.expire_snapshots().base.snapshots) == 4


def test_properties_decide_by_amoros_names(aged):
    for value in "abc":
        aged.write((1, "x", value))
        aged.merge()
        aged.now += 7 * HOUR
    assert len(aged.table.expire_snapshots(dry_run=True).base.snapshots) == 2
    aged.set({"snapshot.keep.duration": "15 h"})
    assert len(aged.table.expire_snapshots(dry_run=True).base.snapshots) == 1
    aged.set({"snapshot.keep.min-count": "3"})
    assert len(aged.table.expire_snapshots(dry_run=True).base.snapshots) == 0
    assert len(aged.table.expire_snapshots(dry_run=True, retain_min=1).base.snapshots) == 1
    aged.set({"snapshot.keep.duration": "soon"})
    with pytest.raises(lake.InvalidRequestError, match="'soon', not a duration such as '720min'"):
        aged.table.expire_snapshots()


def test_the_newest_checkpoint_of_flink_is_kept(aged):
    aged.write((1, "x", "a"))
    edit_summary(aged.root / "db/t_change_", "flink.max-committed-checkpoint-id", "7")
    aged.now += DAY
    aged.write((1, "x", "z"))
    aged.now += HOUR
    report = aged.table.expire_snapshots(older_than="1 s")
    assert (report.change.snapshots, report.change.needed) == ((), 1)
    aged.now += WEEK
    assert len(aged.table.expire_snapshots(older_than="1 s").change.snapshots) == 1


def edit_summary(store: Path, name: str, value: str) -> None:
    snapshots = json.loads(newest_metadata(store).read_text())["snapshots"]
    snapshots[-1]["summary"][name] = value
    edit(store, snapshots=snapshots)


def test_a_store_whose_files_others_use_is_not_expired(aged):
    aged.write((1, "x", "a"))
    aged.set({"gc.enabled": "false"}, "t_change_")
    with pytest.raises(lake.UnsupportedError, match=r"'gc.enabled' of .*/t_change_ is false"):
        aged.table.expire_snapshots()
    with pytest.raises(lake.UnsupportedError, match="does not take retain_max: pass retain_min"):
        aged.table.expire_snapshots(retain_max=3)


def test_random_work_and_expiries_agree_with_a_dict(aged):
    seed = random.randrange(1 << 30)
    print(f"SEED={seed}")
    draw = random.Random(seed)
    model: dict[tuple[int, str], str] = {}
    for number in range(10):
        act = draw.choice(["write", "write", "merge", "expire"])
        if act == "write":
            for _ in range(draw.randrange(1, 3)):
                row = (draw.randrange(4), draw.choice("xy"), str(number))
                kind = draw.choice(["+U", "+U", "-D"])
                aged.write(row, kind=kind)
                model.pop(row[:2], None)
                if kind == "+U":
                    model[row[:2]] = row[2]
        elif act == "merge":
            aged.merge()
        else:
            aged.table.expire_snapshots(older_than=draw.choice([None, "1 s", "1 d"]))
        aged.now += draw.choice([HOUR // 4, HOUR, DAY, 4 * DAY])
        assert aged.rows() == sorted((*key, value) for key, value in model.items())


def test_commands_and_jobs_expire_the_pair(tmp_path):
    aged = AgedTable(tmp_path)
    aged.write((1, "x", "a"))
    aged.merge()
    words = ["--format", "iceberg", "--warehouse", str(tmp_path), "expire", "db.t"]
    shown = CliRunner().invoke(app, words, env={"COLUMNS": "400"})
    assert shown.exit_code == 0, shown.output
    assert "2 files of " in shown.output
    assert "with 2 merged changes from the newest snapshot of the change store" in shown.output
    request = {"warehouse": str(tmp_path), "catalog_options": {"format": "iceberg"}}
    result = expire_job.run({**request, "table": "db.t", "dry_run": True})
    assert result["reason"].startswith("change store: 1 snapshot would expire")
    assert result["report"]["merged_files"] == 0
