"""Health counts what should have been deleted: overdue snapshots, changelogs, and orphan files."""

from __future__ import annotations

import os
import random
import re
import shlex
from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import lakeformat as lake
from lakeformat.cli.app import app
from lakeformat.environment import SYSTEM
from lakeformat.paimon.expire.retention import (
    Retention,
    count_overdue,
    count_overdue_changelogs,
    select_changelogs,
    select_snapshots,
)
from lakeformat.paimon.health import health
from lakeformat.tables.health.verdict import Verdict
from tests.counting import CountingStorage
from tests.crashed_writer import crashed_table
from tests.lake_command import lake_says

HOUR = 60 * 60 * 1000
DAY = 24 * HOUR
runner = CliRunner()


class Shop:
    """A warehouse whose clock can be moved."""

    def __init__(self, root) -> None:
        self.root = root
        self.ahead = 0
        environment = replace(SYSTEM, now_millis=lambda: SYSTEM.now_millis() + self.ahead)
        self.catalog = lake.open_catalog(str(root), environment=environment)
        self.catalog.create_database("shop")

    def orders(self, *, keyed: bool = False, **options: str) -> lake.Table:
        # No compaction is due, and few bytes count as much.
        few = {"compaction.min.file-num": "999", "num-sorted-run.compaction-trigger": "999"}
        return self.catalog.create_table(
            "shop.orders",
            [("id", "BIGINT")],
            primary_key=["id"] if keyed else [],
            options={**few, **({"bucket": "1"} if keyed else {}), **options},
        )

    def set(self, **options: str) -> lake.Table:
        changes = [lake.set_option(name, value) for name, value in options.items()]
        return self.catalog.alter_table("shop.orders", *changes)


@pytest.fixture
def shop(tmp_path, monkeypatch) -> Shop:
    monkeypatch.setenv("LAKE_WAREHOUSE", str(tmp_path))
    return Shop(tmp_path)


def commit(table: lake.Table, times: int) -> None:
    for number in range(times):
        table.write(pa.table({"id": pa.array([number], pa.int64())}))


def findings(table: lake.Table, **asked: bool) -> list[str]:
    return [reason.finding for reason in table.health(**asked).reasons]


def test_a_newest_snapshot_that_expires_while_it_is_looked_at_is_no_damage(shop, monkeypatch):
    orders = shop.orders()
    commit(orders, 1)
    planned = health.plan_columns

    def with_rival(handle, snapshot):
        if snapshot.id == 1:
            orders.compact(strategy="full", executor="serial")
            commit(orders, 1)
            orders.expire_snapshots(retain_max=1, retain_min=1)
            orders.remove_orphans("0 s", dry_run=False, allow_younger=True, max_share=1)
        return planned(handle, snapshot)

    monkeypatch.setattr(health, "plan_columns", with_rival)
    assert orders.health().snapshot_id == 2


def test_snapshots_beyond_their_retention_are_a_reason_with_the_command(shop):
    orders = shop.orders(**{"write-only": "true"})
    commit(orders, 30)
    assert orders.health().verdict is Verdict.HEALTHY
    shop.ahead = 2 * HOUR

    report = orders.health()

    [reason] = report.reasons
    assert reason.finding == (
        "20 of 30 snapshots are beyond their retention (the last 1 h, at least 10). The "
        "writers delete none, because 'write-only' is true: schedule `lake expire`"
    )
    assert reason.advice == "lake expire shop.orders --limit 20"
    assert (report.verdict, report.score, report.score_parts.history) == ("degraded", 86, -14)
    snapshots = report.snapshots
    assert (snapshots.count, snapshots.overdue, snapshots.expirable) == (30, 20, 20)
    assert report.score == sum(report.to_dict()["score_parts"].values())


def test_what_it_says_to_do_ends_it_and_takes_as_many_as_it_said(shop):
    orders = shop.orders()
    commit(orders, 75)
    shop.ahead = 2 * HOUR
    [reason] = orders.health().reasons
    assert "Writers of Flink and Spark delete at most 50 at each commit" in reason.finding

    expired = orders.expire_snapshots(limit=orders.health().snapshots.expirable)

    assert len(expired.snapshots) == 65
    assert (orders.health().verdict, orders.health().score) == ("healthy", 100)


