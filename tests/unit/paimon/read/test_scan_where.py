"""A condition gives the rows that meet it, and leaves out what cannot hold any of them."""

from __future__ import annotations

import os
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lakeformat as lake
from lakeformat.errors import CorruptTableError
from lakeformat.paimon.datafile.system_fields import SEQUENCE_NUMBER, VALUE_KIND
from lakeformat.paimon.metadata.manifest import FileKind, ManifestEntry
from lakeformat.paimon.metadata.simple_stats import EMPTY_ROW
from lakeformat.paimon.read.scan import Scan
from lakeformat.paimon.schema_changes import column_rules
from lakeformat.rows.conditions.filter import bind_predicate
from lakeformat.rows.conditions.predicate import Predicate, col
from lakeformat.types.arrow_types import to_arrow_schema
from tests import sampling
from tests.conformance.format_checklist.keyed_table import DELETE, KeyedTable

COLUMNS = (("k", "BIGINT NOT NULL"), ("v", "BIGINT"), ("s", "STRING"))
GROUP_ROWS = 128 * 1024
ROWS = 4 * GROUP_ROWS


def keyed(tmp_path, **options) -> KeyedTable:
    named = {name.replace("_", "-"): text for name, text in options.items()}
    return KeyedTable(str(tmp_path / "t"), COLUMNS, ["k"], {"bucket": "1", **named})


def rows(keys, value, **more):
    return [{"k": key, "v": value, "s": "x", **more} for key in keys]


def scan(table: lake.Table, where: Predicate, columns=None) -> Scan:
    bound = bind_predicate(where, table.schema.fields)
    return Scan(table._handle, table.latest_snapshot(), columns, bound)


def keys(table: KeyedTable, where: Predicate) -> list[int]:
    found = scan(table.open(), where)
    read = found.to_arrow()["k"].to_pylist()
    assert found.count() == len(read)
    return read


def files(table: KeyedTable, where: Predicate) -> int:
    """The number of files that a scan would open."""
    return sum(len(split.files) for split in scan(table.open(), where).splits())


class TestBelowAMerge:
    """Two files with the same keys: the second has the values that count."""

    @pytest.fixture
    def table(self, tmp_path, request) -> KeyedTable:
        table = keyed(tmp_path, **getattr(request, "param", {}))
        table.commit([*table.write(rows([1, 2], 1)), *table.write(rows([1, 2], 100))])
        return table

    def test_an_old_value_is_never_found_again(self, table):
        assert keys(table, col("v") == 1) == []
        assert keys(table, col("v") == 100) == [1, 2]

    def test_files_with_other_values_take_part_in_the_merge(self, table):
        assert files(table, col("v") == 1) == 2

    def test_a_bucket_none_of_whose_files_can_match_is_left_out(self, table):
        assert files(table, col("v") == 50_000) == 0
        assert files(table, (col("v") == 50_000) | (col("k") == 77)) == 0
        assert files(table, (col("v") == 1) | (col("k") == 77)) == 2
        assert keys(table, (col("v") == 1) | (col("k") == 77)) == []

    @pytest.mark.parametrize(
        "table",
        [{"merge_engine": "partial-update"}, {"merge_engine": "aggregation"}],
        indirect=True,
    )
    def test_engines_that_make_new_values_leave_out_nothing_for_a_value(self, table):
        assert files(table, col("v") == 50_000) == 2
        assert files(table, (col("v") == 50_000) | (col("k") == 77)) == 2

    @pytest.mark.parametrize("engine", ["partial-update", "aggregation"])
    def test_so_it_is_with_deletion_vectors_where_rows_of_level_0_are_merged(self, engine):
        columns = [("k", "INT"), ("v", "STRING"), ("w", "INT")]
        removes = {f"{engine}.remove-record-on-delete": "true"}
        options = {"bucket": "1", "merge-engine": engine, "deletion-vectors.enabled": "true"}
        catalog = lake.open_catalog(f"memory://below-a-merge-{engine}/wh")
        catalog.create_database("shop")
        table = catalog.create_table(
            "shop.t", columns, primary_key=["k"], options={**options, **removes}
        )
        table.write(pa.table({"k": pa.array([1], pa.int32()), "v": ["a"]}))
        table.compact(executor="serial")
        table.write(pa.table({"k": pa.array([1], pa.int32()), "w": pa.array([9], pa.int32())}))
        merging = catalog.alter_table(
            "shop.t", lake.set_option("deletion-vectors.merge-on-read", "true")
        )
        where = "v = 'a' AND w = 9"  # one file has the one value, the other one the other
        assert merging.scan(where=where).to_arrow().to_pylist() == [{"k": 1, "v": "a", "w": 9}]
        assert table.delete(where).rows == 1

    @pytest.mark.parametrize("table", [{}, {"merge_engine": "partial-update"}], indirect=True)
    def test_a_key_that_is_not_there_leaves_out_the_bucket_whatever_the_engine(self, table):
        assert files(table, col("k") == 77) == 0

    def test_conditions_on_keys_are_met_before_the_merge_and_others_after(self, table):
        assert keys(table, (col("k") == 2) & (col("v") > 50)) == [2]
        assert keys(table, (col("k") == 2) & (col("v") < 50)) == []
        assert keys(table, (col("k") == 2) | (col("v") == 100)) == [1, 2]


