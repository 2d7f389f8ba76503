"""Changes of several writers in one commit of a Mixed table: each node has one writer."""

from __future__ import annotations

import pickle
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable

import lakeformat as lake
from lakeformat.mixed.file_names import parse_file_name
from tests.sampling import SEED
from tests.unit.mixed.edited_stores import newest_metadata

COLUMNS = pa.schema([("k", pa.int64()), ("p", pa.string()), ("v", pa.string())])


@pytest.fixture
def catalog(tmp_path: Path) -> lake.IcebergCatalog:
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    catalog.create_database("db")
    return catalog


@pytest.fixture
def table(catalog: lake.IcebergCatalog) -> lake.MixedTable:
    how: dict[str, Any] = {"primary_key": ["k", "p"], "partition_by": ["p"]}
    made = catalog.create_table("db.t", COLUMNS, format="mixed", **how)
    assert isinstance(made, lake.MixedTable)
    return made


def rows(*given: tuple[int, str, str | None]) -> pa.Table:
    keys, parts, values = zip(*given, strict=True)
    return pa.table([keys, parts, values], schema=COLUMNS)


def contents(table: lake.MixedTable) -> dict[tuple[int, str], str | None]:
    found = table.scan().to_arrow().to_pylist()
    assert len({(each["k"], each["p"]) for each in found}) == len(found)
    return {(each["k"], each["p"]): each["v"] for each in found}


def files(root: Path) -> set[Path]:
    return {path for path in root.rglob("*.parquet") if path.is_file()}


def written(table: lake.MixedTable, changes: pa.Table, kinds: list[str], writers: int) -> list[Any]:
    """The messages of writers in other processes, each with the nodes that it is to write."""
    sent = pickle.dumps(table)
    buckets = table.writer_buckets()
    of_row = buckets([changes["k"].combine_chunks(), changes["p"].combine_chunks()])
    found = []
    for writer in range(writers):
        mine = [row for row in range(len(changes)) if of_row[row] % writers == writer]
        there = pickle.loads(sent)
        with there.new_writer() as prepared:
            prepared.write(changes.take(pa.array(mine, pa.int64())), [kinds[row] for row in mine])
            found += [each.to_bytes() for each in prepared.prepare()]
    return [table.read_message(each) for each in found]


def test_commits_of_several_writers_and_of_one_agree_with_a_dict(table):
    chance, expected = random.Random(SEED), dict[tuple[int, str], str | None]()
    for number in range(6):
        changes, kinds = [], []
        for _ in range(chance.randrange(1, 25)):
            key, kind = (chance.randrange(12), chance.choice("xy")), chance.choice(["+I", "-D"])
            changes.append((*key, f"{number}.{len(changes)}"))
            kinds.append(kind)
            expected.pop(key, None)
            if kind == "+I":
                expected[key] = changes[-1][-1]
        if number % 2:
            report = table.write(rows(*changes), kinds)
        else:
            report = table.commit(written(table, rows(*changes), kinds, chance.choice([1, 3])))
        assert report.rows == len(changes)
        assert contents(table) == expected
    assert len(table.snapshots()) == 6
    metadata = newest_metadata(Path(table.change.location.removeprefix("file://")))
    theirs = StaticTable.from_metadata(str(metadata)).scan().to_arrow()
    assert theirs.num_rows == table.change.scan().count()
    table.compact(strategy="full")
    assert contents(table) == expected


def test_each_node_of_a_partition_has_files_of_one_writer(table):
    changes = rows(*((number, "x", "a") for number in range(40)))
    report = table.commit(written(table, changes, ["+I"] * 40, 4))
    names = [parse_file_name(path.name) for path in files(Path(table.locations[1][7:]))]
    assert report.files == len(names) == 8  # inserts and deletes of four nodes
    assert len({(each.node, each.kind) for each in names}) == 8


def test_two_writers_of_one_node_are_refused_and_their_files_can_be_deleted(table, tmp_path):
    table.write(rows((1, "x", "old")))
    before = files(tmp_path)
    twice = [*written(table, rows((1, "x", "a")), ["+I"], 1)]
    twice += written(table, rows((1, "x", "b")), ["+I"], 1)
    with pytest.raises(lake.UnsupportedError, match="several writers have rows of node"):
        table.commit(twice)
    assert table.abort(twice) == []
    assert files(tmp_path) == before
    assert contents(table) == {(1, "x"): "old"}


def test_messages_of_which_some_are_published_are_not_aborted(table, tmp_path):
    table.write(rows((1, "x", "old")))
    with table.begin_write("table", None) as batch:
        published = replaced(table, rows((2, "x", "new")), "table", batch.transaction)
        batch.commit(published, overwrite="table")
    changes = written(table, rows((3, "x", "a")), ["+I"], 1)
    before = files(tmp_path)
    with pytest.raises(lake.InvalidRequestError, match="is published already"):
        table.abort([*changes, *published])
    assert files(tmp_path) == before
    assert table.abort(changes) == []
    assert len(files(tmp_path)) < len(before)


def test_a_repeated_commit_publishes_once_and_counts_its_own_files(table):
    commit = lake.CommitId("run", 1)
    first = table.commit(written(table, rows((1, "x", "a")), ["+I"], 1), commit=commit)
    again = written(table, rows((1, "x", "b")), ["+I"], 1)
    second = table.commit(again, commit=commit)
    assert (second.replayed, second.snapshot_id, second.unpublished_files) == (
        True,
        first.snapshot_id,
        2,
    )
    assert table.abort(again) == []
    assert contents(table) == {(1, "x"): "a"}