@pytest.mark.parametrize(("commits", "is_reason"), [(20, False), (21, True)])
def test_a_few_that_the_next_commit_or_job_deletes_are_no_reason(shop, commits, is_reason):
    """Ten more than the least, and by a retention of many half as many again."""
    orders = shop.orders()
    commit(orders, commits)
    shop.ahead = 2 * HOUR

    report = orders.health(time_travel=False)

    assert bool(report.reasons) is is_reason
    assert bool(report.score_parts.history) is is_reason
    assert report.snapshots.overdue == commits - 10


@pytest.mark.parametrize(("least", "is_reason"), [("24", False), ("23", True)])
def test_half_as_many_again_are_tolerated(shop, least, is_reason):
    orders = shop.orders(**{"snapshot.num-retained.min": least})
    commit(orders, 36)
    shop.ahead = 2 * HOUR

    assert bool(findings(orders)) is is_reason


def test_more_than_the_most_are_a_reason_however_young(shop):
    orders = shop.orders(**{"snapshot.num-retained.max": "3", "snapshot.num-retained.min": "1"})
    commit(orders, 14)

    [said] = findings(orders)

    assert said.startswith(
        "11 of 14 snapshots are beyond their retention (the last 1 h, at least 1, at most 3)."
    )


def test_what_the_options_keep_is_no_reason(shop):
    """A long retention, a tag that keeps an old state, and a reader that is at work."""
    orders = shop.orders(**{"snapshot.time-retained": "10 d", "target-file-size": "1 b"})
    orders.write(pa.table({"id": range(1000)}))
    orders.tags.create("first")
    for _ in range(15):
        orders.write(pa.table({"id": [1]}), overwrite={})
    orders.consumers.set("reader", next_snapshot=2)
    shop.ahead = 2 * DAY

    report = orders.health()

    assert (report.verdict, report.score) == ("healthy", 100)
    assert report.storage.time_travel_bytes > 3 * report.storage.live_bytes
    assert report.storage.overdue_bytes == report.storage.branch_bytes == 0


def test_the_bytes_that_an_expiry_frees_are_told(shop):
    """Files of a tag are kept, and so are those of a later snapshot."""
    orders = shop.orders(**{"snapshot.num-retained.min": "1"})
    commit(orders, 3)
    for _ in range(12):
        orders.write(pa.table({"id": [1]}), overwrite={})
    orders.tags.create("fifth", snapshot=5)
    shop.ahead = 2 * HOUR
    assert " are kept only for them." in findings(orders)[0]
    before = orders.health().storage

    orders.expire_snapshots()

    report = orders.health()
    after = report.storage
    assert before.overdue_bytes == before.time_travel_bytes - after.time_travel_bytes > 0
    assert (after.overdue_bytes, after.time_travel_files) == (0, 1)
    assert [each.what for each in report.snapshots.holders] == ["tag 'fifth'"]


@pytest.mark.parametrize("producer", ["none", "input"])
def test_what_longer_lived_changelogs_keep_is_not_freed(shop, producer):
    orders = shop.orders(
        keyed=True,
        **{
            "snapshot.num-retained.min": "1",
            "changelog.time-retained": "2 d",
            "changelog.num-retained.min": "1",
            "changelog-producer": producer,
        },
    )
    for number in range(14):
        orders.write(pa.table({"id": [1]}))
        if number == 10:
            orders.compact()
    freed = -1
    for after in (2 * HOUR, 3 * DAY):  # the snapshots go, and then their changelogs
        shop.ahead = after
        before = orders.health().storage
        orders.expire_snapshots()
        freed = before.time_travel_bytes - orders.health().storage.time_travel_bytes
        assert before.overdue_bytes == freed
    assert freed > 0