def test_each_branch_of_an_or_leaves_out_the_files_it_can(tmp_path):
    table = keyed(tmp_path)
    table.commit(
        [
            entry
            for first in (0, 10, 20)
            for entry in table.write(rows(range(first, first + 5), first), level=5)
        ]
    )
    assert files(table, (col("k") == 3) | (col("v") == 20)) == 2
    assert files(table, (col("k") == 7) | (col("v") == 5)) == 0
    assert files(table, ((col("k") < 3) | (col("v") >= 20)) & (col("s") == "x")) == 2
    assert files(table, (col("k") == 3) | col("s").like("%x")) == 3


def test_where_no_key_is_in_two_files_values_leave_out_single_files(tmp_path):
    table = keyed(tmp_path)
    table.commit([*table.write(rows([1], 1), level=5), *table.write(rows([2], 100), level=5)])
    assert files(table, col("v") == 100) == 1
    assert keys(table, col("v") == 100) == [2]


@pytest.mark.parametrize("key", [[], ["k"]], ids=["append", "keyed"])
def test_what_a_stream_begins_with_leaves_out_files_too(tmp_path, key):
    catalog = lake.open_catalog(str(tmp_path / "wh"))
    catalog.create_database("shop")
    options = {"bucket": "1"} if key else {}
    table = catalog.create_table("shop.t", COLUMNS, primary_key=key, options=options)
    for k in (1, 2, 3):
        table.write(pa.table({"k": [k], "v": [10 * k], "s": ["x"]}))
    newest = table.latest_snapshot().id
    began = table.state_scan(newest, where="k = 2")
    assert sum(len(split.files) for split in began.splits()) == 1
    none = table.state_scan(newest, where="v = 77")  # of no file, hence of no bucket
    assert none.splits() == []


def test_a_delete_hides_a_row_whatever_the_condition_says_of_it(tmp_path):
    table = keyed(tmp_path)
    table.commit([*table.write(rows([1, 2], 5)), *table.write(rows([1], 7, kind=DELETE))])
    assert keys(table, col("v") == 5) == [2]


def test_a_column_that_is_only_in_the_condition_is_not_in_the_rows(tmp_path):
    table = keyed(tmp_path)
    table.commit([*table.write(rows([1, 2], 5)), *table.write(rows([2], 7))])
    found = scan(table.open(), col("v") == 7, ["s"])
    assert found.to_arrow().to_pylist() == [{"s": "x"}]


