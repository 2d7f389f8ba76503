"""A consumer that keeps snapshots and does not move is reported with the command to free it."""

from __future__ import annotations

import shlex
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import lakeformat as lake
from lakeformat.cli.app import app
from lakeformat.environment import SYSTEM
from lakeformat.paimon.metadata.consumer import Consumer, write_consumer
from spark_jobs import expire_snapshots

HOUR = 60 * 60 * 1000
DAY = 24 * HOUR
ROWS = pa.table({"id": [1]})


class Clock:
    def __init__(self) -> None:
        self.ahead = 0

    def now(self) -> int:
        return SYSTEM.now_millis() + self.ahead


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def orders(tmp_path, clock) -> lake.Table:
    environment = replace(SYSTEM, now_millis=clock.now)
    catalog = lake.open_catalog(str(tmp_path), environment=environment)
    catalog.create_database("shop")
    table = catalog.create_table(
        "shop.orders", [("id", "BIGINT")], options={"snapshot.num-retained.min": "1"}
    )
    for _ in range(4):
        table.write(ROWS)
    return table


def told(table: lake.Table) -> list[str]:
    return [str(reason) for reason in table.health().reasons if "consumer" in reason.finding]


def died_publishing(table: lake.Table, name: str = "spark-a/b") -> None:
    with suppress(KeyboardInterrupt), table.stream_batch(lake.CommitId(name, 0)) as commit:
        table.write(ROWS, commit=commit)
        raise KeyboardInterrupt


def test_a_reader_that_has_not_come_for_long_is_a_reason_with_the_command(orders, clock):
    orders.consumers.set("the mirror", next_snapshot=2)
    clock.ahead = 9 * DAY + HOUR

    assert told(orders) == [
        "consumer 'the mirror' has not moved for 9 d, so snapshot 2 and all later ones cannot "
        "expire: restart its reader or, if the reader has ended for good, lake consumer reset "
        "shop.orders 'the mirror'"
    ]
    assert orders.health().verdict == "degraded"


def test_a_stream_that_died_while_it_published_is_told_of_after_a_day(orders, clock):
    died_publishing(orders)
    clock.ahead = DAY - HOUR
    assert told(orders) == []
    clock.ahead = DAY + HOUR

    assert told(orders) == [
        "consumer 'spark-a%2Fb' of a stream that crashed while publishing has not moved for 1 d, "
        "so snapshot 4 and all later ones cannot expire: restart the stream or, if it "
        "has ended for good, lake maintain shop.orders --expire-consumers '1 d'"
    ]


def test_the_command_that_is_named_frees_what_was_kept(orders, clock):
    died_publishing(orders)
    clock.ahead = 2 * DAY
    [reason] = told(orders)
    command = shlex.split(reason.partition("has ended for good, lake ")[2])

    assert command[:3] == ["maintain", "shop.orders", "--expire-consumers"]
    orders.maintain(expire_consumers=command[3])  # a command of its own would have another clock

    assert told(orders) == []
    assert orders.snapshots()[0].id > 4


def test_an_expiry_names_it_to_people_programs_and_in_what_a_job_says(
    orders, clock, tmp_path, caplog
):
    orders.consumers.set("mirror", next_snapshot=2)
    clock.ahead = 9 * DAY

    report = orders.expire_snapshots()

    assert (report.earliest_snapshot, report.reason) == (
        2,
        "kept snapshots from 2 on for consumer 'mirror'",
    )
    [stalled] = report.to_dict()["stalled_consumers"]
    assert (stalled["consumer_id"], stalled["next_snapshot_id"]) == ("mirror", 2)
    assert "lake consumer reset" in caplog.text


def test_the_command_line_and_the_job_say_which_command_frees_it(orders, tmp_path, monkeypatch):
    orders.consumers.set("mirror", next_snapshot=2)
    monkeypatch.setattr("lakeformat.paimon.consumers.stalled._LONG_FOR_A_STREAM", 0)
    monkeypatch.setattr("lakeformat.paimon.consumers.stalled._LONG", 0)
    how = ["--retain-max", "1", "--retain-min", "1"]

    shown = CliRunner().invoke(app, ["-w", str(tmp_path), "expire", "shop.orders", *how]).output
    asked = {"warehouse": str(tmp_path), "table": "shop.orders", "retain_max": 1, "retain_min": 1}
    result = expire_snapshots.run(asked)

    for said in (shown, result["reason"]):
        assert "so snapshot 2 and all later ones cannot expire" in said
        assert "lake consumer reset shop.orders mirror" in said


@pytest.mark.parametrize(
    ("next_snapshot", "options"),
    [
        (5, {}),  # it has read all there is
        (4, {}),  # the newest stays anyhow
        (2, {"snapshot.num-retained.min": "3"}),
        (2, {"snapshot.time-retained": "30 d"}),
        # It would keep changelogs alone, and none has outlived its snapshot yet.
        (2, {"consumer.changelog-only": "true", "changelog.time-retained": "10 d"}),
    ],
)
def test_one_that_keeps_nothing_from_expiring_is_no_reason(
    orders, clock, tmp_path, next_snapshot, options
):
    orders.consumers.set("mirror", next_snapshot=next_snapshot)
    environment = replace(SYSTEM, now_millis=clock.now)
    catalog = lake.open_catalog(str(tmp_path), environment=environment)
    if options:
        changes = [lake.set_option(name, value) for name, value in options.items()]
        orders = catalog.alter_table("shop.orders", *changes)
    clock.ahead = 9 * DAY

    assert told(orders) == []
    assert orders.expire_snapshots(dry_run=True).stalled_consumers == ()


