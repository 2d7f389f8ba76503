"""Changes that are written from Python: merged rows are those of a dict, and keys are unique."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from typer.testing import CliRunner

import lakeformat as lake
from lakeformat.cli.app import app
from lakeformat.iceberg.table import load_iceberg_table
from lakeformat.mixed.file_names import FileKind, parse_file_name
from lakeformat.mixed.key_hash import hash_keys
from lakeformat.mixed.read.node_splits import plan_nodes
from lakeformat.mixed.stores.optimized_sequences import OptimizedSequences
from lakeformat.rows.prune import ColumnTest, Op
from lakeformat.storage import LocalStorage
from tests.unit.mixed.edited_stores import edit

COLUMNS = pa.schema([("k", pa.int64()), ("p", pa.string()), ("v", pa.string())])


@pytest.fixture
def catalog(tmp_path: Path) -> lake.IcebergCatalog:
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    catalog.create_database("db")
    return catalog


def created(catalog: lake.IcebergCatalog, **more: Any) -> lake.MixedTable:
    more = {"primary_key": ["k", "p"], "partition_by": ["p"]} | more
    table = catalog.create_table("db.t", COLUMNS, format="mixed", **more)
    assert isinstance(table, lake.MixedTable)
    return table


def rows(*given: tuple[int, str, str | None]) -> pa.Table:
    keys, parts, values = zip(*given, strict=True) if given else ((), (), ())
    return pa.table([keys, parts, values], schema=COLUMNS)


def contents(table: lake.MixedTable, **how: Any) -> list[tuple[Any, ...]]:
    found = table.scan(**how).to_arrow().to_pylist()
    return sorted(tuple(row.values()) for row in found)


def files(root: Path) -> set[Path]:
    return {path for path in root.rglob("*") if path.is_file()}


# Creating


def test_a_created_pair_is_two_iceberg_tables_that_are_one_table(catalog, tmp_path):
    table = created(catalog, options={"change.file-index.hash-bucket": "2"})
    assert (table.primary_key, table.partition_by) == (["k", "p"], ["p"])
    assert catalog.list_tables("db") == ["t"]
    assert sorted(path.name for path in (tmp_path / "db").iterdir()) == ["t", "t_change_"]
    assert contents(table) == []
    again = lake.open_table(str(tmp_path / "db/t"))
    assert again.properties["mixed-format.change.identifier"] == "db.t_change_"
    with pytest.raises(lake.AlreadyExistsError, match="pass exist_ok=True"):
        created(catalog)
    assert created(catalog, exist_ok=True).location == table.location


def test_a_pair_of_which_only_the_change_store_was_created_is_completed(catalog, tmp_path):
    import shutil

    created(catalog)
    shutil.rmtree(tmp_path / "db/t")
    table = created(catalog)
    table.write(rows((1, "x", "a")))
    assert contents(table) == [(1, "x", "a")]
    shutil.rmtree(tmp_path / "db/t")
    with pytest.raises(lake.AlreadyExistsError, match=r"'db.t_change_' has the name of the change"):
        created(catalog)


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ([], "needs key columns: name them.* Iceberg table: for that, leave out format='mixed'"),
        (5, "primary_key is 5, but a Mixed table needs key columns: name them in a list"),
        ("k", "primary_key is 'k', but a Mixed table needs key columns: name them in a list"),
        (["k", "k"], r"primary_key is \['k', 'k'\], which names a column twice"),
        (["k", "q"], "primary_key names 'q', but the columns are k, p, v"),
    ],
)
def test_a_key_that_does_not_fit_is_refused_before_anything_is_created(
    catalog, tmp_path, key, message
):
    with pytest.raises(lake.InvalidRequestError, match=message):
        created(catalog, primary_key=key)
    assert files(tmp_path) == set()


# Writing


def test_a_written_row_replaces_that_of_its_key_and_a_delete_removes_it(catalog):
    table = created(catalog)
    first = table.write(rows((1, "x", "a"), (2, "x", "b"), (1, "y", "c")))
    assert (first.rows, first.replayed) == (3, False)
    table.write(rows((1, "x", "A"), (2, "x", None)), kinds=["+U", "-D"])
    assert contents(table) == [(1, "x", "A"), (1, "y", "c")]
    assert table.position().numbers == (2, 0)
    assert contents(table, snapshot=table.snapshots()[0].position) == [
        (1, "x", "a"),
        (1, "y", "c"),
        (2, "x", "b"),
    ]


def test_the_last_row_of_a_key_in_one_write_counts(catalog):
    table = created(catalog)
    table.write(rows((1, "x", "a"), (1, "x", "b"), (2, "x", "c"), (2, "x", "d"), (1, "x", "e")))
    assert contents(table) == [(1, "x", "e"), (2, "x", "d")]
    table.write(rows((1, "x", "f"), (1, "x", None), (2, "x", "g")), kinds=["+I", "-D", "+I"])
    assert contents(table) == [(2, "x", "g")]


def test_an_update_pair_of_both_zeros_changes_two_keys_and_one_of_nan_changes_one(catalog):
    columns = pa.schema([("k", pa.float64()), ("v", pa.int64())])
    table = catalog.create_table("db.f", columns, primary_key=["k"], format="mixed")
    nan = float("nan")
    table.write(pa.table([[0.0, -0.0, nan], [1, 2, 3]], schema=columns))
    before = table.position()
    pairs = pa.table([[0.0, -0.0, nan, nan], [1, 4, 3, 5]], schema=columns)
    table.write(pairs, kinds=["-U", "+U", "-U", "+U"])

    found = table.scan().to_arrow().to_pylist()
    assert sorted((str(row["k"]), row["v"]) for row in found) == [("-0.0", 4), ("nan", 5)]
    changes = table.changes(before).to_arrow().to_pylist()
    assert sorted((str(each["k"]), each["rowkind"], each["v"]) for each in changes) == [
        ("-0.0", "+U", 4),  # the values of its old row are unknown
        ("0.0", "-D", 1),
        ("nan", "+U", 5),
        ("nan", "-U", 3),
    ]


def test_batches_whose_keys_differ_only_in_the_sign_of_zero_are_written_to_their_own_nodes(catalog):
    columns = pa.schema([("k", pa.float64()), ("v", pa.int64())])
    table = catalog.create_table("db.f", columns, primary_key=["k"], format="mixed")
    rows = ([-0.0], [1]), ([0.0], [2])
    table.write(iter([pa.record_batch([*map(pa.array, each)], schema=columns) for each in rows]))
    table.write(pa.table([[0.0], [3]], schema=columns))
    found = table.scan().to_arrow().to_pylist()
    assert sorted((str(row["k"]), row["v"]) for row in found) == [("-0.0", 1), ("0.0", 3)]


def test_the_order_of_changes_continues_from_batch_to_batch(catalog):
    table = created(catalog)
    changes = [rows((2, "x", "b"), (1, "x", "a")), rows((1, "x", "d"), (3, "y", "c"))]
    table.write([each.to_batches()[0] for each in changes])
    assert contents(table) == [(1, "x", "d"), (2, "x", "b"), (3, "y", "c")]
    kinds = ["+I", "+I", "-D", "-D"]
    table.write([each.to_batches()[0] for each in changes], kinds=kinds)
    assert contents(table) == [(2, "x", "b")]


def test_a_delete_without_the_values_of_a_row_also_applies_under_a_condition_on_them(catalog):
    table = created(catalog)
    table.write(rows((1, "x", "a"), (2, "x", "z")))
    table.write(rows((1, "x", None)), kinds=["-D"])
    assert contents(table, where="v = 'a'") == []
    assert contents(table, where="v >= 'a'") == [(2, "x", "z")]


def test_names_of_files_have_the_node_of_all_their_keys(catalog):
    table = created(catalog, options={"change.file-index.hash-bucket": "8"})
    table.write(rows(*((number, "x", "v") for number in range(50))))
    key = table._pair.load().key
    for split in table.scan().splits():
        for file in (*split.files, *split.deletes):
            name = parse_file_name(file.path)
            stored = pa.parquet.read_table(file.path.removeprefix("file:").replace("///", "/"))
            columns = [stored.column(each).combine_chunks() for each in ("k", "p")]
            assert {*(hash_keys(key, columns) & 7).tolist()} == {name.node.index}
            assert (name.transaction, file.transaction) == (0, 1)
            assert (name.kind is FileKind.CHANGE_DELETE) is (file in split.deletes)


def test_random_writes_agree_with_a_dict_while_buckets_change(catalog, tmp_path):
    seed = random.randrange(1 << 30)
    print(f"SEED={seed}")
    draw = random.Random(seed)
    created(catalog)
    model: dict[tuple[int, str], str | None] = {}
    for number in range(6):
        if draw.random() < 0.4:
            buckets = {"change.file-index.hash-bucket": draw.choice(["1", "2", "8"])}
            edit(tmp_path / "db/t", properties=buckets)
        table = lake.open_table(str(tmp_path / "db/t"))
        count = draw.randrange(1, 9)
        given = [
            (draw.randrange(6), draw.choice("xy"), f"{number}-{place}") for place in range(count)
        ]
        kinds = [draw.choice(["+I", "+U", "-U", "-D"]) for _ in given]
        for (key, part, value), kind in zip(given, kinds, strict=True):
            if kind[0] == "+":
                model[key, part] = value
            else:
                model.pop((key, part), None)
        table.write(rows(*given), kinds=kinds)
        assert contents(table) == sorted((*key, value) for key, value in model.items())
        assert table.scan().count() == len(model)


def test_a_repeated_commit_publishes_once(catalog):
    table = created(catalog)
    commit = lake.CommitId("load", 1)
    first = table.write(rows((1, "x", "a")), commit=commit, properties={"by": "test"})
    again = table.write(rows((2, "x", "b")), commit=commit)
    assert (again.replayed, again.snapshot_id) == (True, first.snapshot_id)
    assert contents(table) == [(1, "x", "a")]
    assert table.snapshots()[0].of_store.summary["by"] == "test"


def failing() -> Iterator[pa.RecordBatch]:
    yield from rows((1, "x", "a")).to_batches()
    raise RuntimeError("the source failed")


def test_a_write_that_fails_leaves_no_file_and_no_snapshot(catalog, tmp_path):
    table = created(catalog, options={"write.target-file-size-bytes": "1"})
    before = files(tmp_path)
    with pytest.raises(RuntimeError, match="the source failed"):
        table.write(failing())
    with pytest.raises(lake.InvalidRequestError, match="which is not a row kind"):
        table.write(rows((1, "x", "a")), kinds=["+X"])
    with pytest.raises(lake.InvalidRequestError, match="kinds has 2 values for 1 row:"):
        table.write(rows((1, "x", "a")), kinds=["+I", "+I"])
    with pytest.raises(lake.InvalidRequestError, match="'k' is required"):
        table.write(pa.table({"k": pa.array([None], pa.int64()), "p": ["x"], "v": ["a"]}))
    with pytest.raises(lake.UnsupportedError, match="whose write does not take watermark: keep"):
        table.write(rows((1, "x", "a")), watermark=1)
    with pytest.raises(lake.InvalidRequestError, match="by must be the key, k and p, got"):
        table.upsert(rows((1, "x", "a")), by=["k"])
    assert files(tmp_path) == before
    assert table.snapshots() == []


def test_an_upsert_and_the_command_write_to_the_table(catalog, tmp_path):
    table = created(catalog)
    table.upsert(rows((1, "x", "a")), by=["p", "k"])
    (tmp_path / "new.csv").write_text("k,p,v\n1,x,b\n2,y,c\n")
    shown = CliRunner().invoke(app, ["write", str(tmp_path / "db/t"), str(tmp_path / "new.csv")])
    assert shown.exit_code == 0, shown.output
    assert shown.output.startswith("2 rows: published as snapshot")
    assert contents(table) == [(1, "x", "b"), (2, "y", "c")]
    (tmp_path / "changes.csv").write_text("k,p,v,op\n1,x,,-D\n2,y,d,+U\n")
    arguments = [str(tmp_path / "db/t"), str(tmp_path / "changes.csv"), "--kinds", "op"]
    assert CliRunner().invoke(app, ["write", *arguments]).exit_code == 0
    assert contents(table) == [(2, "y", "d")]


def test_a_base_file_of_an_optimizing_takes_part_in_the_merge(catalog, tmp_path):
    """A plain file of the base store is older than every change."""
    table = created(catalog)
    base = load_iceberg_table(LocalStorage(), str(tmp_path / "db/t"))
    base.write(rows((1, "x", "old"), (2, "x", "kept"), (3, "y", "old")))
    table.write(rows((1, "x", "new"), (3, "y", None)), kinds=["+U", "-D"])
    assert contents(table) == [(1, "x", "new"), (2, "x", "kept")]


def test_a_null_and_the_text_null_are_different_partitions(catalog, tmp_path):
    table = created(catalog, primary_key=["k"])
    table.write(rows((1, "null", "a"), (2, "x", "b")))
    table.write(rows((1, None, "c")))
    table.write(rows((2, "null", "d")), kinds=["-D"])
    assert table.scan().count() == 3
    assert contents(table, where="p is null") == [(1, None, "c")]
    assert contents(table, where="p = 'null'") == [(1, "null", "a")]
    for call in (lambda: table.compact(strategy="full"), table.plan_optimizing):
        with pytest.raises(lake.UnsupportedError, match="has two partitions 'p=null', one with a"):
            call()
    state = replace(table.scan()._state, merged=OptimizedSequences({"p=null": 2}, {}))
    with pytest.raises(lake.UnsupportedError, match="rows cannot be merged correctly: read"):
        plan_nodes(state, [ColumnTest("p", Op.EQUAL, "null")])


def test_the_steps_for_two_partitions_of_one_path_keep_every_row(catalog):
    table = created(catalog, primary_key=["k"])
    table.write(rows((1, "null", "a"), (2, "x", "b"), (3, "null", "c")))
    table.compact(strategy="full", executor="serial")
    table.write(rows((1, None, "d"), (1, "null", "e"), (3, "null", None)), kinds=["+I", "+U", "-D"])
    state = replace(table.scan()._state, merged=OptimizedSequences({"p=null": 9}, {}))
    with pytest.raises(lake.UnsupportedError, match=r"First .*base\.scan\(\), then .*changes\(0\)"):
        plan_nodes(state, [])

    new = catalog.create_table(
        "db.new", COLUMNS, format="mixed", primary_key=["k"], partition_by=["p"]
    )
    new.write(with_no_null(table.base.scan().to_arrow()))
    changes = with_no_null(table.changes(0).to_arrow())
    new.write(changes.drop_columns("rowkind"), kinds=changes.column("rowkind").to_pylist())

    assert contents(new) == [(1, "none", "d"), (1, "null", "e"), (2, "x", "b")]


def with_no_null(rows: pa.Table) -> pa.Table:
    number = rows.column_names.index("p")
    return rows.set_column(number, "p", pc.fill_null(rows.column("p"), "none"))


@pytest.mark.parametrize("stored", [[None], [None, "null"]])
def test_the_text_null_is_not_overwritten_beside_changes_of_nulls(catalog, stored, tmp_path):
    """The record would take the changes of both partitions as merged."""
    table = created(catalog, primary_key=["k"])
    table.write(rows(*((key, part, "old") for key, part in enumerate(stored))))
    for overwritten in ({"p": "null"}, "partitions"):
        with pytest.raises(lake.UnsupportedError, match="has two partitions 'p=null', one with a"):
            table.write(rows((7, "null", "new")), overwrite=overwritten)
    assert not [*(tmp_path / "db/t").rglob("*.parquet")]
    with table.begin() as batch:
        batch.write(rows((7, "null", "new")))
    table.write(rows((8, "y", "new")), overwrite={"p": "y"})
    assert table.scan().count() == len(stored) + 2


def test_partitions_have_the_names_of_amoros_record(catalog):
    types = {"at": pa.timestamp("us"), "t": pa.time64("us"), "d": pa.float64()}
    schema = pa.schema([("k", pa.int64()), *types.items()])
    table = catalog.create_table(
        "db.named", schema, format="mixed", primary_key=["k"], partition_by=[*types]
    )
    values = [1], [datetime(2024, 1, 1, 10)], [time(10)], [1e10]
    table.write(pa.table([*values], schema=schema))
    [split] = table.scan().splits()
    assert split.partition == "at=2024-01-01T10%3A00%3A00/t=10%3A00/d=1.0E10"


@pytest.mark.parametrize("old", ["x", None])
def test_an_update_that_moves_a_row_also_deletes_its_key_in_the_new_partition(catalog, old):
    table = created(catalog, primary_key=["k"])
    table.write(rows((1, old, "a")))
    moved = rows((1, old, "a"), (1, "y", "b"))
    table.write(moved, kinds=["-U", "+U"])
    table.write(moved, kinds=["-U", "+U"])
    assert contents(table) == [(1, "y", "b")]
    table.write(rows((1, "y", "b"), (1, old, "c")), kinds=["-U", "+U"])
    table.write(rows((1, old, "c"), (1, old, "d")), kinds=["-U", "+U"])
    assert contents(table) == [(1, old, "d")]
