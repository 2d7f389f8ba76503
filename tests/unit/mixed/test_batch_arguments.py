"""The arguments ``conflict`` and ``read_snapshot`` of a Mixed table, from Python and commands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import lakeformat as lake
from lakeformat.cli.app import app
from tests.unit.mixed.named_rows import contents, names, new_catalog, new_table

ORDER = "transaction-order"


@pytest.fixture
def table(tmp_path: Path) -> lake.MixedTable:
    made = new_table(new_catalog(tmp_path))
    made.write(names(_1="a", _2="b"))
    return made


@pytest.mark.parametrize("overwrite", [None, "table"])
def test_a_write_in_transaction_order_keeps_what_a_stream_changes_while_it_reads(table, overwrite):
    def source() -> Iterator[pa.Table]:
        table.write(names(_1="stream"))
        yield names(_1="batch", _3="batch")

    commit = lake.CommitId("job", 1)
    for is_replayed in (False, True):
        report = table.write(source(), overwrite=overwrite, conflict=ORDER, commit=commit)
        assert report.replayed is is_replayed
    old = {2: "b"} if overwrite is None else {}
    assert contents(table) == {1: "stream", 3: "batch", **old}
    table.compact(strategy="full", executor="serial")
    assert contents(table.base) == {1: "stream", 3: "batch", **old}


def test_a_batch_writes_deletes_in_transaction_order(table):
    table.write(names(_2=None), kinds=["-D"], conflict=ORDER)
    assert table.delete("id = 9", conflict=ORDER).rows == 0
    assert table.update("id = 1", {"name": "z"}, conflict=ORDER).rows == 1
    assert contents(table) == {1: "z"}


def test_other_answers_to_a_conflict_are_refused_by_name(table):
    snapshots = len(table.snapshots())
    for change in (
        lambda how: table.write(names(_1="x"), **how),
        lambda how: table.write(names(_1="x"), overwrite="table", **how),
        lambda how: table.delete("id = 1", **how),
        lambda how: table.update("id = 1", {"name": "x"}, **how),
    ):
        with pytest.raises(lake.UnsupportedError, match="conflict='optimistic' is not possible"):
            change({"conflict": "optimistic"})
        with pytest.raises(lake.InvalidRequestError, match="did you mean 'transaction-order'"):
            change({"conflict": "transaction-ordr"})
    advice = r"the call itself begins a batch.*batch\.scan\(\)"
    with pytest.raises(lake.UnsupportedError, match=advice):
        table.write(names(_1="x"), read_snapshot="main/1.0", conflict=ORDER)
    assert len(table.snapshots()) == snapshots


def test_commands_write_in_transaction_order(table, tmp_path):
    (tmp_path / "rows.csv").write_text("id,name\n1,new\n")

    def run(*words: str) -> str:
        return CliRunner().invoke(app, [words[0], table.location, *words[1:]]).stdout

    rows = str(tmp_path / "rows.csv")
    assert run("write", rows, "--conflict", ORDER).startswith("1 row: published as")
    assert run("update", "--where", "id = 2", "--set", "name=z", "--conflict", ORDER)
    assert contents(table) == {1: "new", 2: "z"}
    assert run("write", rows, "--overwrite", "table", "--conflict", ORDER)
    assert contents(table) == {1: "new"}
    for words in (
        ("delete", "--where", "id = 1", "--conflict", "optimistic"),
        ("write", rows, "--read-snapshot", "main/1.0"),
    ):
        refused = CliRunner().invoke(app, [words[0], table.location, *words[1:]])
        assert isinstance(refused.exception, lake.UnsupportedError)
    assert contents(table) == {1: "new"}


@pytest.mark.parametrize("wrong", [("run", 1), "run-1", 5])
def test_an_identity_that_is_no_commit_id_is_refused_and_nothing_is_written(wrong, table, tmp_path):
    before = contents(table)
    with table.begin() as batch:
        for write in (table.write, table.upsert, batch.write, batch.overwrite):
            more = {"partitions": "table"} if write == batch.overwrite else {}
            with pytest.raises(lake.InvalidRequestError, match="commit must be a CommitId such as"):
                write(names(_1="new"), commit=wrong, **more)
    with pytest.raises(lake.InvalidRequestError, match="commit must be a CommitId such as"):
        table.commit([], commit=wrong)
    assert contents(table) == before


@pytest.mark.parametrize("wrong", [0, -5, 1.5, True, "5"])
def test_a_writer_for_a_transaction_that_no_batch_has_is_refused(wrong, table):
    for more in ({}, {"overwrite": "table"}):
        with pytest.raises(
            lake.InvalidRequestError, match=r"from 1, got .*pass batch\.transaction"
        ):
            table.new_writer(transaction=wrong, **more)


@pytest.mark.parametrize("wrong", ["id", 5, ["name"], ["id", "id"], {"id": 1}])
def test_columns_that_are_not_the_key_are_refused(wrong, table):
    with pytest.raises(lake.InvalidRequestError, match="by must be the key, id, got"):
        table.upsert(names(_1="new"), by=wrong)


def test_a_column_that_is_named_twice_is_refused(table):
    for read in (
        lambda: table.scan(["id", "name", "id"]),
        lambda: table.change.scan(["id", "id"]),
        lambda: table.changes(table.position(), columns=["id", "id"]),
        lambda: table.stream(columns=["id", "id"]),
    ):
        with pytest.raises(lake.InvalidRequestError, match="columns names 'id' more than once"):
            read()
