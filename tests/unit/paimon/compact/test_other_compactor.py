"""Another program that compacts the same table: it is found, named, and asked about."""

from __future__ import annotations

import json
import logging
from dataclasses import replace

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import lakeformat as lake
from lakeformat.cli.app import app
from lakeformat.environment import SYSTEM
from lakeformat.paimon.compact.run import UnitWork
from lakeformat.paimon.metadata.snapshot import COMPACTION_MARK
from spark_jobs import changelog as changelog_job
from spark_jobs import compact as compact_job
from spark_jobs import compact_database as compact_database_job

DAY = 24 * 60 * 60 * 1000
WARNING = (
    "another program compacts the table too: commit user 'flink', last in snapshot 3, 0 ms ago"
)
CURE = "lake set-option shop.orders write-only=true, then restart that program"
runner = CliRunner()


class Clock:
    now = SYSTEM.now_millis()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def catalog(tmp_path, clock, monkeypatch) -> lake.Catalog:
    monkeypatch.setenv("LAKE_WAREHOUSE", str(tmp_path))
    environment = replace(SYSTEM, now_millis=lambda: clock.now)
    catalog = lake.open_catalog(str(tmp_path), environment=environment)
    catalog.create_database("shop")
    return catalog


@pytest.fixture
def orders(catalog) -> lake.Table:
    return catalog.create_table(
        "shop.orders",
        [("id", "BIGINT")],
        primary_key=["id"],
        options={"bucket": "1", "changelog-producer": "full-compaction"},
    )


def write(table: lake.Table, times: int = 1) -> None:
    for number in range(times):
        table.write(pa.table({"id": pa.array([number], pa.int64())}))


def compact_as_flink(table: lake.Table) -> None:
    """Two commits, and a compaction that bears no mark."""
    write(table, 2)
    table.compact()
    handle, snapshot = table._handle, table.latest_snapshot()
    foreign = replace(snapshot, properties=None, commit_user="flink")
    handle.storage.overwrite(handle.layout.snapshot(snapshot.id), foreign.to_json())


def of_advice(table: lake.Table) -> list[str]:
    return [reason.advice for reason in table.health().reasons]


def snapshots_with_mark(table: lake.Table) -> list[int]:
    return [
        snapshot.id
        for snapshot in table.snapshots()
        if COMPACTION_MARK in (snapshot.properties or {})
    ]


def test_every_compaction_bears_the_mark_and_no_other_commit_does(catalog):
    table = catalog.create_table("shop.events", [("id", "BIGINT")])
    write(table, 2)
    table.compact()
    write(table, 2)
    table.compact(order_by=["id"])
    write(table)
    table.compact_manifests()
    table.analyze()

    kinds = {snapshot.id: snapshot.commit_kind for snapshot in table.snapshots()}
    assert snapshots_with_mark(table) == [
        number for number, kind in kinds.items() if kind is lake.CommitKind.COMPACT
    ]
    assert len(snapshots_with_mark(table)) == 3


def test_a_minor_and_a_postponed_compaction_bear_the_mark(catalog):
    options = {"bucket": "-2"}
    table = catalog.create_table(
        "shop.late", [("id", "BIGINT")], primary_key=["id"], options=options
    )
    write(table, 2)
    table.compact(strategy="minor")

    assert table.latest_snapshot().commit_kind is lake.CommitKind.COMPACT
    assert table.latest_snapshot().id in snapshots_with_mark(table)


def test_a_rewrite_of_file_indexes_bears_the_mark(catalog):
    table = catalog.create_table("shop.events", [("id", "BIGINT")])
    write(table)
    table = catalog.alter_table(
        "shop.events", lake.set_option("file-index.bloom-filter.columns", "id")
    )
    table.rewrite_file_indexes()

    assert snapshots_with_mark(table) == [2]


def test_properties_of_the_caller_stay_beside_the_mark(orders):
    write(orders, 2)
    plan = orders.plan_compaction()
    [unit] = plan.units
    _, messages, error, _ = UnitWork(orders._handle)(unit)
    assert error is None
    orders.commit(messages, properties={"run": "7"})

    assert set(orders.latest_snapshot().properties) == {"run", COMPACTION_MARK}


def test_only_our_own_compactions_are_no_reason(orders):
    write(orders, 2)
    orders.compact()

    assert orders.other_compactor() is None
    assert orders.health().reasons == ()
    assert orders.compact().other_compactor is None


def test_health_says_who_compacts_what_happens_and_what_to_do(orders, clock):
    compact_as_flink(orders)
    clock.now += 60_000

    [reason] = orders.health(time_travel=False).reasons

    assert reason.finding == (
        "another program compacts the table too: commit user 'flink', last in snapshot 3, 1 min "
        "ago. If `lake compact` rewrites the same files first, the commit of that program "
        "conflicts, and its Flink or Spark job fails and restarts"
    )
    assert reason.advice == CURE
    assert orders.health().verdict == "degraded"


def test_the_command_it_names_ends_it(orders):
    compact_as_flink(orders)
    command = CURE.partition(",")[0].removeprefix("lake ").split()

    assert runner.invoke(app, command).exit_code == 0

    assert orders.other_compactor() is None  # also for a table that was opened before
    assert runner.invoke(app, ["health", "shop.orders"]).output.count("write-only") == 0


def test_a_compaction_long_ago_is_none_of_a_program_at_work(orders, clock):
    compact_as_flink(orders)
    clock.now += 14 * DAY
    assert orders.other_compactor() is not None
    clock.now += 1

    assert orders.other_compactor() is None