@pytest.mark.parametrize("seed", range(20))
def test_overdue_are_those_that_an_expiry_without_limit_selects(seed):
    chance = random.Random(seed)
    ids = sorted(chance.sample(range(1, 200), chance.randint(1, 60)))
    moments = sorted(chance.choices(range(50), k=len(ids)))
    times = dict(zip(ids, moments, strict=True))
    least = chance.randint(1, 20)
    most = chance.randint(least, 80)
    rules = Retention(most, least, older_than=chance.randint(0, 50), limit=10**6)

    newest = ids[-1] + chance.randint(0, 5)

    assert count_overdue(ids, times.get, rules) == select_snapshots(ids, times.get, rules).count
    assert (
        count_overdue_changelogs(ids, newest, times.get, rules)
        == select_changelogs(ids, newest, times.get, rules).count
    )


def test_a_few_overdue_snapshots_that_keep_much_are_a_reason(shop):
    orders = shop.orders(**{"target-file-size": "1 b", "snapshot.num-retained.min": "1"})
    orders.write(pa.table({"id": range(1000)}))
    orders.write(pa.table({"id": [1]}), overwrite={})
    assert findings(orders) == []
    shop.ahead = 2 * HOUR

    report = orders.health()

    [reason] = report.reasons
    assert "are kept only for 1 snapshot beyond the retention, more than 3 times" in reason.finding
    assert reason.advice == "lake expire shop.orders"
    assert report.score_parts.history < -10


def test_a_branch_that_keeps_much_is_named(shop):
    orders = shop.orders(**{"target-file-size": "1 b", "snapshot.num-retained.min": "1"})
    orders.write(pa.table({"id": range(1000)}))
    orders.tags.create("start")
    orders.branches.create("dev", tag="start")
    orders.write(pa.table({"id": [1]}), overwrite={})
    shop.ahead = 2 * HOUR
    orders.expire_snapshots()

    report = orders.health()

    [reason] = report.reasons
    assert "are kept only for 1 branch, more than 3 times" in reason.finding
    assert "the oldest is branch 'dev' with snapshot 1 of" in reason.finding
    assert "lake branch delete shop.orders NAME" in reason.advice
    assert report.storage.branch_bytes == report.storage.time_travel_bytes
    of_branch = shop.catalog.table("shop.orders$branch_dev").health()
    assert (of_branch.reasons, of_branch.storage.branch_bytes) == ((), 0)


def test_tags_of_main_do_not_count_as_branches_in_the_report_of_a_branch(shop):
    orders = shop.orders(**{"target-file-size": "1 b", "snapshot.num-retained.min": "1"})
    orders.write(pa.table({"id": [1]}))
    orders.tags.create("start")
    orders.branches.create("dev", tag="start")
    orders.write(pa.table({"id": range(1000)}), overwrite={})
    orders.tags.create("old")
    orders.write(pa.table({"id": [1]}), overwrite={})
    shop.ahead = 2 * HOUR
    orders.expire_snapshots()

    assert shop.catalog.table("shop.orders$branch_dev").health().storage.branch_bytes == 0


def test_a_branch_and_overdue_snapshots_that_keep_much_together_are_both_named(shop):
    orders = shop.orders(**{"target-file-size": "1 b", "snapshot.num-retained.min": "1"})
    orders.write(pa.table({"id": range(300)}))
    orders.tags.create("start")
    orders.branches.create("dev", tag="start")
    orders.write(pa.table({"id": range(400)}), overwrite={})
    orders.write(pa.table({"id": [1]}), overwrite={})
    shop.ahead = 2 * HOUR

    report = orders.health()

    storage = report.storage
    assert 0 < storage.branch_bytes < storage.time_travel_bytes
    [finding] = [each.finding for each in report.reasons if "are kept only for" in each.finding]
    assert "are kept only for 1 branch and 2 snapshots beyond the retention, more than" in finding


