"""Expiry of partitions: deleted and kept partitions, reasons, number of commits."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lakeformat as lake
from lakeformat.environment import SYSTEM
from lakeformat.paimon.commit.commit import commit_messages
from lakeformat.paimon.commit.commit_report import CommitReport
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.data_file_meta import local_wall_clock
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.partitions.expired import ExpireRules, pick_expired
from lakeformat.paimon.partitions.live import LivePartition, live_partitions
from lakeformat.paimon.schema import new_schema
from lakeformat.tables.time_format import time_format

NOW = 1_700_000_000_000
TODAY = local_wall_clock(NOW)


@pytest.fixture
def catalog(tmp_path) -> lake.Catalog:
    world = replace(SYSTEM, now_millis=lambda: NOW)
    catalog = lake.open_catalog(str(tmp_path), environment=world)
    catalog.create_database("shop")
    return catalog


def day(age: int) -> str:
    return f"{TODAY - timedelta(days=age):%Y-%m-%d}"


def filled(catalog: lake.Catalog, days: list[str | None], **options: str) -> lake.Table:
    table = catalog.create_table(
        "shop.orders",
        [("id", "BIGINT"), ("dt", "STRING")],
        partition_by=["dt"],
        options={key.replace("_", "."): value for key, value in options.items()},
    )
    table.write(pa.table({"id": range(len(days)), "dt": pa.array(days, pa.string())}))
    return table


def looks_for_partitions(
    monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], object]
) -> list[Snapshot]:
    """Return a list that gets each snapshot in which the expiry looks for partitions. After the
    first look, ``meanwhile`` is called.
    """
    looked: list[Snapshot] = []

    def look(handle: TableHandle, snapshot: Snapshot) -> list[LivePartition]:
        found = live_partitions(handle, snapshot)
        if not looked:
            meanwhile()
        looked.append(snapshot)
        return found

    monkeypatch.setattr("lakeformat.paimon.partitions.expire.live_partitions", look)
    return looked


def days_of(table: lake.Table) -> list[str | None]:
    return sorted(table.scan().to_arrow()["dt"].to_pylist(), key=str)


def test_partitions_older_than_the_option_says_go_and_the_others_stay(catalog):
    table = filled(catalog, [day(10), day(8), day(6), day(0)])
    table = catalog.alter_table("shop.orders", lake.set_option("partition.expiration-time", "7 d"))
    report = table.expire_partitions()
    assert [each.partition.path for each in report.expired] == [f"dt={day(10)}", f"dt={day(8)}"]
    assert (report.kept, report.left, report.snapshot_ids) == (2, 0, (2,))
    assert days_of(table) == [day(6), day(0)]
    assert table.latest_snapshot().commit_kind is lake.CommitKind.OVERWRITE


def test_rows_of_expired_partitions_stay_in_older_snapshots(catalog):
    table = filled(catalog, [day(10), day(0)])
    table.expire_partitions(expiration_time=timedelta(days=7))
    assert table.scan(snapshot=1).to_arrow().num_rows == 2


def test_a_dry_run_says_the_same_and_changes_nothing(catalog):
    table = filled(catalog, [day(10), day(0)])
    planned = table.expire_partitions(expiration_time="7 d", dry_run=True)
    assert (planned.dry_run, planned.snapshot_ids) == (True, ())
    assert table.latest_snapshot().id == 1
    done = table.expire_partitions(expiration_time="7 d")
    assert planned.expired == done.expired


def test_partitions_of_which_nobody_can_tell_the_age_stay_and_are_named(catalog):
    table = filled(catalog, ["junk", None, day(10)])
    report = table.expire_partitions(expiration_time="7 d")
    assert [path for path, _ in report.unknown] == ["dt=__DEFAULT_PARTITION__", "dt=junk"]
    assert "null" in report.unknown[0][1]
    assert days_of(table) == [None, "junk"]


def test_the_limit_takes_those_that_sort_first_and_leaves_the_rest_for_the_next_run(catalog):
    table = filled(catalog, [day(age) for age in range(10, 16)])
    report = table.expire_partitions(expiration_time="7 d", max_num=4, batch_size=3)
    assert [each.partition.path for each in report.expired] == [
        f"dt={day(age)}" for age in (15, 14, 13, 12)
    ]
    assert (report.left, len(report.snapshot_ids)) == (2, 2)
    assert len(table.expire_partitions(expiration_time="7 d", max_num=4).expired) == 2
    again = table.expire_partitions(expiration_time="7 d")
    assert (again.expired, again.snapshot_ids, again.reason) == ((), (), "no partition expired")


def test_several_columns_make_a_time_by_pattern_and_formatter(catalog):
    table = catalog.create_table(
        "shop.hours",
        [("id", "BIGINT"), ("dt", "INT"), ("h", "STRING")],
        partition_by=["dt", "h"],
        options={
            "partition.expiration-time": "2 h",
            "partition.timestamp-pattern": "$dt $h",
            "partition.timestamp-formatter": "yyyyMMdd HH",
        },
    )
    hours = [TODAY - timedelta(hours=age) for age in (1, 4)]
    days = pa.array([int(f"{hour:%Y%m%d}") for hour in hours], pa.int32())
    table.write(pa.table({"id": [1, 4], "dt": days, "h": [f"{hour:%H}" for hour in hours]}))
    assert len(table.expire_partitions().expired) == 1
    assert table.scan().to_arrow()["id"].to_pylist() == [1]


def test_dates_are_read_as_sql_writes_them_whatever_their_directory_is_called(catalog):
    table = catalog.create_table(
        "shop.days", [("id", "BIGINT"), ("dt", "DATE")], partition_by=["dt"]
    )
    days = [(TODAY - timedelta(days=age)).date() for age in (1, 30)]
    table.write(pa.table({"id": [1, 30], "dt": days}))
    table.expire_partitions(expiration_time="7 d")
    assert table.scan().to_arrow()["id"].to_pylist() == [1]


@pytest.fixture(params=["UTC", "Asia/Tokyo", "America/New_York", "Australia/Sydney"])
def zone(request, monkeypatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("zone")
@pytest.mark.parametrize("digits", [3, 6, 9])
def test_instants_expire_at_their_age_in_every_time_zone(catalog, digits):
    columns = [("id", "BIGINT"), ("at", f"TIMESTAMP_LTZ({digits})")]
    table = catalog.create_table("shop.instants", columns, partition_by=["at"])
    ages = [age * 3_600_000 for age in (20, 23, 25, 28)]
    ends = [2**63 // 1_000_000 - 1, -(2**63) // 1_000_000 + 1]
    at = pa.array([*(NOW - age for age in ages), *ends], pa.timestamp("ms", "UTC"))
    kind = table.scan().schema.field("at").type
    table.write(pa.table({"id": range(6), "at": at.cast(kind)}))
    table.expire_partitions(expiration_time="1 d")
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [0, 1, 4]


@pytest.mark.usefixtures("zone")
@pytest.mark.parametrize("limit", ["2023-07-01", datetime(2023, 7, 1, tzinfo=UTC), 1688169600000])
def test_a_given_time_has_the_offset_of_its_own_season(catalog, limit):
    """``NOW`` is in November: New York and Sydney have changed their clocks since the limit."""
    columns = [("id", "BIGINT"), ("at", "TIMESTAMP_LTZ(3)")]
    table = catalog.create_table("shop.instants", columns, partition_by=["at"])
    at = [datetime(2023, 7, 1, tzinfo=UTC) + timedelta(minutes=each) for each in (-30, 0, 30)]
    table.write(pa.table({"id": range(3), "at": pa.array(at, pa.timestamp("ms", "UTC"))}))
    report = table.expire_partitions(expiration_time=limit)
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2]
    assert report.older_than == f"{local_wall_clock(1688169600000)}"


@pytest.mark.usefixtures("zone")
def test_today_does_not_expire_with_an_age_of_a_day_that_has_25_hours(tmp_path):
    late = int(datetime(2023, 11, 6, 4, 30, tzinfo=UTC).timestamp() * 1000)  # 23:30 in New York
    world = replace(SYSTEM, now_millis=lambda: late)
    catalog = lake.open_catalog(str(tmp_path), environment=world)
    catalog.create_database("shop")
    today = f"{local_wall_clock(late):%Y-%m-%d}"
    table = filled(catalog, [today])
    assert table.expire_partitions(expiration_time="1 d").expired == ()


def test_blanks_at_the_end_of_a_char_value_are_ignored(catalog):
    columns = [("id", "BIGINT"), ("dt", "CHAR(12)")]
    table = catalog.create_table("shop.padded", columns, partition_by=["dt"])
    days = [day(10), f"{day(9)}  ", f"{day(0)} "]
    table.write(pa.table({"id": range(3), "dt": days}))
    report = table.expire_partitions(expiration_time="7 d")
    assert (len(report.expired), report.unknown, days_of(table)) == (2, (), days[2:])


def test_by_update_time_a_partition_expires_when_nobody_has_written_to_it_for_so_long(catalog):
    table = filled(catalog, ["old", "fresh"])
    later = lake.open_table(
        table.location, environment=replace(SYSTEM, now_millis=lambda: NOW + 8 * 86_400_000)
    )
    later.write(pa.table({"id": [7], "dt": ["fresh"]}))
    report = later.expire_partitions(expiration_time="7 d", strategy="update-time")
    assert [each.partition.path for each in report.expired] == ["dt=old"]
    assert days_of(later) == ["fresh", "fresh"]


def test_a_partition_somebody_writes_to_meanwhile_is_looked_at_again(catalog, monkeypatch):
    table = filled(catalog, ["one", "two"])
    later = lake.open_table(
        table.location, environment=replace(SYSTEM, now_millis=lambda: NOW + 8 * 86_400_000)
    )
    looked = looks_for_partitions(
        monkeypatch, meanwhile=lambda: later.write(pa.table({"id": [7], "dt": ["one"]}))
    )
    report = later.expire_partitions(expiration_time="7 d", strategy="update-time")
    assert len(looked) == 2
    assert [each.partition.path for each in report.expired] == ["dt=two"]
    assert days_of(later) == ["one", "one"]


def test_rows_of_a_snapshot_with_a_reused_number_do_not_expire_by_update_time(catalog, monkeypatch):
    table = filled(catalog, ["one"])
    table.write(pa.table({"id": [5], "dt": ["two"]}))
    later = lake.open_table(
        table.location, environment=replace(SYSTEM, now_millis=lambda: NOW + 8 * 86_400_000)
    )

    def write_again() -> None:
        later.rollback(snapshot=1, as_latest=False)
        later.write(pa.table({"id": [7], "dt": ["two"]}))

    looked = looks_for_partitions(monkeypatch, meanwhile=write_again)
    report = later.expire_partitions(expiration_time="7 d", strategy="update-time")
    assert len(looked) == 2
    assert [each.partition.path for each in report.expired] == ["dt=one"]
    assert days_of(later) == ["two"]


def test_an_expiry_on_a_branch_keeps_the_marks_of_main(catalog):
    table = filled(catalog, [day(10)])
    both = ["success-file", "done-partition"]
    [done] = table.mark_partitions_done([{"dt": day(10)}], actions=both).partitions
    table.branches.create("trial", snapshot=1)
    trial = catalog.table("shop.orders$branch_trial")
    assert len(trial.expire_partitions(expiration_time="7 d").expired) == 1
    assert table.mark_partitions_done([{"dt": day(10)}], dry_run=True).partitions[0].repeated
    assert Path(done.marks[1].removeprefix("file://")).is_dir()


def test_a_mark_that_a_partition_is_done_goes_with_it(catalog):
    table = filled(catalog, [day(10)])
    [done] = table.mark_partitions_done(
        [{"dt": day(10)}], actions=["done-partition", "success-file"]
    ).partitions
    directory = done.marks[0].removeprefix("file://").rpartition("/")
    success = Path(done.marks[1].removeprefix("file://"))
    assert success.exists()
    storage = table._handle.storage
    assert storage.directory_exists("/".join([directory[0], directory[2]]))
    table.expire_partitions(expiration_time="7 d")
    assert not storage.directory_exists("/".join([directory[0], directory[2]]))
    assert not success.exists()


def test_a_mark_of_a_partition_that_was_filled_again_after_the_commit_is_kept(catalog, monkeypatch):
    table = filled(catalog, [day(10), day(9)])
    days = [{"dt": day(10)}, {"dt": day(9)}]
    table.mark_partitions_done(days)

    def commit_and_fill(*args, **how) -> CommitReport:
        report = commit_messages(*args, **how)
        table.write(pa.table({"id": [7], "dt": [day(10)]}))
        table.mark_partitions_done(days[:1])
        return report

    monkeypatch.setattr("lakeformat.paimon.partitions.expire.commit_messages", commit_and_fill)
    table.expire_partitions(expiration_time="7 d")
    found = table.mark_partitions_done(days, allow_empty=True, dry_run=True).partitions
    assert [(each.rows, each.repeated) for each in found] == [(1, True), (0, False)]


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({}, "partition.expiration-time"),
        ({"expiration_time": "soon"}, "such as '7 d'"),
        ({"expiration_time": "0 d"}, "is 0 ms, but must be above zero"),
        ({"expiration_time": timedelta(days=-1)}, "is -1 d, but must be above zero"),
        ({"expiration_time": "7 d", "strategy": "sometimes"}, "expiration-strategy"),
        ({"expiration_time": "7 d", "max_num": 0}, "expiration-max-num"),
        ({"expiration_time": "7 d", "batch_size": 0}, "expiration-batch-size"),
        ({"expiration_time": "7 d", "timestamp_pattern": "$day"}, "timestamp-pattern"),
        ({"expiration_time": "7 d", "timestamp_formatter": "EEE"}, "timestamp-formatter"),
    ],
)
def test_what_has_no_meaning_is_refused_by_name(catalog, how, why):
    table = filled(catalog, [day(10)])
    with pytest.raises(lake.InvalidRequestError) as error:
        table.expire_partitions(**how)
    assert why in str(error.value)
    assert table.latest_snapshot().id == 1


def test_a_table_without_partitions_is_refused(catalog):
    table = catalog.create_table("shop.plain", [("id", "BIGINT")])
    with pytest.raises(lake.InvalidRequestError, match="has no partition columns"):
        table.expire_partitions(expiration_time="7 d")


def test_a_table_without_a_snapshot_has_nothing_to_expire(catalog):
    table = catalog.create_table(
        "shop.empty", [("id", "BIGINT"), ("dt", "STRING")], partition_by=["dt"]
    )
    assert table.expire_partitions(expiration_time="7 d").expired == ()


def test_a_time_in_another_column_than_the_first_is_advised_by_its_pattern(catalog):
    columns = [("id", "BIGINT"), ("region", "STRING"), ("dt", "STRING")]
    table = catalog.create_table("shop.regions", columns, partition_by=["region", "dt"])
    table.write(pa.table({"id": [1], "region": ["eu"], "dt": [day(10)]}))
    report = table.expire_partitions(expiration_time="7 d", dry_run=True)
    assert report.warning.endswith(
        "If another column has the time, give timestamp_pattern (--pattern), too, such as '$dt'"
    )
    found = table.expire_partitions(expiration_time="7 d", timestamp_pattern="$dt", dry_run=True)
    assert len(found.expired) == 1
    one = filled(catalog, ["eu"]).expire_partitions(expiration_time="7 d", dry_run=True)
    assert "timestamp_pattern" not in one.warning


SCHEMA = new_schema([("id", "BIGINT"), ("dt", "STRING")], partition_by=["dt"], time_millis=0)


@given(
    ages=st.lists(st.integers(0, 400), unique=True, max_size=12),
    limit=st.integers(0, 15),
    expiration=st.integers(1, 300),
)
def test_exactly_the_oldest_that_have_expired_are_picked(ages, limit, expiration):
    from lakeformat.paimon.binary_row import encode_row, frame_row
    from lakeformat.types.types import STRING

    now = datetime(2024, 6, 1)
    partitions = [
        LivePartition(
            row=frame_row(encode_row([f"{now - timedelta(days=age):%Y-%m-%d}"], [STRING]), 1),
            path=str(age),
            rows=1,
            files=1,
            bytes=1,
            updated=None,
        )
        for age in ages
    ]
    rules = ExpireRules(
        strategy="values-time",
        expiration=timedelta(days=expiration),
        pattern="",
        format=time_format(""),
        max_num=limit,
        batch_size=None,
    )
    picked = pick_expired(SCHEMA, partitions, rules, now - rules.expiration)
    expected = sorted((age for age in ages if age > expiration), reverse=True)
    assert [int(each.partition.path) for each in picked.expired] == expected[:limit]
    assert picked.left == len(expected[limit:])
    assert picked.kept == len(ages) - len(expected)