def test_more_than_may_stay_are_kept_though_they_are_young(orders, clock, tmp_path):
    environment = replace(SYSTEM, now_millis=clock.now)
    catalog = lake.open_catalog(str(tmp_path), environment=environment)
    few = {"snapshot.num-retained.max": "2", "snapshot.time-retained": "30 d"}
    changes = [lake.set_option(name, value) for name, value in few.items()]
    orders = catalog.alter_table("shop.orders", *changes)
    orders.consumers.set("mirror", next_snapshot=2)
    clock.ahead = 9 * DAY

    assert len(told(orders)) == 1


def with_options(tmp_path, clock, options) -> lake.Table:
    environment = replace(SYSTEM, now_millis=clock.now)
    catalog = lake.open_catalog(str(tmp_path), environment=environment)
    changes = [lake.set_option(name, value) for name, value in options.items()]
    return catalog.alter_table("shop.orders", *changes)


def test_where_changelogs_do_not_outlive_snapshots_those_are_kept_whatever_changelog_only_says(
    orders, clock, tmp_path
):
    orders = with_options(tmp_path, clock, {"consumer.changelog-only": "true"})
    orders.consumers.set("mirror", next_snapshot=2)
    clock.ahead = 9 * DAY

    [reason] = told(orders)
    assert "so snapshot 2 and all later ones cannot expire" in reason
    assert orders.expire_snapshots(dry_run=True).earliest_snapshot == 2


@pytest.mark.parametrize("only", ["true", "false"])
@pytest.mark.parametrize(
    ("after", "retention"),
    [
        (12 * DAY, {"changelog.time-retained": "10 d"}),  # too old
        (8 * DAY, {"changelog.num-retained.max": "2", "changelog.time-retained": "10 d"}),
    ],
)
def test_one_that_keeps_changelogs_is_told_of_as_such(
    orders, clock, tmp_path, only, after, retention
):
    least = {"changelog.num-retained.min": "1", "snapshot.num-retained.max": "1"}
    told_so = {"consumer.changelog-only": only, **least, **retention}
    orders = with_options(tmp_path, clock, told_so)
    orders.expire_snapshots()  # leaves snapshot 4, and changelogs of those before it
    orders.consumers.set("mirror", next_snapshot=2)
    clock.ahead = after

    report = orders.expire_snapshots(dry_run=True)

    [reason] = told(orders)
    assert "so changelog 2 and all later ones cannot expire" in reason
    [stalled] = report.to_dict()["stalled_consumers"]
    assert (stalled["next_snapshot_id"], stalled["keeps"]) == (2, "changelogs")
    orders.consumers.reset("mirror")
    assert len(orders.expire_snapshots().changelogs) > len(report.changelogs)
    assert told(orders) == []


def test_a_changelog_that_would_stay_anyhow_is_no_reason(orders, clock, tmp_path):
    options = {"consumer.changelog-only": "true", "changelog.time-retained": "30 d"}
    most = {"snapshot.num-retained.max": "1", "changelog.num-retained.max": "9"}
    orders = with_options(tmp_path, clock, {**options, **most})
    orders.expire_snapshots()
    orders.consumers.set("mirror", next_snapshot=2)
    clock.ahead = 9 * DAY

    assert told(orders) == []


@pytest.mark.parametrize("of", ["changelog", "snapshot"])
def test_options_that_contradict_each_other_are_left_to_the_expiry_to_refuse(
    orders, clock, tmp_path, of
):
    orders.consumers.set("mirror", next_snapshot=5)
    options = {f"{of}.num-retained.min": "50", f"{of}.num-retained.max": "2"}
    orders = with_options(tmp_path, clock, options)
    clock.ahead = 9 * DAY

    assert told(orders) == []


def test_one_that_an_expiry_forgets_or_that_fell_behind_is_none(orders, clock, tmp_path):
    handle = orders._handle
    orders.expire_snapshots(retain_max=2, retain_min=1)
    write_consumer(handle.storage, handle.layout, Consumer("late", 1))
    clock.ahead = 9 * DAY

    assert told(orders) == []


def test_a_damaged_one_keeps_everything_and_is_named(orders, clock, tmp_path, monkeypatch):
    monkeypatch.setattr("lakeformat.tables.consumers.files.PAUSE_SECONDS", 0)
    orders.consumers.set("mirror", next_snapshot=2)
    [file] = tmp_path.rglob("consumer-mirror")
    file.write_bytes(b"")
    clock.ahead = 2 * DAY

    [reason] = told(orders)

    assert reason.startswith("nothing expires, because consumer 'mirror' is damaged (")
    assert "lake consumer set shop.orders mirror --next NUMBER" in reason
    damage = [str(each) for each in orders.maintain().obstacles if "mirror" in each.finding]
    assert len(damage) == 1
    assert damage[0].startswith("expire failed: ")
    assert "lake consumer set shop.orders mirror --next NUMBER" in damage[0]
