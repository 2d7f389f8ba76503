"""``lake expire`` and ``lake consumer``: what would go and why, for people and for programs."""

from __future__ import annotations

import json
import os
import time
from dataclasses import fields, replace

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import lakeformat as lake
from lakeformat.cli.app import app
from lakeformat.cli.expire import _require_complete
from lakeformat.tables.deleter import Deleted
from tests.lake_command import lake_on_a_terminal, lake_refuses, lake_says

runner = CliRunner()
ALL_BUT_ONE = ("--retain-max", "1", "--retain-min", "1")


@pytest.fixture
def catalog(tmp_path) -> lake.Catalog:
    """Three snapshots of shop.orders; the third has replaced the files of the first two."""
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    table = catalog.create_table(
        "shop.orders", [("id", "BIGINT")], primary_key=["id"], options={"bucket": "1"}
    )
    for _ in range(2):
        table.write(pa.table({"id": [1, 2]}))
    table.compact()
    return catalog


def test_a_dry_run_shows_every_file_with_its_reason_and_removes_none(catalog):
    shown = lake_says(catalog, "expire", "shop.orders", *ALL_BUT_ONE, "--dry-run")
    assert "snapshot 1 expires" in shown
    assert "deleted by snapshot 3, and no older snapshot is left" in shown
    assert "2 snapshots, 1 to 2, would expire" in shown
    assert "oldest kept: snapshot 3: the newest snapshot is always kept" in shown
    assert len(catalog.table("shop.orders").snapshots()) == 3


def test_snapshots_expire_and_the_report_counts_their_files(catalog, tmp_path):
    saved = tmp_path / "removed.jsonl"
    shown = lake_says(catalog, "expire", "shop.orders", *ALL_BUT_ONE, "--save", str(saved))
    assert "8 files of " in shown
    assert ": 2 data files, 4 manifest lists, 2 snapshot files" in shown
    assert len(catalog.table("shop.orders").snapshots()) == 1
    files = [json.loads(line) for line in saved.read_text().splitlines()]
    assert sorted({file["kind"] for file in files}) == ["data", "manifest list", "snapshot"]
    assert "no snapshot expired" in lake_says(catalog, "expire", "shop.orders", *ALL_BUT_ONE)


def test_programs_get_one_report_with_the_files_of_a_dry_run(catalog):
    shown = lake_says(catalog, "expire", "shop.orders", *ALL_BUT_ONE, "--dry-run", "--json")
    [planned] = json.loads(shown)
    assert (planned["snapshots"], planned["dry_run"], len(planned["removals"])) == ([1, 2], True, 8)
    [done] = json.loads(lake_says(catalog, "expire", "shop.orders", *ALL_BUT_ONE, "--json"))
    assert (done["snapshots"], done["earliest_snapshot"]) == ([1, 2], 3)
    assert "removals" not in done


@pytest.mark.parametrize(
    ("report", "advice"),
    [
        (lake.ExpireReport, "run the command again to delete the rest"),
        (lake.IcebergExpireReport, "`lake orphans a.b --remove` deletes them later"),
    ],
)
def test_files_that_could_not_be_deleted_are_an_error_with_what_deletes_them(report, advice):
    deleted = Deleted(failed=["memory://a/x: no"], failures=2)
    failed = report(**{**{each.name: () for each in fields(report)}, "deleted": deleted})
    with pytest.raises(lake.LakeError) as one:
        _require_complete([("a.a", replace(failed, deleted=Deleted())), ("a.b", failed)])
    assert str(one.value) == (
        f"2 files of a.b could not be deleted: {advice}. The first file is memory://a/x: no"
    )
    with pytest.raises(lake.LakeError, match=r"^4 files of 2 tables could not be deleted: "):
        _require_complete([("a.b", failed), ("a.c", failed)])


def test_a_request_that_contradicts_itself_is_told_the_rule(catalog):
    assert "in the future" in lake_refuses(
        catalog, "expire", "shop.orders", "--older-than", "2999-01-01"
    )
    said = lake_refuses(catalog, "expire", "shop.orders", "--retain-max", "1", "--retain-min", "2")
    assert "retain_min is 2 and retain_max is 1" in said


