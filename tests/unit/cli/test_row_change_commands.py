"""``lake delete`` and ``lake update``: their output, and their refusals."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import lakeformat as lake
from lakeformat.cli.app import app

runner = CliRunner()


@pytest.fixture
def table(tmp_path) -> lake.Table:
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    table = catalog.create_table(
        "shop.orders", [("id", "BIGINT"), ("note", "STRING"), ("due", "DATE"), ("raw", "BYTES")]
    )
    table.write(pa.table({"id": [1, 2, 3], "note": ["a", "b", "c"]}))
    return table


def says(table: lake.Table, *arguments: str) -> str:
    shown = runner.invoke(app, [arguments[0], table.location, *arguments[1:]])
    assert shown.exit_code == 0, shown.output
    return shown.stdout


def test_a_deletion_says_how_many_rows_and_files_it_was(table):
    first, second = says(table, "delete", "--where", "id = 2").splitlines()
    assert first == "1 row deleted, published as snapshot 2"
    assert second.startswith("1 file rewritten; 1 file of ")
    assert second.endswith("added; 1 file read")
    assert table.scan().to_arrow()["id"].to_pylist() == [1, 3]


def test_a_dry_run_says_what_would_be_done(table):
    shown = says(table, "delete", "--where", "id < 9", "--dry-run")
    assert shown == (
        "3 rows would be deleted; nothing was changed\n"
        "1 file to remove, as no row is left; 1 file read\n"
    )
    assert table.scan().count() == 3


def test_rows_get_new_values(table):
    says(table, "update", "--where", "id = 2", "--set", "note=a=b", "--set", "due=2024-01-31")
    says(table, "update", "--where", "id = 3", "--set-null", "note")
    found = sorted(map(str, table.scan(columns=["id", "note"]).to_arrow().to_pylist()))
    assert found == [
        "{'id': 1, 'note': 'a'}",
        "{'id': 2, 'note': 'a=b'}",
        "{'id': 3, 'note': None}",
    ]
    assert str(table.scan(where="id = 2").to_arrow()["due"][0]) == "2024-01-31"


def test_bytes_are_written_as_in_sql(tmp_path):
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    table = catalog.create_table("shop.t", [("id", "BIGINT"), ("raw", "BYTES")])
    table.write(pa.table({"id": [1, 2], "raw": [b"a", b"b"]}))
    says(table, "update", "--where", "raw = X'61'", "--set", "raw=X'0aFF'")
    says(table, "update", "--where", "id = 2", "--set", "raw=X''")
    assert sorted(table.scan().to_arrow()["raw"].to_pylist()) == [b"", b"\n\xff"]


def test_a_deletion_tells_programs_what_it_did_as_json(table):
    [report] = json.loads(says(table, "delete", "--where", "id = 2", "--json"))
    assert (report["operation"], report["rows"], report["snapshot_id"]) == ("DELETE", 1, 2)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "no column has a new value: add --set"),
        (["--set", "note"], "--set 'note' has no '='"),
        (["--set", "note=a", "--set-null", "note"], "column 'note' has two values"),
        (["--set", "id=many"], "not a value of column 'id'"),
        (["--set", "raw=X'0AF'"], "write bytes, in SQL as X'0AFF'"),
    ],
)
def test_what_nobody_can_mean_is_refused(table, arguments, said):
    shown = runner.invoke(app, ["update", table.location, "--where", "id = 1", *arguments])
    assert isinstance(shown.exception, lake.InvalidRequestError)
    assert said in str(shown.exception)
    assert len(table.snapshots()) == 1


@pytest.mark.parametrize(
    ("of_kind", "advice"),
    [
        ({}, "leave it out"),
        ({"format": "mixed", "primary_key": ["id"]}, "the call itself begins a batch"),
    ],
)
@pytest.mark.parametrize("command", ["delete", "update"])
def test_the_order_of_transactions_is_refused_by_other_formats(tmp_path, of_kind, advice, command):
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    catalog.create_database("shop")
    table = catalog.create_table("shop.t", [("id", "BIGINT NOT NULL")], **of_kind)
    values = ["--set", "id=2"] if command == "update" else []
    order = ["--where", "id = 1", "--read-snapshot", "1"]
    shown = runner.invoke(app, [command, table.location, *order, *values])
    assert isinstance(shown.exception, lake.UnsupportedError)
    assert f"{command} does not take read_snapshot: " in str(shown.exception)
    assert advice in str(shown.exception)


def test_changes_in_transaction_order_keep_what_others_changed_since(tmp_path):
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    columns = [("id", "BIGINT"), ("note", "STRING")]
    table = catalog.create_table("shop.t", columns, primary_key=["id"], options={"bucket": "1"})
    table.write(pa.table({"id": [1, 2, 3], "note": ["a", "b", "c"]}))
    table.write(pa.table({"id": [1], "note": ["newer"]}))
    order = ["--read-snapshot", "1", "--conflict", "transaction-order"]
    (tmp_path / "in.csv").write_text("id,note\n1,batch\n2,batch\n")

    shown = says(table, "delete", "--where", "id IN (1, 3)", "--dry-run", *order)
    assert shown.startswith("1 row would be deleted")
    says(table, "write", str(tmp_path / "in.csv"), "--overwrite", "table", *order)
    assert table.scan().to_arrow().to_pydict() == {"id": [1, 2], "note": ["newer", "batch"]}
    table.write(pa.table({"id": [2], "note": ["newest"]}))
    order[1] = "3"
    says(table, "update", "--where", "id > 0", "--set", "note=updated", *order)
    assert table.scan().to_arrow().to_pydict() == {"id": [1, 2], "note": ["updated", "newest"]}
