"""``table.maintain()``: all that a table needs, in order, with figures of before and after."""

from __future__ import annotations

import json
import os
import re
import time
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.paimon.maintain.steps import STEPS
from lakeformat.paimon.table import Table
from lakeformat.tables.maintain.maintain_report import StepOutcome
from tests.crashed_writer import BUCKETS, crashed_table
from tests.expired import missing, unneeded

HOUR = 3_600_000


def steps_of(report):
    return {step.step: step for step in report.steps}


def outcomes_of(report):
    return {step.step: str(step.outcome) for step in report.steps}


def files_below(table: lake.Table) -> set[str]:
    root = Path(table.location.removeprefix("file://"))
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


def left_by_crash(table: lake.Table, *, days_old: float) -> None:
    """A file without a commit."""
    live = next(Path(table.location.removeprefix("file://")).glob("bucket-*/data-*"))
    dead = live.with_name(f"data-00000000-0000-0000-0000-000000000000-0{live.suffix}")
    dead.write_bytes(live.read_bytes())
    then = time.time() - days_old * 86_400
    os.utime(dead, (then, then))


def later(table: lake.Table, millis: int) -> Table:
    """The same table, looked at so much later."""
    handle = table._handle
    now = handle.environment.now_millis() + millis
    return Table(replace(handle, environment=replace(handle.environment, now_millis=lambda: now)))


@pytest.mark.parametrize("producer", ["none", "lookup"])
def test_one_call_heals_the_table_of_a_crashed_writer(catalog, producer):
    table = crashed_table(
        catalog, commits=20, consumer=None, options={"changelog-producer": producer}
    )
    rows = table.scan().to_arrow().sort_by("id") if producer == "none" else None
    report = table.maintain()

    assert (str(report.before.verdict), str(report.after.verdict)) == ("unhealthy", "healthy")
    assert (report.before.files, report.after.files) == (20 * BUCKETS, BUCKETS)
    assert (report.before.level_0_files, report.after.level_0_files) == (20 * BUCKETS, 0)
    assert (report.before.dead_files, report.after.dead_files) == (30, 0)
    assert report.obstacles == ()
    assert report.is_healthy
    if rows is not None:
        assert table.scan().to_arrow().sort_by("id").equals(rows)
    assert not missing(table)
    assert not unneeded(table)


def test_no_orphan_is_removed_if_the_newest_snapshot_was_lost(catalog):
    """The compaction publishes the number of the lost snapshot, so LATEST is right after it."""
    table = crashed_table(catalog, commits=20, consumer=None)
    [lost] = Path(table.location.removeprefix("file://")).glob("snapshot/snapshot-20")
    lost.unlink()
    left_by_crash(table, days_old=9)
    files = {each for each in files_below(table) if "data-00000000" in each}
    report = table.maintain()
    assert outcomes_of(report)["compact"] == "done"
    assert outcomes_of(report)["orphans"] == "failed"
    assert "newer files up to snapshot-20 were lost" in steps_of(report)["orphans"].reason
    assert files <= files_below(table)


def test_exactly_the_snapshots_that_the_retention_demands_remain(catalog):
    table = crashed_table(
        catalog, commits=20, consumer=None, options={"snapshot.expire.limit": "5"}
    )
    report = table.maintain()
    assert (report.before.snapshots, report.after.snapshots) == (20, 10)
    assert [each.id for each in table.snapshots()][-1] == report.snapshot_ids[-1]


def test_files_that_the_compaction_replaced_go_once_no_kept_snapshot_needs_them(catalog):
    table = crashed_table(
        catalog, commits=8, consumer=None, options={"snapshot.num-retained.min": "1"}
    )
    first = table.maintain()
    kept = [file for file in files_below(table) if "/data-" in file]
    second = later(table, 2 * HOUR).maintain()
    left = [file for file in files_below(table) if "/data-" in file]

    assert (first.after.snapshots, second.after.snapshots) == (2, 1)
    assert len(kept) > len(left) == BUCKETS
    assert second.after.time_travel_bytes == 0


def test_a_healthy_table_needs_no_step(catalog):
    table = crashed_table(catalog, commits=20, consumer=None)
    table.maintain()
    before = files_below(table)
    report = table.maintain()

    assert report.is_idle
    assert set(outcomes_of(report).values()) == {"not needed"}
    assert "no step was needed" in report.reason
    assert files_below(table) == before