def test_consumers_are_set_listed_moved_and_forgotten(catalog):
    assert "has no consumer" in lake_says(catalog, "consumer", "list", "shop.orders")
    lake_says(catalog, "consumer", "set", "shop.orders", "job", "--next", "2")
    said = lake_says(catalog, "consumer", "set", "shop.orders", "test-1", "--next", "4", "--json")
    next_of_test = {"consumer_id": "test-1", "next_snapshot_id": 4, "dry_run": False}
    assert json.loads(said) == [next_of_test]
    [job, test] = json.loads(lake_says(catalog, "consumer", "list", "shop.orders", "--json"))
    assert (job["consumer_id"], job["next_snapshot_id"]) == ("job", 2)
    assert (job["behind"], job["is_stale"]) == (2, False)
    assert (test["consumer_id"], test["behind"]) == ("test-1", 0)
    assert "job" in lake_says(catalog, "consumer", "list", "shop.orders")
    shown = lake_says(catalog, "expire", "shop.orders", *ALL_BUT_ONE)
    assert "kept snapshots from 2 on for consumer 'job'" in shown
    assert "kept snapshots from 3 on for consumer 'job'" in lake_says(
        catalog, "consumer", "reset", "shop.orders", "job", "--next", "3"
    )
    shown = lake_says(
        catalog, "consumer", "clear", "shop.orders", "--including", "test-.*", "--dry-run"
    )
    assert "would delete test-1; kept 1 consumer" in shown
    for option in ("--including", "--excluding"):  # such as that of an empty variable of a shell
        said = lake_refuses(catalog, "consumer", "clear", "shop.orders", option, "", "--yes")
        assert "need a name or a pattern, got an empty text: nothing was deleted" in said
    assert "deleting all consumers of shop.orders cannot be undone: add --yes" in lake_refuses(
        catalog, "consumer", "clear", "shop.orders"
    )
    assert "deleted consumer 'job'" in lake_says(catalog, "consumer", "reset", "shop.orders", "job")
    shown = lake_says(
        catalog, "consumer", "expire", "shop.orders", "--older-than", "2020-01-01", "--json"
    )
    [report] = json.loads(shown)
    assert (report["removed"], report["kept"]) == ([], ["test-1"])
    assert "deleted test-1; kept 0 consumers" in lake_says(
        catalog, "consumer", "clear", "shop.orders", "--yes"
    )


def test_a_consumer_that_would_read_what_has_expired_is_told_the_earliest_there_is(catalog):
    lake_says(catalog, "expire", "shop.orders", *ALL_BUT_ONE)
    said = lake_refuses(catalog, "consumer", "set", "shop.orders", "job", "--next", "1")
    assert "snapshot 1, which has expired: the earliest one left is 3" in said


def test_a_terminal_sees_how_far_an_expiry_has_come(catalog):
    piped, seen = lake_on_a_terminal(catalog.location, "expire", "shop.orders", *ALL_BUT_ONE)
    assert "8 files deleted" in seen
    assert "files deleted" not in piped


def test_a_file_that_cannot_be_saved_is_said_before_anything_is_removed(catalog, tmp_path):
    for command in (("expire", "shop.orders", *ALL_BUT_ONE), ("orphans", "shop.orders")):
        shown = runner.invoke(
            app, ["-w", catalog.location, *command, "--save", str(tmp_path / "no" / "file")]
        )
        assert isinstance(shown.exception, lake.LakeError), shown.output
        assert "No such file" in str(shown.exception)
        assert f"Create the directory {tmp_path / 'no'} first" in str(shown.exception)
    assert len(catalog.table("shop.orders").snapshots()) == 3


def test_a_long_list_is_cut_and_the_sum_comes_last(catalog, monkeypatch):
    monkeypatch.setattr("lakeformat.cli.expire._SHOWN_FILES", 3)
    lines = lake_says(catalog, "expire", "shop.orders", *ALL_BUT_ONE, "--dry-run").splitlines()
    assert len([line for line in lines if "/shop.db/" in line]) == 3
    assert "and 5 more; --save FILE writes all of them" in lines
    assert lines[-1].startswith("oldest kept: snapshot 3")


