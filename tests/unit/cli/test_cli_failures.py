"""A failed command prints one line on stderr, has an exit code by kind, and no traceback."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.cli.plain_values import plain_columns, plain_rows
from tests.lake_command import lake_ends


def lake_where(change: str, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """``lake`` in a fresh Python in which something was changed first."""
    code = f"import sys, lakeformat.cli.app as program, lakeformat.cli.inspect as inspect\n{change}"
    return subprocess.run(
        [sys.executable, "-c", f"{code}\nsys.argv[1:] = {words!r}; program.main()"],
        capture_output=True,
        text=True,
        env={"TERM": "dumb", **environment},
    )


def raising(error: str) -> str:
    return f"def fail(*_): raise {error}\ninspect.named_table_of_any_format = fail"


def test_what_nobody_expected_is_one_line_that_calls_itself_a_defect():
    shown = lake_where(raising("KeyError('a\\nb')"), "files", "a.b")
    assert (shown.returncode, shown.stdout) == (3, "")
    said = "this is a defect; run again with LAKE_DEBUG=1 for the traceback"
    assert shown.stderr.splitlines() == [f"KeyError: 'a\\nb'; {said}"]


def test_a_message_of_many_lines_is_one_line():
    shown = lake_where(raising("ValueError('a\\nb')"), "files", "a.b")
    assert shown.stderr.startswith("ValueError: a b; this is a defect")


def test_the_traceback_of_a_defect_is_there_for_who_asks():
    shown = lake_where(raising("KeyError('k')"), "files", "a.b", LAKE_DEBUG="1")
    assert shown.stderr.startswith("Traceback")
    assert shown.stderr.endswith("KeyError: 'k'\n")


@pytest.mark.parametrize(
    "change",
    [raising("KeyboardInterrupt"), "def fail(): raise KeyboardInterrupt\nprogram.app = fail"],
)
def test_an_interrupted_command_ends_quietly(change):
    shown = lake_where(change, "files", "a.b")
    assert (shown.returncode, shown.stdout, shown.stderr) == (130, "", "")


def test_a_command_that_is_ended_deletes_its_files_first():
    change = """
import os, signal, time
def fail(*_):
    try:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(60)
    finally:
        print("clean")
inspect.named_table_of_any_format = fail"""
    shown = lake_where(change, "files", "a.b")
    assert (shown.returncode, shown.stdout, shown.stderr) == (143, "clean\n", "")


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_a_reader_may_leave_in_the_middle(tmp_path, words):
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    options = {f"spark.{number}": "x" * 200 for number in range(2000)}
    catalog.create_table("shop.orders", [("id", "BIGINT")])
    schema = Path(tmp_path, "shop.db", "orders", "schema", "schema-0")
    schema.write_text(json.dumps({**json.loads(schema.read_text()), "options": options}))
    command = [Path(sys.executable).with_name("lake"), "options", "shop.orders", *words]
    with subprocess.Popen(
        [*command, "-w", str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as shown:
        assert shown.stdout is not None
        assert shown.stdout.readline()
        shown.stdout.close()
        assert shown.stderr is not None
        assert shown.stderr.read() == b""


def test_commands_in_an_error_have_the_catalog_options_that_were_typed(tmp_path):
    words = ("--format", "iceberg", "scan", "shop.orders", "-w", str(tmp_path))
    _, _, said = lake_ends(*words)
    typed = f"lake -w {tmp_path} --format iceberg"
    assert f"`{typed} create-database shop`" in said
    assert f"`{typed} tables` lists all tables" in said


def test_an_error_about_a_mixed_table_names_its_format_once(tmp_path):
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    catalog.create_database("shop")
    made = catalog.create_table("shop.o", [("id", "BIGINT")], format="mixed", primary_key=["id"])
    shutil.rmtree(tmp_path / "shop" / "o_change_")
    assert made.format == "mixed"
    _, _, said = lake_ends("-w", str(tmp_path), "--format", "iceberg", "scan", "shop.o")
    command = f"`lake --format iceberg detach shop.o --abandon-changes -w file://{tmp_path}`"
    assert command in said


@pytest.mark.parametrize(
    ("words", "closed", "code"),
    [
        ("drop-table shop.orders", "<&-", 2),
        ("compact shop.orders", "2>&-", 0),
        ("scan shop.no", "2>&-", 1),
        ("scan shop.orders", ">&-", 0),
    ],
)
def test_a_closed_stream_is_like_dev_null(tmp_path, words, closed, code):
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    catalog.create_table("shop.orders", [("id", "BIGINT")])
    command = f"{sys.executable} -m lakeformat.cli -w {tmp_path} {words} {closed}"
    shown = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert shown.returncode == code, shown.stderr
    assert ("add --yes to delete" in shown.stderr) is (code == 2)


@pytest.mark.parametrize("command", ["tags", "branches", "consumers"])
def test_a_file_name_that_is_no_utf_8_is_named_in_one_line(tmp_path, command):
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    catalog.create_table("shop.orders", [("id", "BIGINT")])
    root = os.fsencode(tmp_path / "shop.db" / "orders")
    for odd in (b"tag/tag-\xff", b"consumer/consumer-\xff", b"branch/branch-\xff/schema/schema-0"):
        os.makedirs(os.path.dirname(root + b"/" + odd))
        with open(root + b"/" + odd, "wb") as file:
            file.write(b'{"nextSnapshot": 2}')
    code, _, said = lake_ends(command, "shop.orders", "-w", str(tmp_path))
    assert code == 1
    [line] = said.splitlines()
    assert line.startswith("CorruptTableError: file://")


TIMES = pa.table({"at": pa.array([0, None, 2**62], pa.timestamp("ms"))})


def test_a_time_no_calendar_knows_keeps_its_milliseconds_for_programs():
    assert list(plain_rows(TIMES)) == [
        {"at": "1970-01-01T00:00:00.000"},
        {"at": None},
        {"at": None, "at_millis": 2**62},
    ]


def test_a_time_no_calendar_knows_is_milliseconds_for_people():
    assert plain_columns(TIMES) == {"at": ["1970-01-01T00:00:00.000", None, f"{2**62} ms"]}


@pytest.mark.parametrize("millis", [-62_135_596_800_000, 253_402_300_799_999])
def test_the_first_and_the_last_time_of_the_calendar_are_text(millis):
    for beyond, has_text in ((0, True), (1 if millis > 0 else -1, False)):
        rows = pa.table({"at": pa.array([millis + beyond], pa.timestamp("ms"))})
        assert (next(iter(plain_rows(rows)))["at"] is not None) == has_text


def test_the_package_of_the_command_line_runs_as_the_command():
    shown = subprocess.run(
        [sys.executable, "-m", "lakeformat.cli", "--help"], capture_output=True, text=True
    )
    assert shown.returncode == 0
    assert "compact-database" in shown.stdout