def test_a_compaction_many_snapshots_ago_is_none_either(orders, monkeypatch):
    monkeypatch.setattr("lakeformat.paimon.compact.other_compactor._NEWEST", 3)
    compact_as_flink(orders)
    write(orders, 2)
    assert orders.other_compactor().snapshot_id == 3
    write(orders)

    assert orders.other_compactor() is None


def test_the_newest_of_several_programs_is_named(orders):
    compact_as_flink(orders)
    write(orders, 20)
    compact_as_flink(orders)
    write(orders)
    orders.compact()

    assert orders.other_compactor().snapshot_id == 26


def test_a_damaged_snapshot_is_passed_over(orders, tmp_path):
    compact_as_flink(orders)
    write(orders, 2)
    (tmp_path / "shop.db/orders/snapshot/snapshot-4").write_bytes(b"{")

    assert orders.other_compactor().snapshot_id == 3


def test_the_plan_names_it_to_people_and_programs(orders):
    compact_as_flink(orders)

    shown = runner.invoke(app, ["compact", "shop.orders", "--plan"])
    [planned] = json.loads(
        runner.invoke(app, ["compact", "shop.orders", "--plan", "--json"]).output
    )

    for said in (shown.output, planned["other_compactor"]["warning"]):
        assert WARNING.rpartition(",")[0] in said
        assert CURE in said
    assert planned["other_compactor"]["commit_user"] == "flink"
    sort = orders.plan_compaction(strategy="minor").other_compactor
    assert sort.snapshot_id == 3


def test_a_compaction_warns_and_its_report_has_it(orders, caplog):
    compact_as_flink(orders)
    write(orders, 2)

    report = orders.compact()

    assert report.snapshot_ids
    assert report.other_compactor.commit_user == "flink"
    [record] = [each for each in caplog.records if each.levelno == logging.WARNING]
    assert record.getMessage() == report.to_dict()["other_compactor"]["warning"]
    assert record.getMessage() == f"shop.orders: {report.other_compactor.finding}. To do: {CURE}"


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize(
    "job", [compact_job, compact_database_job, changelog_job], ids=lambda job: job.JOB.name
)
def test_jobs_go_on_and_warn_once(orders, tmp_path, caplog, job, dry_run):
    compact_as_flink(orders)
    write(orders, 2)
    subject = {"database": "shop"} if job is compact_database_job else {"table": "shop.orders"}

    result = job.run({"warehouse": str(tmp_path), **subject, "dry_run": dry_run})

    assert bool(result["snapshot_id"]) == (not dry_run) or job is compact_database_job
    [record] = [each for each in caplog.records if each.levelno == logging.WARNING]
    assert CURE in record.getMessage()


class Stdin:
    def isatty(self) -> bool:
        return True


@pytest.fixture
def asked(monkeypatch):
    """A terminal, the questions of which are kept and answered with no."""
    questions: list[str] = []

    class Sys:
        stdin = Stdin()

    monkeypatch.setattr("lakeformat.cli.confirm.sys", Sys())
    monkeypatch.setattr("typer.confirm", lambda question, err: questions.append(question) or False)
    return questions


COMMANDS = [
    ["compact", "shop.orders"],
    ["compact-database", "shop"],
    ["changelog", "shop.orders"],
]


@pytest.mark.parametrize("command", [*COMMANDS, ["maintain", "shop.orders"]], ids=" ".join)
def test_a_person_is_asked_and_may_say_no(orders, asked, command):
    compact_as_flink(orders)
    write(orders, 2)

    shown = runner.invoke(app, command)

    assert asked == ["Compact it anyway?"]
    assert "WARNING: shop.orders: another program compacts" in shown.output
    assert "nothing was changed" in shown.output
    assert orders.latest_snapshot().id == 5


def test_of_a_database_a_person_leaves_out_one_table_and_the_others_are_maintained(
    catalog, orders, asked
):
    compact_as_flink(orders)
    write(orders, 5)
    mine = catalog.create_table("shop.mine", [("id", "BIGINT")], primary_key=["id"])
    write(mine, 6)

    shown = runner.invoke(app, ["maintain", "shop"])

    assert asked == ["Compact it anyway?"]
    assert (orders.latest_snapshot().id, mine.latest_snapshot().id) == (8, 7)
    assert shown.stderr.endswith(
        "skipped shop.orders; to maintain it: lake maintain shop.orders --yes\n"
    )
    assert shown.exit_code == 4


@pytest.mark.parametrize("command", COMMANDS, ids=lambda each: each[0])
def test_with_yes_it_is_not_asked(orders, asked, command):
    compact_as_flink(orders)
    write(orders, 2)

    shown = runner.invoke(app, [*command, "--yes"])

    assert (asked, shown.exit_code) == ([], 0)
    assert shown.output.count("WARNING") == 1
    assert orders.latest_snapshot().id == 6


def test_a_script_goes_on_with_the_warning(orders):
    compact_as_flink(orders)
    write(orders, 2)

    shown = runner.invoke(app, ["compact", "shop.orders"])

    assert shown.exit_code == 0
    assert CURE in shown.stderr
    assert orders.latest_snapshot().id == 6


def test_a_plan_asks_nothing(orders, asked):
    compact_as_flink(orders)

    assert runner.invoke(app, ["compact", "shop.orders", "--plan"]).exit_code == 0
    assert asked == []