def test_keys_that_are_named_lead_to_their_buckets(tmp_path):
    table = KeyedTable(str(tmp_path / "t"), COLUMNS, ["k"], {"bucket": "4"})
    whole = rows(range(40), 1)
    places = table.bucket_of(pa.table({"k": pa.array(range(40), pa.int64())}))
    entries = []
    for bucket in range(4):
        mine = [row for row, place in zip(whole, places, strict=True) if place == bucket]
        entries += table.write(mine, bucket=bucket)
    table.commit(entries)
    assert files(table, col("k") == 7) == 1
    assert files(table, col("k").isin([7, 8, 9])) == len({places[7], places[8], places[9]})
    assert keys(table, col("k").isin([7, 8, 9])) == sorted([7, 8, 9], key=lambda k: (places[k], k))


def big(tmp_path, *, level: int = 5, runs: int = 1) -> KeyedTable:
    """A table of four row groups a run, sorted by the key; each run has every key."""
    table = keyed(tmp_path)
    entries = []
    for run in range(runs):
        numbers = np.arange(ROWS)
        stored = to_arrow_schema((SEQUENCE_NUMBER, VALUE_KIND, *table.schema.fields))
        columns = [
            pa.array(numbers + run * ROWS),
            pa.array(np.zeros(ROWS, np.int8)),
            pa.array(numbers),
            pa.array(numbers % 1000 + run),
            pa.array(["some text"] * ROWS),
        ]
        written = pa.Table.from_arrays(columns, schema=stored)
        for meta in table._write_files(written, 0, level, EMPTY_ROW):
            entries.append(ManifestEntry(FileKind.ADD, EMPTY_ROW, 0, 1, meta))
    table.commit(entries)
    return table


@pytest.mark.parametrize("runs", [1, 3])
def test_a_selective_condition_on_the_key_reads_only_the_row_groups_it_must(tmp_path, runs):
    table = big(tmp_path, level=0 if runs > 1 else 5, runs=runs)
    key = 2 * GROUP_ROWS + 5
    found = scan(table.open(), col("k") == key)
    assert found.to_arrow().to_pylist() == [
        {"k": key, "v": key % 1000 + runs - 1, "s": "some text"}
    ]
    everything = Scan(table.open()._handle, table.open().latest_snapshot(), None)
    everything.to_arrow()
    report, whole = found.report, everything.report
    assert (report.row_groups, report.row_groups_read) == (4 * runs, runs)
    assert (whole.row_groups, whole.row_groups_read) == (4 * runs, 4 * runs)
    assert 0 < report.bytes_read < whole.bytes_read / 3
    assert whole.bytes_read <= whole.file_bytes


def test_row_groups_no_branch_can_be_met_in_are_not_read(tmp_path):
    table = big(tmp_path)
    last = ROWS - 1
    found = scan(table.open(), (col("k") == 5) | ((col("k") >= last) & (col("s") == "some text")))
    assert [row["k"] for row in found.to_arrow().to_pylist()] == [5, last]
    assert (found.report.row_groups, found.report.row_groups_read) == (4, 2)
    nothing = scan(table.open(), (col("k") < 0) | (col("s") > "some text"))
    assert nothing.to_arrow().num_rows == nothing.report.row_groups_read == 0


def test_below_a_merge_no_row_group_is_left_out_for_a_value(tmp_path):
    table = big(tmp_path, level=0, runs=2)
    found = scan(table.open(), (col("v") == 0) & (col("k") < 10))
    assert found.to_arrow().num_rows == 0  # key 0 had that value in the older run only
    assert found.report.row_groups_read == 2


def test_fewer_columns_are_fewer_bytes(tmp_path):
    table = big(tmp_path)
    some = Scan(table.open()._handle, table.open().latest_snapshot(), ["k"])
    every = Scan(table.open()._handle, table.open().latest_snapshot(), None)
    some.to_arrow(), every.to_arrow()
    assert some.report.bytes_read < every.report.bytes_read