def test_the_command_for_a_branch_can_be_copied_into_a_shell(shop):
    """Unquoted, a shell would read ``$branch_dev`` as an empty variable, and act on main."""
    orders = shop.orders()
    commit(orders, 1)
    orders.tags.create("start")
    orders.branches.create("dev", tag="start")
    branch = shop.catalog.table("shop.orders$branch_dev")
    commit(branch, 30)
    shop.ahead = 2 * HOUR

    report = branch.health()

    assert report.table == "shop.orders$branch_dev"
    [reason] = report.reasons
    assert shlex.split(reason.advice)[2] == report.table
    assert reason.advice == "lake expire 'shop.orders$branch_dev' --limit 21"


def test_a_reader_that_stopped_a_day_ago_and_keeps_a_backlog_is_named(shop):
    orders = shop.orders()
    commit(orders, 40)
    orders.consumers.set("mirror", next_snapshot=3)
    shop.ahead = 23 * HOUR
    assert findings(orders) == []
    shop.ahead = 2 * DAY

    report = orders.health()

    [reason] = report.reasons
    assert reason.finding.startswith("consumer 'mirror' has not moved for 2 d, so snapshot 3 and")
    snapshots = report.snapshots
    assert (snapshots.overdue, snapshots.expirable) == (30, 2)
    assert (snapshots.holders[0].what, snapshots.holders[0].snapshot_id) == ("consumer 'mirror'", 3)
    assert report.score_parts.history == -15


def test_a_reader_within_its_expiration_is_none(shop):
    orders = shop.orders(**{"consumer.expiration-time": "10 d"})
    commit(orders, 40)
    orders.consumers.set("mirror", next_snapshot=3)
    shop.ahead = 9 * DAY

    assert findings(orders) == []

    shop.ahead = 11 * DAY
    [said] = findings(orders)
    assert said.startswith("30 of 40 snapshots are beyond their retention")


def test_changelogs_beyond_their_own_retention_are_a_reason(shop):
    orders = shop.orders(
        **{
            "changelog.time-retained": "2 d",
            "changelog.num-retained.min": "1",
            "snapshot.num-retained.min": "1",
        }
    )
    commit(orders, 30)
    shop.ahead = 2 * HOUR
    orders.expire_snapshots()
    assert findings(orders) == []
    shop.ahead = 3 * DAY

    report = orders.health()

    [reason] = report.reasons
    assert reason.finding.startswith(
        "28 of 29 changelogs that outlived their snapshots are beyond their own retention"
    )
    assert (report.snapshots.changelogs, report.snapshots.expirable_changelogs) == (29, 28)
    assert len(orders.expire_snapshots(limit=28).changelogs) == 28
    assert findings(orders) == []


def test_options_that_forbid_every_expiry_are_a_reason(shop):
    orders = shop.orders()
    commit(orders, 2)
    orders = shop.set(**{"snapshot.num-retained.min": "5", "snapshot.num-retained.max": "2"})

    [reason] = orders.health().reasons

    assert reason.finding.startswith("nothing expires: snapshot.num-retained.min is 5 and")
    assert reason.advice.startswith("lake set-option shop.orders")


def test_an_expiry_that_would_be_refused_is_not_advised(shop):
    orders = shop.orders()
    commit(orders, 30)
    handle = orders._handle
    iceberg = {**handle.schema.options, "metadata.iceberg.storage": "glue-catalog"}
    schema = replace(handle.schema, options=iceberg)
    shop.ahead = 2 * HOUR

    [reason] = lake.Table(replace(handle, schema=schema)).health().reasons

    assert "20 of 30 snapshots" in reason.finding
    assert "metadata.iceberg.storage" in reason.advice
    assert "lake expire" not in reason.advice


def test_dead_files_take_points_off_by_their_size(shop):
    orders = shop.orders()
    commit(orders, 2)
    live = next((shop.root / "shop.db/orders/bucket-0").iterdir())
    dead = live.with_name("data-00000000-0000-0000-0000-000000000000-0.parquet")
    dead.write_bytes(live.read_bytes())
    strange = live.with_name("notes.txt")
    strange.write_bytes(b"1")
    shop.ahead = 3 * DAY
    old = orders.latest_snapshot().time_millis / 1000 - 2 * DAY / 1000
    for path in (dead, strange):
        os.utime(path, (old, old))

    report = orders.health(unknown=True)

    [reason] = report.reasons
    assert reason.finding.startswith("nothing refers to 1 file with ")
    assert reason.advice == "lake orphans shop.orders --remove"
    assert report.storage.unknown.files == 2
    assert report.score_parts.history == -7  # a third of all bytes
    assert runner.invoke(app, reason.advice.removeprefix("lake ").split()).exit_code == 0


