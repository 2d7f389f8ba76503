"""``lake orphans``, ``lake missing-files`` and ``lake repair-hints``, as people type them."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import lakeformat as lake
from lakeformat.cli.app import app
from tests.golden.iceberg_orders import IcebergOrders
from tests.lake_command import lake_refuses, lake_says

runner = CliRunner()
says = partial(lake_says, width=250)
UNIQUE = "0a1b2c3d-0000-4000-8000-0123456789ab"
THREE_DAYS = 3 * 24 * 60 * 60


@pytest.fixture
def catalog(tmp_path) -> lake.Catalog:
    """Two tables of two rows; orders has an orphan of three days and one of now."""
    allowed = {"external-roots": str(tmp_path / "outside")}
    catalog = lake.open_catalog(str(tmp_path), options=allowed)
    catalog.create_database("shop")
    for name in ("orders", "events"):
        table = catalog.create_table(f"shop.{name}", [("id", "BIGINT")])
        for number in range(2):
            table.write(pa.table({"id": [number]}))
    put(catalog, f"bucket-0/data-{UNIQUE}-0.parquet", THREE_DAYS)
    put(catalog, f"index/index-{UNIQUE.replace('0a', '0b')}-0", 0)
    return catalog


def put(catalog: lake.Catalog, path: str, age_seconds: float) -> Path:
    file = Path(catalog.location.removeprefix("file://")) / "shop.db/orders" / path
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(b"orphan")
    moment = time.time() - age_seconds
    os.utime(file, (moment, moment))
    return file


def orphan_of(catalog: lake.Catalog) -> Path:
    return put(catalog, f"bucket-0/data-{UNIQUE}-0.parquet", THREE_DAYS)


def test_asking_shows_each_file_and_removes_none(catalog):
    orphan = orphan_of(catalog)
    for words in ([], ["--dry-run"]):
        shown = says(catalog, "orphans", "shop.orders", *words)
        assert orphan.name in shown
        assert "orphans: 1 of 10 files; dry run, so none was removed (6 B)" in shown
        assert "kept 1: newer than the age limit" in shown
        assert orphan.exists()


def test_the_same_command_cleans_an_iceberg_table(tmp_path):
    lost = IcebergOrders(tmp_path).root / "data/lost.parquet"
    lost.write_bytes(b"lost")
    os.utime(lost, (1_600_000_000, 1_600_000_000))
    address = str(lost.parent.parent)
    shown = runner.invoke(app, ["orphans", address])
    assert "; dry run, so none was removed (4 B)" in shown.output
    assert lost.exists()
    catalog = ["-w", str(tmp_path), "--catalog-option", "format=iceberg"]
    shown = runner.invoke(app, [*catalog, "orphans", "shop"])
    assert "shop.orders" in shown.output
    shown = runner.invoke(app, ["orphans", address, "--remove"])
    assert "removed 1 orphan of " in shown.output
    assert not lost.exists()


def test_removing_has_to_be_said(catalog):
    orphan = orphan_of(catalog)
    shown = says(catalog, "orphans", "shop.orders", "--remove")
    assert "removed 1 orphan of 10 files (6 B)" in shown
    assert not orphan.exists()
    assert "is referenced or newer than the age limit" in says(
        catalog, "orphans", "shop.orders", "--remove"
    )


def test_a_whole_database_is_one_command(catalog):
    orphan = orphan_of(catalog)
    shown = says(catalog, "orphans", "shop", "--remove")
    assert "shop.orders" in shown
    assert "shop.events" in shown
    assert not orphan.exists()


def test_a_table_that_fails_stops_no_other_and_is_the_exit_code(catalog):
    orphan = orphan_of(catalog)
    events = Path(catalog.location.removeprefix("file://")) / "shop.db/events/manifest"
    next(events.glob("manifest-list-*")).unlink()
    shown = says(catalog, "orphans", "shop", "--remove", code=1)
    assert "CorruptTableError" in shown
    assert not orphan.exists()
    [failed, done] = json.loads(says(catalog, "orphans", "shop", "--json", code=1))
    assert (failed["table"], failed["report"]) == ("shop.events", None)
    assert done["report"]["orphan_files"] == 0


def test_programs_get_the_whole_report(catalog):
    [report] = json.loads(says(catalog, "orphans", "shop.orders", "--json"))
    assert (report["orphan_files"], report["young_files"], report["dry_run"]) == (1, 1, True)
    assert report["files"][0]["reason"].startswith("no reference in 2 snapshots")


def test_every_file_can_be_written_down(catalog, tmp_path):
    saved = tmp_path / "orphans.jsonl"
    says(catalog, "orphans", "shop.orders", "--remove", "--save", str(saved))
    [line] = saved.read_text().splitlines()
    removed = json.loads(line)
    assert (removed["kind"], removed["size"]) == ("data", 6)
    assert removed["path"].endswith(f"/bucket-0/data-{UNIQUE}-0.parquet")


def test_a_refused_command_keeps_an_earlier_list(catalog, tmp_path):
    saved = tmp_path / "orphans.jsonl"
    says(catalog, "orphans", "shop.orders", "--save", str(saved))
    [line] = saved.read_text().splitlines()
    missing = lake.NotFoundError
    lake_refuses(catalog, "orphans", "shop.order", "--save", str(saved), error=missing)
    lake_refuses(catalog, "orphans", "shop.orders", "--older-than", "1 h", "--save", str(saved))
    lake_refuses(catalog, "expire", "shop.order", "--save", str(saved), error=missing)
    assert saved.read_text().splitlines() == [line]
    says(catalog, "orphans", "shop.orders", "--remove", "--save", str(saved))
    assert saved.read_text().splitlines() == [line]
    says(catalog, "orphans", "shop.orders", "--remove", "--save", str(saved))
    assert saved.read_text() == ""


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        (["--older-than", "2099-01-01"], "in the future"),
        (["--older-than", "1 h"], "allow_younger"),
        (["--running-since", "2099-01-01"], "in the future"),
        (["--older-than", "2 d", "--running-since", "2020-01-01"], "a write has been in progress"),
        (["--max-share", "2"], "max_share must be above 0"),
        (["--older-than", "soon"], "an age such as '7 d'"),
    ],
)
def test_what_is_not_safe_is_refused_with_the_rule(catalog, words, rule):
    assert rule in lake_refuses(catalog, "orphans", "shop.orders", *words)


def test_setting_the_floor_aside_is_loud(catalog):
    words = ["--older-than", "0 s", "--allow-younger", "--remove"]
    shown = says(catalog, "orphans", "shop.orders", *words)
    assert "AGE LIMIT OVERRIDDEN" in shown
    assert "removed 2 orphans of 10 files" in shown


def test_external_paths_that_two_tables_share_are_refused(catalog, tmp_path):
    outside = {
        "data-file.external-paths": f"file://{tmp_path}/outside",
        "data-file.external-paths.strategy": "round-robin",
    }
    for name in ("one", "two"):
        catalog.create_table(f"shop.{name}", [("id", "BIGINT")], options=outside)
    words = ("orphans", "shop.one", "--external-paths")
    assert "no external root allows" in lake_refuses(catalog, *words)
    allowed = ("--external-root", str(tmp_path / "outside"))
    refused = lake_refuses(catalog, *allowed, *words)
    assert "of 'shop.two' overlap. To search only" in refused
    assert "leave out --external-paths" in refused
    assert "not searched: file://" in says(catalog, "orphans", "shop.one")


def test_missing_files_are_shown_and_taken_out(catalog):
    bucket = Path(catalog.location.removeprefix("file://")) / "shop.db/events/bucket-0"
    gone = sorted(bucket.iterdir())[0]
    gone.unlink()
    shown = runner.invoke(app, ["-w", catalog.location, "missing-files", "shop.events"])
    assert shown.exit_code == 1, "rows are lost, and nobody who runs it on a schedule overlooks it"
    assert gone.name in shown.output
    said = "checked 2 data files of the newest snapshot 2: 1 is missing, with 1 row; nothing was"
    assert said in shown.output
    assert "--remove" in shown.output
    [report] = json.loads(says(catalog, "missing-files", "shop.events", "--remove", "--json"))
    assert report["published"] == 3
    assert len(catalog.table("shop.events").scan().to_arrow()) == 1
    assert "checked 1 data file of the newest snapshot 3: none is missing or truncated" in says(
        catalog, "missing-files", "shop.events"
    )


def test_the_output_names_options_and_not_arguments_of_python(catalog):
    shown = says(catalog, "orphans", "shop.orders")
    assert "since the day before; set --older-than for another age" in shown
    folder = Path(catalog.location.removeprefix("file://")) / "shop.db/events/bucket-0"
    for file in folder.iterdir():
        file.unlink()
    shown = runner.invoke(app, ["-w", catalog.location, "missing-files", "shop.events"]).output
    said = " ".join(shown.split())
    assert "more than --max-share 50%." in said
    assert "If the files are lost, pass --max-share 1" in said


def test_wrong_hints_are_shown_and_put_right(catalog):
    hint = Path(catalog.location.removeprefix("file://")) / "shop.db/orders/snapshot/LATEST"
    hint.write_text("7")
    assert "LATEST" in says(catalog, "repair-hints", "shop.orders", "--dry-run")
    assert hint.read_text() == "7"
    [report] = json.loads(says(catalog, "repair-hints", "shop.orders", "--json"))
    assert report["changes"][0]["after"] == 2
    assert hint.read_text() == "2"
    assert "all hints are correct" in says(catalog, "repair-hints", "shop.orders")


def test_the_examples_of_the_page_run(catalog, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).resolve().parents[3] / "docs" / "orphans.md").read_text()
    commands = re.findall(r"^    lake (.+?)(?:\s+#.*)?$", page, re.MULTILINE)
    assert len(commands) == 5
    for command in commands:
        says(catalog, *shlex.split(command))
    for block in re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        exec(block, {"orders": catalog.table("shop.orders")})
    assert (tmp_path / "deleted.jsonl").read_text().count("\n") == 1


def test_the_age_floor_set_aside_is_warned_of_once(catalog):
    words = ["orphans", "shop.orders", "--older-than", "1 h", "--allow-younger"]
    command = [sys.executable, "-m", "lakeformat.cli", "-w", catalog.location, *words]
    shown = subprocess.run(command, capture_output=True, text=True, check=True)
    [warning] = shown.stderr.splitlines()
    assert warning.startswith("AGE LIMIT OVERRIDDEN: ")