@given(
    st.lists(
        st.lists(
            st.tuples(st.integers(0, 5), st.integers(0, 3), st.sampled_from([0, 3])),
            min_size=1,
            max_size=5,
            unique_by=lambda row: row[0],
        ),
        min_size=1,
        max_size=3,
    ),
    st.integers(0, 5),
    st.integers(0, 3),
)
@settings(max_examples=sampling.count(5, whole=25))
def test_a_condition_finds_what_filtering_all_rows_finds(tmp_path_factory, runs, key, value):
    table = keyed(tmp_path_factory.mktemp("w"))
    for run in runs:
        made = [{"k": k, "v": v, "s": None, "kind": kind} for k, v, kind in run]
        table.commit(table.write(made))
    everything = table.open().scan().to_arrow().to_pylist()
    for where, meets in (
        (col("k") >= key, lambda row: row["k"] >= key),
        (col("v") == value, lambda row: row["v"] == value),
        ((col("k") == key) & (col("v") != value), lambda r: r["k"] == key and r["v"] != value),
        ((col("k") == key) | (col("v") == value), lambda r: r["k"] == key or r["v"] == value),
        (
            ((col("k") <= key) & (col("v") == value)) | ((col("k") > key) & (col("v") < value)),
            lambda r: r["v"] == value if r["k"] <= key else r["v"] < value,
        ),
        (col("s").is_null(), lambda _: True),
    ):
        assert keys(table, where) == [row["k"] for row in everything if meets(row)]


class TestAFileThatIsNotThere:
    """Never fewer rows: an error that names the file, the snapshot, and possible reasons."""

    @pytest.fixture
    def table(self, tmp_path) -> KeyedTable:
        table = keyed(tmp_path)
        table.commit([*table.write(rows([1, 2], 1)), *table.write(rows([2, 3], 2))])
        return table

    def file(self, table: KeyedTable) -> Path:
        return sorted(Path(table.root, "bucket-0").iterdir())[0]

    def test_it_is_named_with_its_snapshot(self, table):
        file = self.file(table)
        file.unlink()
        with pytest.raises(CorruptTableError, match=f"{file.name} is missing") as caught:
            table.open().scan().to_arrow()
        assert "of snapshot 1; the file's schema is schema-0" in str(caught.value)
        assert "has expired" not in str(caught.value)

    def test_a_snapshot_that_has_expired_meanwhile_is_named_as_the_cause(self, table):
        reading = table.open().scan()
        reading.splits()
        self.file(table).unlink()
        os.remove(table.layout.snapshot(1))
        with pytest.raises(lake.SnapshotExpiredError, match=r"snapshot 1 .* has expired while"):
            reading.to_arrow()

    def test_damage_is_no_shorter_answer(self, table):
        file = self.file(table)
        file.write_bytes(file.read_bytes()[:-20])
        with pytest.raises(CorruptTableError, match=f"{file.name} cannot be read"):
            table.open().scan().to_arrow()


@pytest.mark.sampled(6)
@pytest.mark.parametrize("precision", range(29, 39))
@pytest.mark.parametrize("mode", ["none", "full"])
def test_every_digit_of_a_wide_decimal_counts(tmp_path, precision, mode):
    catalog = lake.open_catalog(str(tmp_path / "wh"))
    catalog.create_database("shop")
    scale = 5
    table = catalog.create_table(
        "shop.t", [("v", f"DECIMAL({precision}, {scale})")], options={"metadata.stats-mode": mode}
    )
    digits = ("1234567890" * 4)[:precision]
    value = f"{digits[:-scale]}.{digits[-scale:]}"
    above = f"{value[:-1]}{int(value[-1]) + 1}" if value[-1] != "9" else f"{value[:-2]}90"
    stored = pa.array([Decimal(value)], pa.decimal128(precision, scale))
    table.write(pa.table({"v": stored}))
    for condition in (f"v = {value}", f"v >= {value}", f"v <= {value}", f"v < {above}"):
        assert table.scan(where=condition).to_arrow().num_rows == 1, condition
    for condition in (f"v = {above}", f"v > {value}", f"v >= {above}", f"v < {value}"):
        assert table.scan(where=condition).to_arrow().num_rows == 0, condition