def test_a_consumer_reads_no_snapshot_before_the_first(catalog):
    said = lake_refuses(catalog, "consumer", "set", "shop.orders", "job", "--next", "0")
    assert "must be at least 1" in said


@pytest.fixture
def with_a_broken_table(catalog) -> lake.Catalog:
    """The database also has a table with a missing manifest list."""
    broken = catalog.create_table("shop.broken", [("id", "BIGINT")])
    for number in range(3):
        broken.write(pa.table({"id": [number]}))
    handle = broken._handle
    handle.storage.delete(handle.layout.manifest(broken.latest_snapshot().base_manifest_list))
    return catalog


@pytest.mark.parametrize(
    ("command", "done"),
    [
        (("expire", *ALL_BUT_ONE), lambda report: report["snapshots"] == [1, 2]),
        (("analyze",), lambda report: report["snapshot_id"] == 4),
        (("missing-files",), lambda report: report["checked_files"] == 1),
    ],
    ids=["expire", "analyze", "missing-files"],
)
def test_each_table_of_a_database_has_its_turn_whatever_becomes_of_another(
    with_a_broken_table, command, done
):
    name, *options = command
    catalog = with_a_broken_table
    shown = runner.invoke(app, ["-w", catalog.location, name, "shop", *options, "--json"])
    assert shown.exit_code == 1
    broken, orders = json.loads(shown.stdout)
    assert (broken["table"], broken["report"]) == ("shop.broken", None)
    assert "CorruptTableError" in broken["error"]
    assert (orders["table"], orders["error"]) == ("shop.orders", None)
    assert done(orders["report"])


def test_the_tables_of_a_database_are_lines_for_people(catalog, tmp_path):
    catalog.create_table("shop.empty", [("id", "BIGINT")])
    saved = tmp_path / "files.jsonl"
    shown = lake_says(
        catalog, "expire", "shop", *ALL_BUT_ONE, "--dry-run", "--save", str(saved)
    ).splitlines()
    assert shown[0].split()[:5] == ["table", "snapshots", "changelogs", "files", "size"]
    assert shown[1].split()[:4] == ["shop.empty", "0", "0", "0"]
    assert shown[2].split()[:4] == ["shop.orders", "2", "0", "8"]
    assert len(saved.read_text().splitlines()) == 8
    assert len(catalog.table("shop.orders").snapshots()) == 3


def test_an_expiry_of_a_database_names_the_stalled_consumers_of_its_tables(catalog, tmp_path):
    lake_says(catalog, "consumer", "set", "shop.orders", "mirror", "--next", "1")
    [file] = tmp_path.rglob("consumer-mirror")
    nine_days_ago = time.time() - 9 * 24 * 60 * 60
    os.utime(file, (nine_days_ago, nine_days_ago))
    of_table = lake_says(catalog, "expire", "shop.orders", *ALL_BUT_ONE).splitlines()[-1]
    assert "consumer 'mirror' has not moved for 9 d" in of_table
    assert of_table.endswith("lake consumer reset shop.orders mirror")
    shown = lake_says(catalog, "expire", "shop", *ALL_BUT_ONE).splitlines()
    assert shown[-1] == f"shop.orders: {of_table}"


@pytest.mark.parametrize(
    ("command", "said"),
    [(("analyze", "--all-columns"), "reading: 2 rows"), (("rewrite-file-index",), "1 of 1 files")],
    ids=["analyze", "rewrite-file-index"],
)
def test_a_terminal_sees_how_far_work_on_many_rows_has_come(catalog, command, said):
    option = lake.set_option("file-index.bloom-filter.columns", "id")
    catalog.alter_table("shop.orders", option)
    name, *options = command
    _, seen = lake_on_a_terminal(catalog.location, name, "shop.orders", *options)
    assert said in seen