def test_several_steps_are_advised_as_one_command(shop):
    table = crashed_table(shop.catalog, commits=30, consumer=None)

    before = table.health(unknown=True)
    assert before.verdict is Verdict.UNHEALTHY
    assert {reason.advice for reason in before.reasons} == {"lake maintain shop.orders"}
    assert len(before.reasons) == 3

    assert runner.invoke(app, ["maintain", "shop.orders"]).exit_code == 0

    after = table.health(unknown=True)
    assert (after.verdict, after.score, after.reasons) == (Verdict.HEALTHY, 100, ())


def test_a_compaction_alone_does_not_make_the_crashed_table_healthy(shop):
    table = crashed_table(shop.catalog, commits=30, consumer=None)
    table.compact()

    report = table.health()

    assert (report.verdict, report.score_parts.history) == (Verdict.DEGRADED, -14)
    [reason] = report.reasons
    assert reason.finding.startswith("21 of 31 snapshots are beyond their retention")
    assert "kept only for them" not in reason.finding  # snapshots that stay need the same files


def test_the_stuck_consumer_of_the_crashed_table_is_named_before_and_after(shop):
    table = crashed_table(shop.catalog, commits=30)
    holders = [reason for reason in table.health().reasons if "consumer" in reason.finding]
    assert "consumer 'dashboard' has not moved for 2 d" in holders[0].finding

    runner.invoke(app, ["maintain", "shop.orders"])

    [left] = table.health(unknown=True).reasons
    assert "consumer 'dashboard'" in left.finding


def test_the_command_shows_history(shop):
    table = crashed_table(shop.catalog, commits=30)

    shown = " ".join(runner.invoke(app, ["health", "shop.orders"]).output.split())

    assert (
        "snapshots 30: newest 2 days old, oldest 2 days old; 20 beyond their retention, 18 of them "
        "kept for a consumer kept longest by consumer 'dashboard' with snapshot 3 of"
    ) in shown
    assert "of 20 for hidden rows, -14 for the history " in shown
    assert "--unknown also counts unreferenced files" in shown
    assert table.health().to_dict()["snapshots"]["holders"][0]["snapshot_id"] == 3


def test_one_command_cures_small_files_and_what_a_stuck_consumer_keeps(catalog):
    table = crashed_table(catalog, commits=30)
    report = table.health()
    runs, consumer = report.reasons
    assert (runs.advice, report.first_step) == ("lake maintain shop.orders",) * 2
    assert consumer.advice == (
        "restart its reader or, if the reader has ended for good, "
        "lake maintain shop.orders --expire-consumers '2 d'"
    )
    shown = lake_says(catalog, "health", "shop.orders")
    command = re.escape(f"lake -w {catalog.location} maintain shop.orders")
    assert re.search(rf"^do first +{command}$", shown, re.M)


@pytest.mark.parametrize("tags", [4, 12])
def test_a_manifest_that_many_tags_name_is_read_for_the_first_of_them_only(shop, tags):
    table = shop.orders()
    for number in range(tags):
        table.write(pa.table({"id": [number]}))
        table.tags.create(f"t{number:02}")
    table.write(pa.table({"id": [tags]}))
    table.expire_snapshots(retain_max=1, retain_min=1)
    counting = CountingStorage(table._handle.storage)
    watched = type(table)(replace(table._handle, storage=counting))
    assert watched.health().storage.time_travel_files == 0
    reads = Counter(path for _, path in counting.calls if re.search(r"/manifest-[0-9a-f]{8}", path))
    assert len(reads) == tags + 1
    assert max(reads.values()) <= 5