def numbers(tmp_path) -> lake.Table:
    catalog = lake.open_catalog(str(tmp_path / "wh"))
    catalog.create_database("shop")
    table = catalog.create_table(
        "shop.t",
        [("k", "INT"), ("d", "DECIMAL(3, 1)"), ("f", "DOUBLE"), ("s", "STRING")],
        options={"file.format": "parquet"},
    )
    table.write(
        pa.table(
            {
                "k": pa.array([-1, 0, 1, 2, None], pa.int32()),
                "d": pa.array(["-9.9", "0.0", "0.1", "9.9", None]).cast(pa.decimal128(3, 1)),
                "f": [-0.0, 0.0, 1.0, float("nan"), None],
                "s": ["a", "b", "c", "d", None],
            }
        )
    )
    return table


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("k = 1.5", []),
        ("k != 1.5", [-1, 0, 1, 2]),
        ("NOT k = 1.5", [-1, 0, 1, 2]),
        ("k < 1.5", [-1, 0, 1]),
        ("k <= 1.5", [-1, 0, 1]),
        ("k > -0.5", [0, 1, 2]),
        ("k >= -0.5", [0, 1, 2]),
        ("NOT k >= -0.5", [-1]),
        ("k BETWEEN 0.5 AND 1.5", [1]),
        ("k = 3000000000", []),
        ("k < 3000000000", [-1, 0, 1, 2]),
        ("k > 3000000000", []),
        ("k > -3000000000", [-1, 0, 1, 2]),
        ("k <= -3000000000", []),
        ("k IN (1.5, 1)", [1]),
        ("k IN (1.5)", []),
        ("k NOT IN (1.5)", [-1, 0, 1, 2]),
        ("k NOT IN (1.5, 1)", [-1, 0, 2]),
        ("k NOT IN (1, NULL)", []),
        ("d = 0.05", []),
        ("d > 0.05", [1, 2]),
        ("d <= 0.05", [-1, 0]),
        ("d < 100", [-1, 0, 1, 2]),
        ("d >= 100", []),
        (col("k") <= 1e300, [-1, 0, 1, 2]),
        (col("k") < float("nan"), [-1, 0, 1, 2]),
        (col("k") >= float("-inf"), [-1, 0, 1, 2]),
        (col("k") == pa.scalar(1), [1]),
        (col("k").isin(pa.array([1, 2])), [1, 2]),
        (col("k").isin(pa.chunked_array([[1], [2]])), [1, 2]),
        (col("f").isin([0.0]), [-1, 0]),
        (col("f").isin([-0.0, float("nan")]), [-1, 0, 2]),
        (~col("f").isin([0.0]), [1, 2]),
    ],
)
def test_numbers_a_column_cannot_hold_are_compared_all_the_same(tmp_path, condition, found):
    assert numbers(tmp_path).scan(["k"], where=condition).to_arrow()["k"].to_pylist() == found


def test_thousands_of_alternatives_and_values_are_no_tower(tmp_path):
    table = numbers(tmp_path)
    where = col("k") == 1
    for number in range(100, 2500):
        where |= col("k") == number
    assert table.scan(where=where).count() == 1
    both = (col("k") > -5) & (col("k") < 5) & (col("s") == "c")
    assert both.to_text() == '"k" > -5 AND "k" < 5 AND "s" = \'c\''
    assert table.scan(where=col("k").isin(range(1, 10_000))).count() == 2
    assert table.scan(where=~col("k").isin(range(1, 10_000))).count() == 2


@pytest.mark.parametrize(("least", "most"), [(-5, -1), (10, 19), (21, 29), (31, 99)])
def test_a_list_leaves_out_files_between_its_values(tmp_path, least, most):
    table = keyed(tmp_path)
    table.commit(table.write(rows(range(least, most + 1), 1), level=5))
    assert files(table, col("k").isin([0, 20, 30, 100])) == 0
    assert files(table, col("k").isin([0, least, 100])) == 1
    assert files(table, col("k").isin([0, most, 100])) == 1