def test_a_dry_run_changes_nothing_and_expects_what_a_run_brings(catalog):
    table = crashed_table(catalog, commits=20)
    before = files_below(table)
    planned = table.maintain(dry_run=True, expire_consumers="1 d")
    assert files_below(table) == before
    done = table.maintain(expire_consumers="1 d")

    assert outcomes_of(planned) == {
        "partitions": "not needed",
        "compact": "planned",
        "expire": "planned",
        "orphans": "planned",
    }
    assert planned.before == replace(done.before, dead_files=30)
    assert planned.obstacles == ()
    for name in ("files", "snapshots", "changelogs", "dead_files"):
        assert getattr(planned.after, name) == getattr(done.after, name), name


def test_a_stuck_consumer_is_named_with_its_age_and_the_command_that_deletes_it(catalog):
    table = crashed_table(catalog, commits=20)
    report = table.maintain()

    [obstacle] = report.obstacles
    assert "consumer 'dashboard' has not moved for 2 d" in obstacle.finding
    assert "so snapshot 3 and all later ones cannot expire" in obstacle.finding
    assert obstacle.advice.endswith("lake maintain shop.orders --expire-consumers '2 d'")
    assert not report.is_healthy
    assert [each.id for each in table.consumers.list()] == ["dashboard"]
    assert table.snapshots()[0].id == 3


def test_a_consumer_goes_only_at_the_age_that_the_caller_gives(catalog):
    table = crashed_table(catalog, commits=20)
    table.maintain(expire_consumers="3 d")
    assert [each.id for each in table.consumers.list()] == ["dashboard"]
    report = table.maintain(expire_consumers="2 d")

    assert table.consumers.list() == []
    assert report.after.snapshots == 10
    assert "deleted 1 consumer ('dashboard')" in steps_of(report)["expire"].reason
    assert report.obstacles == ()


def test_a_consumer_goes_by_the_table_s_own_expiration(catalog):
    table = crashed_table(catalog, commits=12, options={"consumer.expiration-time": "1 d"})
    assert table.maintain().after.snapshots == 10
    assert table.consumers.list() == []


def test_a_consumer_that_moved_today_is_no_obstacle(catalog):
    table = crashed_table(catalog, commits=20)
    table.consumers.set("dashboard", next_snapshot=4)
    report = table.maintain()
    assert report.obstacles == ()
    assert "kept snapshots from 4 on for consumer 'dashboard'" in steps_of(report)["expire"].reason


def test_a_changelog_that_outlives_its_snapshot_expires_by_its_own_retention(catalog):
    options = {
        "snapshot.num-retained.max": "10",
        "changelog.num-retained.min": "12",
        "changelog.num-retained.max": "15",
    }
    table = crashed_table(catalog, commits=20, consumer=None, options=options)
    report = table.maintain()
    # Snapshots 12 to 21 are kept. Of the changelogs of the others, those above 21 - 12.
    assert report.after.snapshots == 10
    assert report.after.changelogs == 2
    assert (report.is_healthy, missing(table), unneeded(table)) == (True, set(), set())


def test_partitions_expire_only_by_the_table_s_own_setting(catalog):
    columns = [("id", "BIGINT NOT NULL"), ("dt", "STRING NOT NULL")]
    for name, options in (("kept", {}), ("timed", {"partition.expiration-time": "7 d"})):
        table = catalog.create_table(
            f"shop.{name}", columns, partition_by=["dt"], primary_key=["id", "dt"],
            options={"bucket": "1", "partition.timestamp-formatter": "yyyy-MM-dd", **options},
        )  # fmt: skip
        table.write(pa.table({"id": [1, 2], "dt": ["2020-01-01", "2999-01-01"]}))
        table.maintain()
    left = [catalog.table(f"shop.{name}").scan().count() for name in ("kept", "timed")]
    assert left == [2, 1]


def test_rows_of_postponed_buckets_get_theirs(catalog):
    table = crashed_table(catalog, commits=3, dead_files=0, consumer=None, options={"bucket": "-2"})
    assert table.scan().count() == 0
    report = table.maintain()
    assert table.scan().count() > 0
    assert report.is_healthy


def test_buckets_that_are_not_due_stay_as_they_are(catalog):
    columns = [("id", "BIGINT NOT NULL"), ("dt", "STRING NOT NULL")]
    table = catalog.create_table(
        "shop.days", columns, partition_by=["dt"], primary_key=["id", "dt"],
        options={"bucket": "1", "write-only": "true"},
    )  # fmt: skip
    for number in range(6):
        table.write(pa.table({"id": [number], "dt": ["busy"]}))
    for number in range(2):
        table.write(pa.table({"id": [number], "dt": ["calm"]}))
    report = table.maintain()
    assert (report.before.files, report.after.files) == (8, 1 + 2)
    assert (steps_of(report)["compact"].files_in, report.is_healthy) == (6, True)


