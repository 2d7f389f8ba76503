"""Sort compaction: the same rows in fewer files per query, beside other commits."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lakeformat as lake
from lakeformat.paimon.compact import run
from lakeformat.paimon.compact.append_unit import compact_append_files
from lakeformat.paimon.compact.partition_choice import Chosen
from lakeformat.paimon.compact.sorting import sort
from lakeformat.paimon.compact.sorting.sort import plan_sort, sort_compact
from lakeformat.paimon.compact.unit import CompactUnit
from lakeformat.paimon.datafile import rolling_writer
from lakeformat.paimon.metadata.commit_message import CommitMessage
from tests.rewriting import rewrite_entries
from tests.sampling import count

COLUMNS = [("x", "BIGINT"), ("y", "INT"), ("name", "STRING"), ("dt", "STRING")]
STRATEGIES = ["order", "zorder", "hilbert"]
NUMBERS = 10_000


def create(
    catalog: lake.Catalog, columns=COLUMNS, name: str = "orders", partition_by=(), **options: str
) -> lake.Table:
    return catalog.create_table(f"shop.{name}", columns, partition_by=partition_by, options=options)


def points(count: int, seed: int = 0, dt: str = "a") -> pa.Table:
    chance = random.Random(seed)
    x = [chance.randrange(NUMBERS) for _ in range(count)]
    y = [chance.randrange(NUMBERS) for _ in range(count)]
    columns = {"x": pa.array(x, pa.int64()), "y": pa.array(y, pa.int32())}
    return pa.table({**columns, "name": [f"n{number % 7}" for number in x], "dt": [dt] * count})


def sort_table(table: lake.Table, *order_by: str, strategy: str = "order", **asked):
    return sort_compact(table._handle, order_by, strategy, **asked)


def rows_of(table: lake.Table, **scanned) -> list[tuple]:
    found = table.scan(**scanned).to_arrow().to_pylist()
    return sorted((tuple(row.values()) for row in found), key=repr)


def opened(table: lake.Table, where: str | None = None) -> int:
    """The number of files that a query opens."""
    return table.scan(where=where).explain().files_to_read


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_all_rows_are_kept_and_published_as_a_compaction(catalog, strategy):
    table = create(catalog)
    for seed in range(4):
        table.write(points(50, seed))
    before = rows_of(table)
    report = sort_table(table, "x", "y", strategy=strategy)
    assert rows_of(table) == rows_of(table, snapshot=4) == before
    assert (report.strategy, report.rows_in, report.rows_out) == (strategy, 200, 200)
    assert (report.files_in, report.files_out, report.snapshot_ids) == (4, 1, (5,))
    assert table.latest_snapshot().commit_kind == lake.CommitKind.COMPACT


def test_rows_are_in_order_nulls_first(catalog):
    table = create(catalog)
    x = pa.array([3, None, -1, 3, 2**40, None], pa.int64())
    table.write(pa.table({"x": x, "name": ["b", "z", "a", "a", "c", "y"]}))
    sort_table(table, "x", "name")
    found = table.scan(["x", "name"]).to_arrow().to_pydict()
    assert found["x"] == [None, None, -1, 3, 3, 2**40]
    assert found["name"] == ["y", "z", "a", "a", "b", "c"]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_query_for_a_range_opens_fewer_files(catalog, monkeypatch, strategy):
    monkeypatch.setattr(rolling_writer, "ROW_GROUP_ROWS", 250)
    table = create(catalog, **{"target-file-size": "1 b"})
    table.write(points(4000))
    x, y = f"x < {NUMBERS // 8}", f"y < {NUMBERS // 8}"
    assert (opened(table, x), opened(table, y)) == (16, 16)
    before = [rows_of(table, where=asked) for asked in (x, y)]
    sort_table(table, "x", "y", strategy=strategy)
    assert opened(table) == 16
    if strategy == "order":
        assert opened(table, x) <= 3
    else:  # of a square of four by four a row and a column, give or take what lies across
        assert opened(table, x) <= 9
        assert opened(table, y) <= 9
    assert [rows_of(table, where=asked) for asked in (x, y)] == before


@pytest.mark.sampled(2)
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("spills", [True, False])
def test_rows_that_memory_does_not_hold_are_sorted_in_ranges(
    catalog, monkeypatch, strategy, spills
):
    """Without temporary files each buffer is sorted alone: no row is lost, queries gain less."""
    monkeypatch.setattr(rolling_writer, "ROW_GROUP_ROWS", 1000)
    options = {"target-file-size": "1 b", "write-buffer-size": "64 kb"}
    table = create(catalog, **options, **{"write-buffer-spillable": str(spills).lower()})
    for seed in range(8):
        table.write(points(2000, seed))
    before = rows_of(table)
    sort_table(table, "x", strategy=strategy)
    assert rows_of(table) == before
    found = table.scan(["x"]).to_arrow()["x"].to_pylist()
    x = [value >> (strategy == "hilbert") for value in found]  # which counts 63 bits of 64
    rising = sum(one <= other for one, other in pairwise(x))
    if spills:
        assert rising == len(x) - 1
        assert opened(table, "x < 1000") <= 3
    else:
        assert rising >= len(x) - 40


def test_no_temporary_file_stays(catalog, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "spill"))
    (tmp_path / "spill").mkdir()
    table = create(catalog, **{"write-buffer-size": "64 kb"})
    table.write(points(10_000))
    made: list[Path] = []

    def broken(self, batch):
        made.extend((tmp_path / "spill").rglob("*.arrow"))
        raise OSError("disk full")

    with monkeypatch.context() as broken_disk:
        broken_disk.setattr(rolling_writer.RollingWriter, "write", broken)
        with pytest.raises(OSError, match="disk full"):
            sort_table(table, "x", executor="serial")
    assert made
    assert not [*(tmp_path / "spill").iterdir()]
    assert rows_of(table) == rows_of(table, snapshot=1)


def test_values_that_are_all_alike_are_sorted_in_pieces(catalog):
    table = create(catalog, **{"write-buffer-size": "64 kb"})
    for _ in range(4):
        table.write(pa.table({"x": pa.array([7] * 5000, pa.int64()), "y": range(5000)}))
    sort_table(table, "x")
    assert table.scan().count() == 20_000


VALUES = st.fixed_dictionaries(
    {
        "x": st.none() | st.integers(-(2**63), 2**63 - 1),
        "f": st.none() | st.floats(),
        "name": st.none() | st.text(st.characters(codec="utf-8"), max_size=12),
        "amount": st.none() | st.decimals(-99999, 99999, places=2),
    }
)
TYPES = pa.schema(
    [
        ("x", pa.int64()),
        ("f", pa.float64()),
        ("name", pa.string()),
        ("amount", pa.decimal128(20, 2)),
    ]
)


@settings(max_examples=count(6, whole=15))
@given(
    st.lists(st.lists(VALUES, min_size=1, max_size=12), min_size=1, max_size=4),
    st.sampled_from(STRATEGIES),
    st.permutations(["x", "f", "name", "amount"]),
    st.integers(1, 4),
    st.booleans(),
)
def test_sorting_keeps_exactly_the_rows(writes, strategy, columns, width, is_tight):
    with tempfile.TemporaryDirectory() as folder:
        catalog = lake.open_catalog(folder)
        catalog.create_database("shop")
        spelled = [
            ("x", "BIGINT"),
            ("f", "DOUBLE"),
            ("name", "STRING"),
            ("amount", "DECIMAL(20, 2)"),
        ]
        buffer = {"write-buffer-size": "1 b"} if is_tight else {}
        table = create(catalog, spelled, **buffer)
        for rows in writes:
            table.write(pa.Table.from_pylist(rows, TYPES))
        before = rows_of(table)
        sort_table(table, *columns[:width], strategy=strategy)
        assert list(map(repr, rows_of(table))) == list(map(repr, before))


def test_partitions_are_sorted_one_by_one_and_may_be_chosen(catalog):
    table = create(catalog, partition_by=["dt"])
    for dt in "ab":
        table.write(points(20, seed=1, dt=dt))
    report = sort_table(table, "x", chosen=Chosen(partitions={"dt": "b"}))
    assert [outcome.partition for outcome in report.buckets] == ["dt=b"]
    x = {dt: table.scan(["x"], partitions={"dt": dt}).to_arrow()["x"].to_pylist() for dt in "ab"}
    assert x["b"] == sorted(x["a"])
    assert x["a"] != sorted(x["a"])


def test_a_table_without_rows_has_nothing_to_sort(catalog):
    report = sort_table(create(catalog), "x")
    assert (report.snapshot_ids, report.rows_in) == ((), 0)


def test_a_plan_says_what_would_be_done(catalog):
    table = create(catalog)
    table.write(points(20))
    [unit] = plan_sort(table._handle, ["x", "y"], "zorder").units
    assert (unit.rows, unit.reason) == (20, "sorted by x, y (zorder)")
    assert table.latest_snapshot().id == 1


def during_the_first_unit(monkeypatch, act: Callable[[], object]) -> None:
    """Let another writer act after the plan and before the publication."""
    acts = [act]

    def compacted(handle, unit: CompactUnit) -> CommitMessage:
        message = compact_append_files(handle, unit)
        if unit.order is not None and acts:
            acts.pop()()
        return message

    monkeypatch.setattr(run, "compact_append_files", compacted)


def test_rows_added_meanwhile_stay(catalog, monkeypatch):
    table = create(catalog)
    table.write(points(20))
    during_the_first_unit(monkeypatch, lambda: table.write(points(5, seed=9)))
    report = sort_table(table, "x")
    assert (report.snapshot_ids, report.groups_refused) == ((3,), 0)
    assert rows_of(table) == sorted(
        [*rows_of(table, snapshot=1), *(tuple(row.values()) for row in points(5, 9).to_pylist())],
        key=repr,
    )


def test_columns_that_are_added_meanwhile_stay(catalog, monkeypatch):
    table = create(catalog)
    table.write(points(5))
    found = sort.latest_snapshot
    noted = pa.table({"x": [7], "note": ["precious"]})

    def after_another_column(*where: object) -> object:
        if len(catalog.table("shop.orders").schema.fields) == len(COLUMNS):
            catalog.alter_table("shop.orders", lake.add_column("note", "STRING")).write(noted)
        return found(*where)

    monkeypatch.setattr(sort, "latest_snapshot", after_another_column)
    sort_table(table, "x")
    notes = catalog.table("shop.orders").scan(["note"]).to_arrow()["note"].to_pylist()
    assert sorted(filter(None, notes)) == ["precious"]
    assert len(notes) == 6


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_files_that_another_compaction_took_are_sorted_again(catalog, monkeypatch, strategy):
    table = create(catalog)
    for seed in range(5):
        table.write(points(20, seed))
    before = rows_of(table)
    during_the_first_unit(monkeypatch, lambda: sort_compact(table._handle, ["y"]))
    report = sort_table(table, "x", strategy=strategy)
    assert (report.groups_refused, report.snapshot_ids) == (1, (7,))
    assert rows_of(table) == before
    x = table.scan(["x"]).to_arrow()["x"].to_pylist()
    assert x == sorted(x, key=lambda value: value >> (strategy == "hilbert"))


def test_rows_deleted_meanwhile_do_not_come_back(catalog, monkeypatch):
    table = create(catalog)
    table.write(points(20))
    during_the_first_unit(monkeypatch, lambda: table.write(points(3, seed=5), overwrite={}))
    sort_table(table, "x")
    assert rows_of(table) == rows_of(table, snapshot=2)
    assert table.scan().count() == 3


def test_a_partition_whose_rows_are_gone_meanwhile_is_left_alone(catalog, monkeypatch):
    table = create(catalog)
    table.write(points(20))
    during_the_first_unit(monkeypatch, table.truncate)
    assert sort_table(table, "x").snapshot_ids == ()
    assert table.scan().count() == 0


def test_no_file_of_a_refused_unit_stays(catalog, monkeypatch, tmp_path):
    table = create(catalog)
    table.write(points(20))
    during_the_first_unit(monkeypatch, table.truncate)
    sort_table(table, "x")
    assert table.health(unknown=True).storage.unknown.files == 0


def test_buckets_are_sorted_once_their_order_is_given_up(catalog):
    buckets = {"bucket": "2", "bucket-key": "name"}
    ordered = create(catalog, **buckets)
    ordered.write(points(20))
    with pytest.raises(lake.UnsupportedError, match="'bucket-append-ordered' to 'false'"):
        sort_table(ordered, "x")
    table = create(catalog, name="free", **buckets, **{"bucket-append-ordered": "false"})
    table.write(points(50))
    before = rows_of(table)
    report = sort_table(table, "x")
    assert len(report.buckets) == 2
    assert rows_of(table) == before
    table.write(points(10, seed=3))
    assert table.scan().count() == 60


def test_rows_of_a_primary_key_are_sorted_by_it_and_by_nothing_else(catalog):
    table = catalog.create_table("shop.keyed", COLUMNS, primary_key=["x"], options={"bucket": "1"})
    with pytest.raises(lake.UnsupportedError, match="has a primary key"):
        sort_table(table, "y")


@pytest.mark.parametrize(
    ("order_by", "strategy", "told"),
    [
        (["x"], "spiral", "order, zorder, hilbert, got 'spiral'"),
        ([], "order", "order_by names no column"),
        (["nix"], "order", "'nix', which is not a column; the columns are x, tags"),
        (["x", "x"], "zorder", "names 'x' twice"),
        (["tags"], "zorder", "'tags', and values of type ARRAY have no order"),
    ],
)
def test_an_order_there_is_not_is_refused_by_name(catalog, order_by, strategy, told):
    table = create(catalog, [("x", "BIGINT"), ("tags", "ARRAY<INT>")])
    table.write(pa.table({"x": pa.array([1], pa.int64())}))
    with pytest.raises(lake.InvalidRequestError, match=told):
        sort_compact(table._handle, order_by, strategy)
    assert table.latest_snapshot().id == 1


def test_how_much_of_a_text_counts_on_a_curve_may_be_said(catalog):
    """With two bytes of each text only the rest of the key decides."""
    rows = pa.table({"name": ["same-b", "same-a"], "x": pa.array([1, 2], pa.int64())})
    found = {}
    for size in ("2", "8"):
        table = create(catalog, name=f"of{size}", **{"zorder.var-length-contribution": size})
        table.write(rows)
        sort_table(table, "name", strategy="zorder")
        found[size] = table.scan(["name"]).to_arrow()["name"].to_pylist()
    assert found == {"2": ["same-b", "same-a"], "8": ["same-a", "same-b"]}


@pytest.mark.parametrize("how", [{}, {"order_by": ["x"]}])
def test_files_that_keep_only_some_columns_are_not_compacted_without_the_others(catalog, how):
    table = create(catalog)
    table.write(points(5))
    table.write(points(5))
    rewrite_entries(table, lambda e: replace(e, file=replace(e.file, write_cols=("x",))))
    with pytest.raises(lake.UnsupportedError, match="keeps only some columns"):
        table.plan_compaction(**how)