def test_zeros_of_both_signs_are_one_bucket_key_too(tmp_path):
    catalog = lake.open_catalog(str(tmp_path / "wh"))
    catalog.create_database("shop")
    for name in ("FLOAT", "DOUBLE"):
        table = catalog.create_table(
            f"shop.{name.lower()}",
            [("k", name), ("n", "INT")],
            options={"bucket": "16", "bucket-key": "k"},
        )
        zeros = pa.array([0.0, -0.0]).cast(pa.float32() if name == "FLOAT" else pa.float64())
        table.write(pa.table({"k": zeros, "n": pa.array([1, 2], pa.int32())}))
        assert sorted(table.scan(where=col("k") == 0.0).to_arrow()["n"].to_pylist()) == [1, 2]
        assert sorted(table.scan(where=col("k").isin([-0.0])).to_arrow()["n"].to_pylist()) == [1, 2]


def bucketed(tmp_path, options=()) -> tuple[lake.Catalog, lake.Table]:
    catalog = lake.open_catalog(tmp_path)
    catalog.create_database("shop")
    columns = [("k", "INT"), ("n", "INT")]
    table = catalog.create_table(
        "shop.t", columns, options={"bucket": "8", "bucket-key": "k", **dict(options)}
    )
    table.write(numbered(pa.int32(), -2, -3, -4))
    return catalog, table


def numbered(kind: pa.DataType, *keys: int) -> pa.Table:
    return pa.table({"k": pa.array(keys, kind), "n": pa.array(range(len(keys)), pa.int32())})


def test_rows_in_the_buckets_of_an_old_type_are_found(tmp_path, monkeypatch):
    """Another engine, or an older version, changed the type of a bucket-key column."""
    catalog, _ = bucketed(tmp_path)
    monkeypatch.setattr(column_rules, "check_bucket_key_type", lambda *_: None)
    table = catalog.alter_table("shop.t", lake.update_column_type("k", "BIGINT"))
    table = catalog.alter_table("shop.t", lake.rename_column("k", "key"))
    assert table.scan(where="key = -2").count() == 1
    assert table.scan(where="key IN (-2, -3) OR n = 2").count() == 3
    table.compact(strategy="full")  # gives old rows the new schema id, but no other bucket
    assert table.scan(where="key = -2").count() == 1
    table.write(numbered(pa.int64(), -2).rename_columns(["key", "n"]))
    assert table.scan(where="key = -2").count() == 2
    found = lake.Lookup(table, keys=["key"]).get_many(pa.table({"key": [-3]}))
    assert found.to_pylist() == [{"key": -3, "n": 1}]
    assert table.update("key = -3", {"n": "7"}).rows == 1
    assert table.delete("key = -2").rows == 2
    assert table.scan().to_arrow().sort_by("key").to_pydict() == {"key": [-4, -3], "n": [2, 7]}


@pytest.mark.parametrize(
    ("change", "options"),
    [
        (lake.add_column("more", "INT"), {}),
        (lake.update_column_type("n", "BIGINT"), {}),
        (lake.update_column_type("k", "BIGINT"), {"bucket-function.type": "mod"}),
    ],
    ids=["another column", "another type", "mod"],
)
def test_buckets_are_left_out_after_changes_that_keep_them(tmp_path, change, options):
    catalog, before = bucketed(tmp_path, options)
    one = len(before.scan(where="k = -2").splits())
    table = catalog.alter_table("shop.t", change)
    assert (table.scan(where="k = -2").count(), one) == (1, 1)
    assert len(table.scan(where="k = -2").splits()) < len(table.scan().splits())


def test_a_branch_of_java_may_lack_the_oldest_schemas(tmp_path):
    catalog, _ = bucketed(tmp_path)
    table = catalog.alter_table("shop.t", lake.add_column("more", "INT"))
    table.branches.create("dev")
    (tmp_path / "shop.db/t/branch/branch-dev/schema/schema-0").unlink()
    branch = catalog.table("shop.t$branch_dev")
    branch.write(numbered(pa.int32(), -5))
    assert branch.scan(where="k = -5").count() == 1