def test_rows_that_reads_do_not_see_yet_are_compacted_however_few_files_hold_them(catalog):
    table = crashed_table(catalog, commits=1, consumer=None, options={"merge-engine": "first-row"})
    assert table.scan().count() == 0
    assert table.maintain().is_healthy
    assert table.scan().count() == 60


def test_files_whose_rows_are_mostly_hidden_are_written_anew(catalog):
    options = {"deletion-vectors.enabled": "true"}
    table = catalog.create_table("shop.log", [("id", "BIGINT")], options=options)
    table.write(pa.table({"id": range(10)}))
    table.delete("id < 8")
    report = table.maintain()
    assert steps_of(report)["compact"].outcome is StepOutcome.DONE
    assert (report.is_healthy, table.scan().count()) == (True, 2)


def test_the_same_goes_for_files_of_a_primary_key_table(catalog):
    options = {"deletion-vectors.enabled": "true", "bucket": "1"}
    columns = [("id", "BIGINT")]
    table = catalog.create_table("shop.log", columns, primary_key=["id"], options=options)
    table.write(pa.table({"id": range(10)}))
    table.compact(strategy="full", executor="serial")
    table.delete("id < 4")
    table.compact(strategy="minor", executor="serial")
    report = table.maintain()
    assert steps_of(report)["compact"].outcome is StepOutcome.DONE
    assert (report.is_healthy, table.scan().count()) == (True, 6)
    assert table.health().deletes.hidden_rows == 0


def test_rows_that_only_delete_others_go_where_they_are_many(catalog):
    table = crashed_table(catalog, commits=1, dead_files=0, consumer=None)
    rows = table.scan().to_arrow()
    table.write(rows.slice(0, 40), kinds=["-D"] * 40)
    report = table.maintain()
    assert steps_of(report)["compact"].outcome is StepOutcome.DONE
    assert (report.is_healthy, table.scan().count()) == (True, 20)


def test_small_files_of_an_append_table_become_one(catalog):
    table = catalog.create_table("shop.log", [("id", "BIGINT")])
    for number in range(12):
        table.write(pa.table({"id": [number]}))
    report = table.maintain()
    assert (report.before.files, report.after.files) == (12, 1)
    assert report.before.level_0_files is None
    assert report.is_healthy


def test_an_empty_table_is_no_trouble(catalog):
    report = catalog.create_table("shop.log", [("id", "BIGINT")]).maintain()
    assert (report.is_healthy, report.is_idle) == (True, True)


def test_files_younger_than_a_day_stay(catalog):
    table = crashed_table(catalog, commits=6, dead_files=0, consumer=None)
    with table.new_writer() as writer:
        writer.write(pa.table({"id": [1], "name": ["x"], "updated": [1]}))
        [message] = writer.prepare()
    report = table.maintain()
    assert report.after.dead_files == 0
    assert "kept 1 file younger than a day" in steps_of(report)["orphans"].reason
    table.commit([message])


def test_files_kept_because_the_newest_commit_is_old_are_not_called_young(catalog):
    table = crashed_table(catalog, commits=2, dead_files=0, consumer=None)
    left_by_crash(table, days_old=2.5)
    report = table.maintain()
    reason = steps_of(report)["orphans"].reason
    assert "younger than" not in reason
    assert "kept 1 file that no snapshot needs" in reason
    assert "less than a day before the newest commit, snapshot 2" in reason
    assert "lake orphans shop.orders --older-than '1 d' --remove" in reason
    assert table.remove_orphans(older_than="1 d", dry_run=False).removed_files == 1


def test_a_dry_run_expects_the_dead_files_that_go_after_the_compaction_s_commit(catalog):
    table = crashed_table(catalog, commits=6, dead_files=0, consumer=None)
    left_by_crash(table, days_old=2.5)
    planned = table.maintain(dry_run=True)
    done = table.maintain()
    assert steps_of(planned)["orphans"].reason.startswith("would remove 1 orphan file")
    assert steps_of(done)["orphans"].reason.startswith("removed 1 orphan file")


def test_a_note_says_how_many_files_time_travel_keeps_and_by_which_retention(catalog):
    table = crashed_table(catalog, commits=20)
    planned = table.maintain(dry_run=True)
    done = table.maintain()
    replaced = 20 * BUCKETS
    assert f"the compaction would replace {replaced} files, which are then kept" in planned.note
    assert done.note.startswith(f"{replaced} files of ")
    assert (done.after.time_travel_files, done.before.time_travel_files) == (replaced, 0)
    for note in (planned.note, done.note):
        assert "snapshots of the last 1 h, at least 10" in note
        assert "consumer 'dashboard' keeps snapshot 3" in note
        assert "lake maintain shop.orders" in note
    assert "dashboard" not in table.maintain(dry_run=True, expire_consumers="1 d").note
    later_report = later(table, 2 * HOUR).maintain(expire_consumers="1 d")
    assert later_report.note is not None


