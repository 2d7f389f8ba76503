"""File indexes: written with each file as options ask, and used to leave files out."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lakeformat as lake
from lakeformat.paimon.index.file_index import encode_file_index
from lakeformat.paimon.metadata.manifest_entry import ManifestEntry
from lakeformat.paimon.read.plan import plan_files
from lakeformat.rows.conditions.filter import as_predicate, bind_predicate
from tests.golden.tables import HOW_TO_UNSKIP, golden_tables
from tests.keyed_rows import KeyedRows, listed

GOLDEN = {table.name: table for table in golden_tables()}
needs_golden_tables = pytest.mark.skipif(not GOLDEN, reason=HOW_TO_UNSKIP)

BITMAP = {"file-index.bitmap.columns": "v"}
BLOOM = {
    "file-index.bloom-filter.columns": "v",
    "file-index.bloom-filter.v.items": "100",
    "file-index.bloom-filter.v.fpp": "0.0001",
}
RANGE = {"file-index.range-bitmap.columns": "v"}
BESIDE = {"file-index.in-manifest-threshold": "0 b"}
ALL_TYPES = {
    "file-index.bitmap.columns": "v,k",
    "file-index.bloom-filter.columns": "v,k",
    "file-index.bloom-filter.v.items": "4",
    "file-index.bloom-filter.k.items": "4",
    "file-index.range-bitmap.columns": "v,k",
    "file-index.bsi.columns": "k",
}


def two_files(options: dict[str, str], **kind: bool) -> KeyedRows:
    """Both have values from a to y, so their bounds leave neither out; keys differ."""
    table = KeyedRows(options, **kind)
    table.commit(("+I", 1, "a"), ("+I", 2, "c"), ("+I", 3, "y"))
    table.commit(("+I", 11, "a"), ("+I", 12, "g"), ("+I", 13, None), ("+I", 14, "y"))
    return table


@pytest.mark.parametrize("options", [BITMAP, BLOOM, RANGE], ids=["bitmap", "bloom", "range"])
@pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "append"])
def test_an_index_is_asked_about_each_branch_of_an_or(options, keyed):
    table = two_files(options, keyed=keyed)
    merged_with = 1 if keyed else 0  # the file whose row of the key might be the newer one
    assert read(table, "v = 'c' OR k = 77") == ([(2, "c")], 1 + merged_with, 1 - merged_with)
    assert read(table, "v = 'd' OR k = 77")[:2] == ([], 0)
    assert read(table, "(v = 'c' AND k < 9) OR (v = 'g' AND k > 14)")[:2] == ([(2, "c")], 1)


def files_of(table: KeyedRows) -> list[ManifestEntry]:
    snapshot = table.table.latest_snapshot()
    assert snapshot is not None
    return plan_files(table.table._handle, snapshot)


def read(table: KeyedRows, where: str) -> tuple[list[tuple], int, int]:
    """The rows, how many files were opened for them, and how many an index left out."""
    scan = table.table.scan(where=where)
    rows = listed(scan)
    return rows, scan.report.files_read, scan.explain().left_out_by_index


@pytest.mark.parametrize("place", [{}, BESIDE], ids=["embedded", "beside"])
@pytest.mark.parametrize(
    ("options", "where", "rows"),
    [
        (BITMAP, "v = 'c'", [(2, "c")]),
        (BLOOM, "v = 'c'", [(2, "c")]),
        (RANGE, "v = 'c'", [(2, "c")]),
        (BITMAP, "v IN ('g', 'h')", [(12, "g")]),
        (BLOOM, "v = 'g' OR v = 'h'", [(12, "g")]),
        (BITMAP, "v IN ('c', 'd') AND v IS NOT NULL", [(2, "c")]),
        (RANGE, "v > 'c' AND v < 'h'", [(12, "g")]),
        (RANGE, "v BETWEEN 'b' AND 'd'", [(2, "c")]),
    ],
)
def test_a_file_without_such_a_row_is_not_opened(options, where, rows, place):
    table = two_files({**options, **place}, keyed=False)
    assert read(table, where) == (rows, 1, 1)


def test_rows_that_meet_one_condition_each_do_not_make_a_file_worth_reading():
    table = two_files(
        {"file-index.bitmap.columns": "v", "file-index.range-bitmap.columns": "k"}, keyed=False
    )
    assert read(table, "v = 'a' AND k > 1 AND k < 12") == ([(11, "a")], 1, 1)


def test_an_index_says_what_it_left_out():
    told = two_files(BITMAP, keyed=False).table.scan(where="v = 'c'").explain()
    assert "0 by statistics, 1 by index" in str(told)


def test_indexes_are_not_read_when_the_table_says_so():
    table = two_files({**BITMAP, "file-index.read.enabled": "false"}, keyed=False)
    assert read(table, "v = 'c'") == ([(2, "c")], 2, 0)


@pytest.mark.parametrize("engine", ["deduplicate", "partial-update"])
def test_below_a_merge_a_file_is_not_left_out_alone(engine):
    table = KeyedRows({**BITMAP, "merge-engine": engine})
    table.commit(("+I", 1, "a"), ("+I", 2, "c"), ("+I", 3, "y"))
    table.commit(("+I", 1, "b"), ("+I", 2, "b"), ("+I", 3, "x"))
    # The second file has no c, but replaces the one the first has.
    assert read(table, "v = 'c'") == ([], 2, 0)


@pytest.mark.parametrize(("engine", "opened"), [("deduplicate", 0), ("partial-update", 2)])
def test_a_bucket_without_the_value_is_left_out_where_whole_rows_win(engine, opened):
    table = KeyedRows({**BITMAP, "merge-engine": engine})
    table.commit(("+I", 1, "a"), ("+I", 2, "c"), ("+I", 3, "y"))
    table.commit(("+I", 1, "a"), ("+I", 2, "b"), ("+I", 3, "y"))
    assert read(table, "v = 'f'") == ([], opened, 2 - opened)


def test_a_key_leaves_out_single_files_below_a_merge():
    table = KeyedRows({"file-index.bitmap.columns": "k"})
    table.commit(("+I", 1, "a"), ("+I", 5, "c"))
    table.commit(("+I", 1, "b"), ("+I", 3, "b"), ("+I", 9, "b"))
    assert read(table, "k = 5") == ([(5, "c")], 1, 1)


def test_a_renamed_column_keeps_its_index():
    table = two_files(BITMAP, keyed=False)
    table.table = table.catalog.alter_table("shop.t", lake.rename_column("v", "w"))
    assert table.table.schema.options["file-index.bitmap.columns"] == "w"
    assert read(table, "w = 'c'") == ([(2, "c")], 1, 1)


def test_a_column_that_took_the_place_of_an_indexed_one_is_not_looked_up_there():
    table = two_files(BITMAP, keyed=False)
    table.table = table.catalog.alter_table(
        "shop.t", lake.rename_column("v", "old"), lake.add_column("v", "STRING")
    )
    # The index of a file is under the name v, which is of another column now.
    assert read(table, "v IS NULL AND k = 2")[0] == [(2, "c", None)]
    assert read(table, "v = 'c'")[0] == []


def test_a_column_of_another_type_than_its_index_goes_without():
    table = KeyedRows({"file-index.bitmap.columns": "k"}, keyed=False)
    table.commit(("+I", 1, "a"), ("+I", 9, "c"))
    table.table = table.catalog.alter_table("shop.t", lake.update_column_type("k", "BIGINT"))
    assert read(table, "k = 5") == ([], 1, 0)


@pytest.mark.parametrize("keyed", [False, True], ids=["append", "keyed"])
@pytest.mark.parametrize("content", [None, b"no index at all"], ids=["missing", "damaged"])
def test_a_missing_or_damaged_index_is_an_error_that_names_it(content, keyed):
    table = two_files({**BITMAP, **BESIDE}, keyed=keyed)
    storage, layout = table.place
    [name] = files_of(table)[0].file.extra_files
    path = layout.data_file(files_of(table)[0].bucket, name, "")
    storage.delete(path)
    if content is not None:
        with storage.open_output(path) as stream:
            stream.write(content)
    with pytest.raises(lake.CorruptTableError, match=rf"{name}.*manifest-.*of snapshot 2"):
        table.table.scan(where="v = 'c'").to_arrow()


@needs_golden_tables
@pytest.mark.parametrize("name", ["format-java/file_index", "format-java/file_index_embedded"])
@pytest.mark.parametrize(
    ("where", "rows", "left_out"),
    [("b = 'x'", 2, 0), ("b = 'xx'", 0, 1), ("b IS NULL", 2, 0), ("b = 'x' AND b = 'y'", 0, 1)],
)
def test_tables_of_java_are_pruned_by_their_indexes(name, where, rows, left_out):
    scan = lake.open_table(GOLDEN[name].location).scan(where=where)
    assert (scan.count(), scan.report.files_read) == (rows, 1 - left_out)
    assert scan.explain().left_out_by_index == left_out


VALUES = st.one_of(st.none(), st.sampled_from(["", "a", "b", "é", "zz"]))
ROWS = st.lists(st.tuples(st.integers(-3, 9), VALUES), min_size=1, max_size=6)
LITERALS = st.sampled_from(["", "a", "aa", "b", "é", "zz"])
NUMBERS = st.integers(-5, 11)
CONDITIONS = st.one_of(
    st.builds("v = '{}'".format, LITERALS),
    st.builds("v <> '{}'".format, LITERALS),
    st.builds("v IN ('{}', '{}')".format, LITERALS, LITERALS),
    st.builds("v > '{}'".format, LITERALS),
    st.builds("v = '{}' OR v = '{}'".format, LITERALS, LITERALS),
    st.builds("v LIKE '{}%'".format, LITERALS),
    st.sampled_from(["v IS NULL", "v IS NOT NULL"]),
    st.builds("k = {}".format, NUMBERS),
    st.builds("k < {}".format, NUMBERS),
    st.builds("k >= {}".format, NUMBERS),
    st.builds("k BETWEEN {} AND {}".format, NUMBERS, NUMBERS),
)


@pytest.mark.parametrize("engine", [None, "deduplicate", "partial-update", "first-row"])
@given(
    commits=st.lists(ROWS, min_size=1, max_size=3),
    parts=st.lists(CONDITIONS, min_size=1, max_size=3),
)
def test_a_scan_with_indexes_has_the_rows_of_a_filter(engine, commits, parts):
    options = {**ALL_TYPES, **({"merge-engine": engine} if engine else {})}
    table = KeyedRows(options, keyed=engine is not None)
    for rows in commits:
        table.commit(*(("+I", *row) for row in rows))
    assert all(
        entry.file.embedded_file_index or entry.file.extra_files for entry in files_of(table)
    )
    where = " AND ".join(parts)
    everything = pa.RecordBatch.from_pylist(
        table.table.scan().to_arrow().to_pylist(), table.table.schema.arrow_schema()
    )
    keep = bind_predicate(as_predicate(where), table.table.schema.fields).mask(everything)
    expected = [tuple(row.values()) for row in everything.filter(keep).to_pylist()]
    assert sorted(listed(table.table.scan(where=where)), key=repr) == sorted(expected, key=repr)


def test_a_type_of_index_that_is_not_known_leaves_its_file_in():
    table = KeyedRows(keyed=False)
    with table.table.new_writer() as writer:
        writer.write(pa.table({"k": pa.array([1, 3], pa.int32()), "v": ["a", "c"]}))
        [message] = writer.prepare()
    [file] = message.new_files
    index = encode_file_index({"v": {"sundial": b"?"}, "k": {"empty": None}})
    table.table.commit([replace(message, new_files=(replace(file, embedded_file_index=index),))])
    assert read(table, "v = 'b'") == ([], 1, 0)
    assert read(table, "k = 2") == ([], 0, 1)  # an empty index proves that there is no value


def test_a_long_list_of_values_is_not_looked_up_in_every_file():
    table = two_files(BITMAP, keyed=False)
    for count, left_out in ((1000, 1), (1001, 0)):
        values = ", ".join(["'c'", *(f"'d{number}'" for number in range(1, count))])
        assert read(table, f"v IN ({values})") == ([(2, "c")], 2 - left_out, left_out)
