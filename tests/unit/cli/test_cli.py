"""``lake`` at a terminal and in a script: rows, JSON, one-line errors, exit codes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import lakeformat as lake
from lakeformat.cli.app import app
from lakeformat.doctor import DISTRIBUTION
from lakeformat.types.byte_size import size
from lakeformat.types.type_text import type_to_json
from tests.lake_command import lake_ends

LAKE = Path(sys.executable).with_name("lake")
METADATA = [
    "snapshots",
    "schemas",
    "options",
    "manifests",
    "files",
    "partitions",
    "buckets",
    "tags",
    "branches",
    "consumers",
    "statistics",
    "indexes",
]
runner = CliRunner()


def show(*arguments: str) -> list[list[str]]:
    """The words of each line a command prints; in this process, which is faster."""
    shown = runner.invoke(app, [*arguments])
    assert shown.exit_code == 0, shown.output
    return [line.split() for line in shown.output.splitlines()]


def show_json(*arguments: str) -> list[dict]:
    shown = runner.invoke(app, [*arguments, "--json"])
    assert shown.exit_code == 0, shown.output
    return json.loads(shown.output)


def run(*arguments, **environment) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [LAKE, *arguments], capture_output=True, text=True, env={"TERM": "dumb", **environment}
    )


@pytest.fixture
def warehouse(tmp_path) -> str:
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    orders = catalog.create_table("shop.orders", [("id", "BIGINT")])
    catalog.create_table("shop.empty", [("id", "BIGINT")])
    orders.write(pa.table({"id": [1, 2]}), commit=lake.CommitId("nightly", 3))
    return str(tmp_path)


def test_help_names_every_command():
    shown = run("--help")
    assert shown.returncode == 0
    for command in ("doctor", "tables", *METADATA):
        assert f" {command} " in shown.stdout


@pytest.mark.parametrize("place", ["before", "after", "environment"])
def test_the_warehouse_may_be_named_before_or_after_the_command_or_outside(warehouse, place):
    words, environment = {
        "before": (["--warehouse", warehouse, "tables"], {}),
        "after": (["tables", "-w", warehouse], {}),
        "environment": (["tables"], {"LAKE_WAREHOUSE": warehouse}),
    }[place]
    shown = runner.invoke(app, words, env=environment)
    assert [line.split() for line in shown.stdout.splitlines()[1:]] == [
        ["shop", "empty"],
        ["shop", "orders"],
    ]


def test_snapshots_are_rows_for_people(warehouse):
    heading, snapshot = show("snapshots", "shop.orders", "-w", warehouse)
    assert heading[:3] == ["id", "time", "kind"]
    assert snapshot[0] == "1"
    assert snapshot[3:] == ["APPEND", "2", "2", "nightly", "3"]


def test_snapshots_are_json_for_programs(warehouse):
    [snapshot] = show_json("snapshots", "shop.orders", "-w", warehouse)
    assert snapshot["commit_kind"] == "APPEND"
    assert snapshot["total_record_count"] == 2


@pytest.mark.parametrize("command", METADATA)
def test_each_metadata_command_prints_its_system_table_whole_for_programs(warehouse, command):
    name = {"indexes": "table_indexes"}.get(command, command)
    table = lake.open_catalog(warehouse).table(f"shop.orders${name}").scan().to_arrow()
    rows = show_json(command, "shop.orders", "-w", warehouse)
    assert len(rows) == table.num_rows
    assert all(list(row) == table.column_names for row in rows)


def test_files_are_rows_for_people_with_what_says_something(warehouse):
    heading, file = show("files", "shop.orders", "-w", warehouse)
    assert heading == ["bucket", "level", "rows", "size", "created", "file"]
    assert file[:3] == ["0", "0", "2"]
    assert file[-1].endswith(".parquet")
    assert "/" not in file[-1]


def test_schemas_are_rows_for_people_in_words_of_sql(warehouse):
    columns = [("id", "BIGINT NOT NULL"), ("at", "ROW<x INT, y ARRAY<MAP<INT NOT NULL, STRING>>>")]
    lake.open_catalog(warehouse).create_table("shop.nested", columns)
    shown = runner.invoke(app, ["schemas", "shop.nested", "-w", warehouse]).output
    assert "id BIGINT NOT NULL, at ROW<x INT, y ARRAY<MAP<INT NOT NULL, STRING>>>" in shown


def test_an_older_snapshot_can_be_shown_by_number_and_by_tag(warehouse):
    orders = lake.open_catalog(warehouse).table("shop.orders")
    orders.write(pa.table({"id": [3]}))
    tag = Path(warehouse, "shop.db", "orders", "tag", "tag-v1")
    tag.parent.mkdir()
    tag.write_bytes(tag.parents[1].joinpath("snapshot", "snapshot-1").read_bytes())
    for option in (["--snapshot", "1"], ["--tag", "v1"]):
        assert len(show_json("files", "shop.orders", "-w", warehouse, *option)) == 1
    assert len(show_json("files", "shop.orders", "-w", warehouse)) == 2
    assert show("tags", "shop.orders", "-w", warehouse)[1][:2] == ["v1", "1"]


def test_a_table_is_named_by_its_directory_too(warehouse):
    location = f"{warehouse}/shop.db/orders"
    [words] = show("options", location)
    assert " ".join(words) == f"{location} has no option of its own"
    assert show("files", location) == show("files", "shop.orders", "-w", warehouse)


def test_a_branch_is_named_after_the_table(warehouse):
    root = Path(warehouse, "shop.db", "orders")
    shutil.copytree(root / "schema", root / "branch" / "branch-dev" / "schema")
    for name in ("shop.orders$branch_dev", f"{root}$branch_dev"):
        assert show_json("snapshots", name, "-w", warehouse) == []
        assert len(show_json("schemas", name, "-w", warehouse)) == 1
    assert show("branches", "shop.orders", "-w", warehouse)[1][0] == "dev"


def test_statistics_are_a_line_per_column(warehouse):
    statistics = {
        "snapshotId": 1,
        "schemaId": 0,
        "mergedRecordCount": 2,
        "mergedRecordSize": 2048,
        "colStats": {
            "id": {"colId": 0, "distinctCount": 2, "nullCount": 0, "min": "1", "max": "2"}
        },
    }
    root = Path(warehouse, "shop.db", "orders")
    (root / "statistics").mkdir()
    (root / "statistics" / "stat-u-0").write_text(json.dumps(statistics))
    snapshot = json.loads((root / "snapshot" / "snapshot-1").read_text())
    changed = json.dumps({**snapshot, "statistics": "stat-u-0"})
    (root / "snapshot" / "snapshot-1").write_text(changed)
    [_, line] = show("statistics", str(root))
    assert " ".join(line) == "1 2 2.0 KiB id: 2 distinct, 0 null, 1 … 2"


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (5 << 30, "5.0 GiB"),
        (3 << 60, "3072.0 PiB"),
    ],
)
def test_sizes_are_shown_as_people_read_them(count, text):
    assert size(count) == text


def test_nothing_to_show_is_a_sentence_and_an_empty_list(warehouse):
    code, said, _ = lake_ends("snapshots", "shop.empty", "-w", warehouse)
    assert code == 0
    assert "shop.empty has no snapshot yet" in said
    assert lake_ends("snapshots", "shop.empty", "-w", warehouse, "--json")[:2] == (0, "[]\n")


@pytest.mark.parametrize(
    ("table", "code", "message"),
    [
        ("orders", 2, "InvalidRequestError: 'orders' is not a table name: write 'database.table'"),
        ("shop.nix", 1, "NotFoundError: table 'shop.nix' does not exist"),
        ("shop.orders$nix", 2, "InvalidRequestError: there is no system table $nix"),
        ("./nowhere", 1, "NotFoundError: file:///"),
    ],
)
def test_an_error_is_one_line_with_its_class_and_an_exit_code(warehouse, table, code, message):
    ended, _, said = lake_ends("snapshots", table, "-w", warehouse)
    assert ended == code
    assert said.startswith(message)
    assert len(said.splitlines()) == 1


def pipe(stdout, *arguments, **environment) -> subprocess.CompletedProcess[str]:
    """Run with the output going elsewhere."""
    return subprocess.run(
        [LAKE, *arguments],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        env={"TERM": "dumb", **environment},
    )


def test_names_in_brackets_are_no_markup(warehouse):
    orders = lake.open_catalog(warehouse).table("shop.orders")
    for user in ("[x]", "[/]", "[bold]"):
        orders.write(pa.table({"id": [1]}), commit=lake.CommitId(user, 1))
    shown = show("snapshots", "shop.orders", "-w", warehouse)
    assert [line[6] for line in shown[2:]] == ["[x]", "[/]", "[bold]"]


@pytest.mark.parametrize("name", ["nix", "file"])
def test_a_warehouse_that_is_none_is_an_error_and_not_empty(tmp_path, name):
    (tmp_path / "file").touch()
    said = {
        "nix": "does not exist: check --warehouse, or start a new one with "
        f"`lake -w {tmp_path}/nix create-database shop`",
        "file": "is a file: check --warehouse",
    }
    found = f"NotFoundError: warehouse file://{tmp_path}/{name} {said[name]}"
    assert lake_ends("tables", "-w", f"{tmp_path}/{name}") == (1, "", f"{found}\n")


def test_a_reader_that_has_seen_enough_is_no_trouble(warehouse):
    read, write = os.pipe()
    os.close(read)
    shown = pipe(write, "snapshots", "shop.orders", "-w", warehouse)
    os.close(write)
    assert shown.stderr == ""


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_output_that_cannot_be_written_is_one_line(warehouse, words):
    with open("/dev/full", "w") as full:
        shown = pipe(full, "snapshots", "shop.orders", "-w", warehouse, *words)
    assert shown.returncode == 1
    assert shown.stderr.splitlines() == ["OSError: [Errno 28] No space left on device"]


def test_a_closed_output_takes_nothing_and_breaks_nothing(warehouse):
    command = f'exec "{LAKE}" snapshots shop.orders -w "{warehouse}" >&-'
    shown = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
    assert (shown.returncode, shown.stderr) == (0, "")


def test_what_the_terminal_cannot_show_is_spelled(warehouse):
    orders = lake.open_catalog(warehouse).table("shop.orders")
    orders.write(pa.table({"id": [1]}), commit=lake.CommitId("José", 1))
    shown = run("snapshots", "shop.orders", "-w", warehouse, PYTHONIOENCODING="ascii")
    assert shown.returncode == 0
    assert "Jos\\xe9" in shown.stdout


def test_the_version_is_that_of_the_distribution():
    assert run("--version").stdout == f"lake {version(DISTRIBUTION)}\n"


def test_databases_are_made_and_tables_renamed_and_dropped_on_purpose(warehouse):
    def lake_(*arguments: str) -> tuple[int, str]:
        done = runner.invoke(app, ["--warehouse", warehouse, *arguments])
        return done.exit_code, done.output

    assert lake_("create-database", "bank") == (0, "created bank\n")
    assert lake_("rename-table", "shop.empty", "bank.empty") == (
        0,
        "renamed shop.empty to bank.empty\n",
    )
    code, said = lake_("drop-table", "shop.orders", "--dry-run")
    assert code == 0
    assert f"{warehouse}/shop.db/orders" in said
    assert said.endswith("nothing was deleted\n")
    code, _, refusal = lake_ends("drop-table", "shop.orders", "-w", warehouse)
    assert code == 2
    assert "add --yes" in refusal
    assert Path(warehouse, "shop.db", "orders").exists()
    code, said = lake_("drop-table", "shop.orders", "--yes")
    assert said.endswith("dropped shop.orders\n")
    assert not Path(warehouse, "shop.db", "orders").exists()
    assert lake_("drop-database", "bank", "--yes")[0] != 0
    assert lake_("drop-database", "bank", "--cascade", "--yes")[1].endswith("dropped bank\n")
    assert not Path(warehouse, "bank.db").exists()


def test_a_table_is_made_with_its_columns_keys_and_options(warehouse):
    def create(*words: str):
        return runner.invoke(app, ["-w", warehouse, "create-table", "shop.new", *words])

    columns = ["--column", "id BIGINT", "--column", "`the price`  DECIMAL(10, 2) NOT NULL"]
    columns += ["--column", "dt STRING"]
    keys = [
        "--primary-key",
        "id",
        "--primary-key",
        "dt",
        "--partition-by",
        "dt",
        "--option",
        "bucket=4",
    ]
    assert create(*columns, *keys, "--comment", "sold").output == "created shop.new\n"
    schema = lake.open_catalog(warehouse).table("shop.new").schema
    assert [(field.name, str(type_to_json(field.type))) for field in schema.fields] == [
        ("id", "BIGINT NOT NULL"),
        ("the price", "DECIMAL(10, 2) NOT NULL"),
        ("dt", "STRING NOT NULL"),
    ]
    assert (schema.primary_keys, schema.partition_keys) == (("id", "dt"), ("dt",))
    assert (schema.options["bucket"], schema.comment) == ("4", "sold")
    assert isinstance(create(*columns).exception, lake.AlreadyExistsError)
    assert create(*columns, "--exist-ok").output == "shop.new exists\n"
    database = ["-w", warehouse, "create-database", "new", "--exist-ok"]
    made = [runner.invoke(app, database).output for _ in range(2)]
    assert made == ["created new\n", "new exists\n"]
    assert "write --column 'NAME TYPE'" in str(create("--column", "id").exception)
    assert "write --option KEY=VALUE" in str(create(*columns, "--option", "bucket").exception)


def test_a_sql_database_is_named_before_the_command_or_outside(tmp_path):
    uri = f"jdbc:sqlite:{tmp_path}/catalog.db"
    named = ["-w", str(tmp_path), "--metastore", "jdbc", "--uri", uri]
    key = ["--catalog-option", "catalog-key=sales"]
    assert runner.invoke(app, [*named, *key, "create-database", "shop"]).exit_code == 0
    catalog = lake.open_catalog(
        str(tmp_path), metastore="jdbc", uri=uri, options={"catalog-key": "sales"}
    )
    catalog.create_table("shop.orders", [("id", "BIGINT")])
    assert show(*named, *key, "tables")[1:] == [["shop", "orders"]]
    outside = {"LAKE_WAREHOUSE": str(tmp_path), "LAKE_METASTORE": "jdbc", "LAKE_URI": uri}
    other = str(runner.invoke(app, ["tables"], env=outside).exception)
    assert "has no catalog 'jdbc'; it has 'sales'" in other
    assert "`lake --catalog-option catalog-key=sales`" in other
    assert show(*named, "repair")[1:] == [["shop", "registered"], ["shop.orders", "registered"]]
    assert " ".join(show(*named, "repair")[0]) == "nothing to repair"
    wrong = runner.invoke(app, [*named, "--catalog-option", "x", "tables"])
    assert "--catalog-option KEY=VALUE" in str(wrong.exception)