def test_an_expiry_counts_metadata_files_apart(catalog):
    """Sizes of a table have no metadata in them, and would not add up."""
    table = crashed_table(catalog, commits=20, consumer=None)
    reason = steps_of(table.maintain())["expire"].reason
    assert re.match(r"expired 11 snapshots with \d+ metadata files of ", reason)


def test_a_step_that_fails_stops_no_other_and_is_in_the_report(catalog, monkeypatch):
    table = crashed_table(catalog, commits=20, consumer=None)

    def fail(*_, **__):
        raise lake.UnavailableError("the storage did not answer")

    monkeypatch.setattr("lakeformat.paimon.maintain.steps.compact", fail)
    report = table.maintain()

    assert outcomes_of(report) == {
        "partitions": "not needed",
        "compact": "failed",
        "expire": "done",
        "orphans": "done",
    }
    assert report.after.snapshots == 10
    assert report.obstacles[0].finding == "compact failed: the storage did not answer"
    assert report.obstacles[0].advice == "lake maintain shop.orders"
    assert [str(each) for each in report.failed] == ["the storage did not answer"]


def test_a_defect_of_a_step_stops_no_other_either(catalog, monkeypatch):
    table = crashed_table(catalog, commits=20, consumer=None)
    monkeypatch.setattr("lakeformat.paimon.maintain.steps.compact", lambda *_, **__: 1 / 0)
    report = table.maintain()
    assert "a defect of this library: ZeroDivisionError" in steps_of(report)["compact"].reason
    assert steps_of(report)["orphans"].outcome is StepOutcome.DONE


def test_too_large_a_share_of_dead_files_is_named_and_left(catalog):
    table = crashed_table(catalog, commits=6, dead_files=200, consumer=None)
    report = table.maintain()
    assert "more than max_share=50%" in steps_of(report)["orphans"].reason
    assert "lake orphans shop.orders" in report.obstacles[0].advice
    assert steps_of(report)["compact"].outcome is StepOutcome.DONE


def test_every_report_is_plain_values(catalog):
    table = crashed_table(catalog, commits=6)
    for dry_run in (True, False):
        plain = json.loads(json.dumps(table.maintain(dry_run=dry_run).to_dict()))
        assert plain["before"]["files"] == 6 * BUCKETS
        assert [step["step"] for step in plain["steps"]] == [
            "partitions",
            "compact",
            "expire",
            "orphans",
        ]
    assert (plain["files_in"], plain["files_out"]) == (6 * BUCKETS, BUCKETS)
    assert plain["removed_files"] >= 30


def test_progress_names_each_step_and_counts_what_it_does(catalog):
    heard = []
    table = crashed_table(catalog, commits=20)
    table.maintain(on_progress=heard.append)
    assert list(dict.fromkeys(each.step for each in heard)) == [
        "health",
        "partitions",
        "compact",
        "expire",
        "orphans",
    ]
    assert max(each.done for each in heard if each.step == "compact") == BUCKETS
    assert max(each.done for each in heard if each.step == "orphans") == 30


def test_a_wrong_choice_is_refused_before_the_first_step(catalog):
    table = crashed_table(catalog, commits=2)
    before = files_below(table)
    wrong = {
        "expire_consumers": "soon",
        "executor": "elsewhere",
        "on_progress": "loud",
    }
    for name, value in wrong.items():
        with pytest.raises(lake.InvalidRequestError, match=name):
            table.maintain(**{name: value})
    assert files_below(table) == before


class Interrupted(BaseException):
    """The process was asked to end."""


def test_progress_knows_the_order_of_the_steps(catalog):
    heard = []
    crashed_table(catalog, commits=2, consumer=None).maintain(on_progress=heard.append)
    begun = dict.fromkeys(each.step for each in heard if each.step in each.steps)
    assert lake.MaintainProgress.steps == (*STEPS,) == (*begun,)


def test_an_interrupted_run_is_repeated_to_its_end(catalog):
    table = crashed_table(catalog, commits=20, consumer=None)
    for at in ("compact", "expire", "orphans"):

        def interrupt(progress, at=at):
            if (progress.step, progress.done) == (at, BUCKETS - 1):
                raise Interrupted

        with pytest.raises(Interrupted):
            table.maintain(on_progress=interrupt)
        assert not missing(table)
    report = table.maintain()
    assert (report.after.files, report.after.snapshots, report.is_healthy) == (BUCKETS, 10, True)
    assert not unneeded(table)
