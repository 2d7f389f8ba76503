"""The job ``maintain``: its result, and how it fails."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

import lakeformat as lake
from spark_jobs import maintain
from spark_jobs.health import UnhealthyTableError
from spark_jobs.runtime.compaction import warnings_of
from spark_jobs.runtime.job import PartlyFailedError
from tests.crashed_writer import BUCKETS, crashed_table


@pytest.fixture
def wanted(tmp_path):
    def build(**more):
        subject = {} if "database" in more else {"table": "shop.orders"}
        return {"warehouse": str(tmp_path), **subject, **more}

    return build


def fail_with(monkeypatch, error):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr("lakeformat.paimon.maintain.steps.compact", fail)


def test_the_result_has_the_figures_and_the_snapshots_of_the_maintenance(catalog, wanted):
    table = crashed_table(catalog, commits=12, consumer=None)
    planned = maintain.run(wanted(dry_run=True))
    done = maintain.run(wanted())
    again = maintain.run(wanted())

    assert (planned["skipped"], planned["snapshot_id"]) == (False, None)
    assert (done["table"], done["previous_snapshot_id"]) == ("shop.orders", 12)
    assert done["snapshot_id"] == table.latest_snapshot().id
    assert (again["skipped"], again["snapshot_id"]) == (True, None)
    report = done["report"]
    assert (report["before"]["files"], report["after"]["files"]) == (12 * BUCKETS, BUCKETS)
    assert [step["outcome"] for step in report["steps"]][1:] == ["done", "done", "done"]
    assert all("report" not in step for step in report["steps"])
    assert len(json.dumps(done)) < 10_000


def test_what_stands_in_the_way_is_a_warning_with_the_command(catalog, wanted):
    crashed_table(catalog, commits=12)
    [warning] = warnings_of(maintain.run(wanted()))
    assert warning.startswith("shop.orders: consumer 'dashboard' has not moved for 2 d")
    assert warning.endswith("lake maintain shop.orders --expire-consumers '2 d'")
    assert warnings_of(maintain.run(wanted(expire_consumers="2 d"))) == []


def test_a_failed_step_fails_the_job_which_has_the_result_of_the_others(
    catalog, wanted, monkeypatch
):
    crashed_table(catalog, commits=12, consumer=None)
    fail_with(monkeypatch, lake.CommitConflictError("other writers were first"))
    with pytest.raises(PartlyFailedError, match=r"shop\.orders: compact: CommitConflict") as caught:
        maintain.run(wanted())
    result = caught.value.result
    assert caught.value.is_conflict
    assert result["report"]["after"]["dead_files"] == 0
    assert result["report"]["after"]["snapshots"] == 10


def test_a_refused_step_stands_in_the_way_and_fails_only_if_asked(catalog, wanted, monkeypatch):
    crashed_table(catalog, commits=12, consumer=None)
    fail_with(monkeypatch, lake.UnsupportedError("this version does not compact it"))
    done = maintain.run(wanted())
    assert "compact failed: this version does not compact it" in warnings_of(done)[0]
    with pytest.raises(UnhealthyTableError, match=r"shop\.orders is unhealthy") as caught:
        maintain.run(wanted(fail_when="unhealthy"))
    assert caught.value.result["report"]["is_healthy"] is False


def test_a_database_is_maintained_and_one_table_that_fails_stops_no_other(
    catalog, wanted, tmp_path
):
    crashed_table(catalog, commits=12)
    catalog.create_table("shop.damaged", [("id", "BIGINT")]).write(pa.table({"id": [1]}))
    [manifest] = (tmp_path / "shop.db" / "damaged" / "manifest").glob("manifest-list*-0")
    manifest.write_bytes(b"x")
    with pytest.raises(
        PartlyFailedError, match=r"1 of 2 tables failed; the first is shop\.damaged"
    ) as caught:
        maintain.run(wanted(database="shop"))
    tables = {each["table"]: each for each in caught.value.result["report"]["tables"]}
    assert tables["shop.orders"]["report"]["after"]["files"] == BUCKETS
    done = maintain.run(wanted(database="shop", excluding=r".*\.damaged"))
    assert done["reason"] == "0 of 1 tables maintained, 1 with obstacles"
    with pytest.raises(lake.NotFoundError, match="no table matches database='sales'"):
        maintain.run(wanted(database="sales"))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "one of the keys 'table' and 'database'"),
        ({"table": "shop.orders", "database": "shop"}, "one of the keys 'table' and 'database'"),
        ({"table": "shop.orders", "including": "shop.*"}, "need key 'database'"),
        (
            {"table": "shop.orders", "fail_when": "degraded", "dry_run": True},
            "leave one of them out",
        ),
        ({"table": "shop.orders", "expire_consumers": "soon"}, "expire_consumers"),
    ],
)
def test_keys_that_mean_nothing_together_are_refused(tmp_path, given, words):
    with pytest.raises(lake.InvalidRequestError, match=words):
        maintain.run({"warehouse": str(tmp_path), **given})


def test_the_command_says_how_far_it_has_come(catalog, wanted, capsys):
    crashed_table(catalog, commits=12, consumer=None)
    assert maintain.main(["--request", json.dumps(wanted())]) == 0
    assert maintain.main(["--request", json.dumps(wanted())]) == 10
    lines = [each for each in capsys.readouterr().out.splitlines() if "LAKE_PROGRESS" in each]
    told = [json.loads(line.partition(" ")[2]) for line in lines]
    assert [each["step"] for each in told if each["unit"] == "steps"][:4] == [
        "partitions",
        "compact",
        "expire",
        "orphans",
    ]
    assert {"done": BUCKETS, "total": BUCKETS}.items() <= next(
        each.items() for each in reversed(told) if each["unit"] == "units"
    )