def test_what_cannot_be_published_is_refused_by_name(table, catalog):
    other = catalog.create_table("db.u", COLUMNS, format="mixed", primary_key=["k", "p"])
    messages = written(table, rows((1, "x", "a")), ["+I"], 1)
    for refused, how, match in (
        (other, messages, "were written for"),
        (table, [*messages, *messages], "name the file .* more than once"),
        (table, b"x", "pass a list of the messages that writers of a Mixed table prepared"),
    ):
        with pytest.raises(lake.InvalidRequestError, match=match):
            refused.commit(how)
    with pytest.raises(lake.UnsupportedError, match="commit does not take overwrite"):
        table.commit(messages, overwrite="table")
    with pytest.raises(lake.InvalidRequestError, match=r"be the key, k and p, .*: leave it out"):
        table.new_writer(upsert_by=["k"])
    table.commit(messages)
    with pytest.raises(lake.InvalidRequestError, match="is published already"):
        table.commit(messages)
    assert contents(table) == {(1, "x"): "a"}


def test_a_writer_that_fails_leaves_no_file(table, tmp_path):
    writer = table.new_writer()
    writer.write(rows((1, "x", "a")))
    before = files(tmp_path)
    with pytest.raises(lake.InvalidRequestError, match="'k' is required, but is null in 1 of 1"):
        writer.write(pa.table({"k": pa.array([None], pa.int64()), "p": ["x"], "v": ["a"]}))
    assert files(tmp_path) == before
    with pytest.raises(lake.InvalidRequestError, match="create a new writer"):
        writer.prepare()


def replaced(table: lake.MixedTable, new: pa.Table, overwrite: Any, transaction: int) -> list[Any]:
    """The messages of two writers of an overwrite, each with the nodes that it is to write."""
    nodes = table.writer_buckets(overwrites=True)
    of_row = nodes([new["k"].combine_chunks(), new["p"].combine_chunks()])
    found = []
    for writer in range(2):
        mine = pa.array([row for row in range(len(new)) if of_row[row] % 2 == writer], pa.int64())
        with table.new_writer(overwrite=overwrite, transaction=transaction) as prepared:
            prepared.write(new.take(mine))
            found += prepared.prepare()
    return found


@pytest.mark.parametrize(
    ("overwrite", "kept"), [("table", {}), ({}, {}), ("partitions", {(9, "y"): "old"})]
)
def test_a_batch_overwrites_with_files_of_several_writers(table, overwrite, kept):
    table.write(rows((1, "x", "old"), (2, "x", "old"), (9, "y", "old")))
    with table.begin_write(overwrite, None) as batch:
        table.write(rows((2, "x", "stream")))
        new = rows(*((number, "x", "new") for number in range(1, 8)))
        messages = replaced(table, new, overwrite, batch.transaction)
        report = batch.commit(messages, overwrite=overwrite, commit=lake.CommitId("run", 1))
    assert (report.rows, table.find_commit(lake.CommitId("run", 1)).snapshot_id) == (
        7,
        report.snapshot_id,
    )
    expected = {(number, "x"): "new" for number in range(1, 8)} | {(2, "x"): "stream"}
    assert contents(table) == expected | kept


def test_a_batch_commits_changes_of_several_writers_in_its_place(table):
    table.write(rows((1, "x", "old"), (2, "x", "old")))
    with table.begin() as batch:
        table.write(rows((2, "x", "stream")))
        with table.new_writer(transaction=batch.transaction) as writer:
            writer.write(rows((1, "x", "batch"), (2, "x", "batch")))
            messages = writer.prepare()
        with pytest.raises(lake.InvalidRequestError, match="was not written for this commit"):
            table.commit(messages)
        batch.commit(messages)
    assert contents(table) == {(1, "x"): "batch", (2, "x"): "stream"}


def test_an_overwrite_that_cannot_be_published_is_refused_and_leaves_nothing(table, tmp_path):
    table.write(rows((1, "x", "old")))
    before = files(tmp_path)
    twice = rows((1, "x", "a"), (1, "x", "b"))
    with table.begin_write("table", None) as batch:
        with pytest.raises(
            lake.InvalidRequestError,
            match=r"2 new rows of .* have a key that occurs more than once, such as k=1",
        ):
            replaced(table, twice, "table", batch.transaction)
        with pytest.raises(lake.InvalidRequestError, match="an overwrite stores every row"):
            table.new_writer(overwrite="table", transaction=batch.transaction).write(twice, ["+I"])
        two = [*replaced(table, twice.slice(0, 1), "table", batch.transaction)]
        two += replaced(table, twice.slice(1, 1), "table", batch.transaction)
        with pytest.raises(lake.UnsupportedError, match="several writers have rows of node"):
            batch.commit(two, overwrite="table")
        assert table.abort(two) == []
    with pytest.raises(lake.InvalidRequestError, match="is not a partition column of"):
        table.begin_write({"v": "a"}, None)
    assert files(tmp_path) == before
    assert contents(table) == {(1, "x"): "old"}
    with table.begin():  # the batches have ended
        pass
