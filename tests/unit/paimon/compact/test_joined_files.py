"""Small files that share no key are joined without decoding, as a rewrite would join them."""

from __future__ import annotations

import contextlib
import io
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lakeformat as lake
from lakeformat.files.parquet.join import CannotJoinError, JoinedParquet, read_row_groups
from lakeformat.paimon.compact import joined_files
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta
from lakeformat.paimon.read.plan import plan_files
from tests.damage import damaged, fuzzed, within_bounds

SCHEMA = pa.schema(
    [
        pa.field("k", pa.int64(), nullable=False),
        pa.field("s", pa.string()),
        pa.field("n", pa.float64()),
        pa.field("a", pa.decimal128(30, 2)),
        pa.field("l", pa.list_(pa.int32())),
    ]
)


@pytest.fixture(autouse=True)
def row_groups_of_any_size_are_worth_keeping(monkeypatch):
    monkeypatch.setattr(joined_files, "_LEAST_GROUP_ROWS", 1)


@pytest.fixture
def catalog(tmp_path) -> lake.Catalog:
    found = lake.open_catalog(str(tmp_path))
    found.create_database("shop")
    return found


def make_table(catalog, name="orders", **options) -> lake.Table:
    options = {"bucket": "1", **options}
    return catalog.create_table(f"shop.{name}", SCHEMA, primary_key=["k"], options=options)


def rows(keys, text="v", **columns) -> pa.Table:
    keys = list(keys)
    given = {
        "k": keys,
        "s": [f"{text}{key}" for key in keys],
        "n": [key / 4 for key in keys],
        "a": [key for key in keys],
        "l": [[key, None] for key in keys],
        **columns,
    }
    return pa.table([pa.array(given[f.name]).cast(f.type) for f in SCHEMA], schema=SCHEMA)


def some_parquet(codec: str) -> bytes:
    sink = io.BytesIO()
    has_index = codec == "none"
    pq.write_table(
        rows(range(20)), sink, row_group_size=7, compression=codec, write_page_index=has_index
    )
    return sink.getvalue()


STORED = [some_parquet("zstd"), some_parquet("none")]


def write_disjoint(table: lake.Table) -> None:
    table.write(rows(range(20, 30)))
    table.write(rows(range(10), s=[None] * 10))
    table.write(rows(range(10, 20), text="longer than sixteen characters "))


def files(table: lake.Table) -> list[DataFileMeta]:
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    return [entry.file for entry in plan_files(table._handle, snapshot)]


def row_groups(catalog, table, tmp_path) -> list[int]:
    [file] = files(table)
    [path] = tmp_path.rglob(file.file_name)
    footer = pq.read_metadata(path)
    return [footer.row_group(number).num_rows for number in range(footer.num_row_groups)]


def without_names(file: DataFileMeta) -> DataFileMeta:
    return replace(file, file_name="", file_size=0, creation_time=None)


def rewritten(catalog, write, **options) -> DataFileMeta:
    """The entry of the same file from a compaction that decodes every row."""
    table = make_table(
        catalog, "rewritten", **{"compaction.force-rewrite-all-files": "true"}, **options
    )
    write(table)
    table.compact()
    [file] = files(table)
    catalog.drop_table("shop.rewritten")
    return file


def test_files_become_one_whose_row_groups_are_theirs(catalog, tmp_path):
    table = make_table(catalog)
    write_disjoint(table)
    before = table.scan().to_arrow().sort_by("k")
    report = table.compact()
    assert row_groups(catalog, table, tmp_path) == [10, 10, 10]
    assert table.scan().to_arrow().equals(before)
    assert (report.files_in, report.files_out, report.rows_out) == (3, 1, 30)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"metadata.stats-mode": "full"},
        {"metadata.stats-mode": "counts"},
        {"metadata.stats-mode": "none"},
        {"metadata.stats-dense-store": "false"},
        {"fields.s.stats-mode": "none"},
        {"data-file.thin-mode": "true"},
    ],
    ids=str,
)
def test_the_manifest_says_what_it_says_of_a_file_written_anew(catalog, options):
    table = make_table(catalog, **options)
    write_disjoint(table)
    table.compact()
    [file] = files(table)
    assert without_names(file) == without_names(rewritten(catalog, write_disjoint, **options))


@given(data=st.data())
@fuzzed(12)
def test_whatever_the_values_are_the_manifest_says_the_same(tmp_path_factory, data):
    column = st.none() | st.text(max_size=20)
    number = st.none() | st.floats(width=32)
    parts = [
        {
            "keys": range(start, start + 4),
            "s": data.draw(st.lists(column, min_size=4, max_size=4)),
            "n": data.draw(st.lists(number, min_size=4, max_size=4)),
        }
        for start in data.draw(st.permutations([0, 4, 8]))
    ]

    def write(table: lake.Table) -> None:
        for part in parts:
            table.write(rows(part["keys"], s=part["s"], n=part["n"]))

    catalog = lake.open_catalog(str(tmp_path_factory.mktemp("joined")))
    catalog.create_database("shop")
    table = make_table(catalog)
    write(table)
    before = table.scan().to_arrow().sort_by("k")
    table.compact()
    [file] = files(table)
    assert repr(table.scan().to_arrow().to_pylist()) == repr(before.to_pylist())
    assert without_names(file) == without_names(rewritten(catalog, write))


def test_a_file_that_has_its_size_is_followed_by_another(catalog):
    table = make_table(catalog)
    for start in range(0, 60, 10):
        table.write(rows(range(start, start + 10)))
    size = min(file.file_size for file in files(table))
    target = {"target-file-size": f"{size * 2} b", "compaction.small-file-ratio": "1"}
    table = catalog.alter_table("shop.orders", *(lake.set_option(*pair) for pair in target.items()))
    before = table.scan().to_arrow()
    table.compact()
    assert [file.row_count for file in files(table)] == [20, 20, 20]
    assert table.scan().to_arrow().equals(before)


@pytest.mark.parametrize(
    "options",
    [
        {"file-index.bloom-filter.columns": "s"},
        {"changelog-producer": "full-compaction"},
        {"changelog-producer": "lookup"},
        {"file.format": "orc"},
        {"compaction.force-rewrite-all-files": "true"},
    ],
    ids=str,
)
def test_where_a_row_has_to_be_seen_it_is(catalog, options, tmp_path):
    table = make_table(catalog, **options)
    write_disjoint(table)
    before = table.scan().to_arrow().sort_by("k")
    table.compact()
    if options.get("file.format") != "orc":
        assert row_groups(catalog, table, tmp_path) == [30]
    assert table.scan().to_arrow().equals(before)


def test_deleted_rows_go_as_ever(catalog, tmp_path):
    table = make_table(catalog)
    table.write(rows(range(10)))
    kinds = ["+I"] * 9 + ["-D"]
    table.write(rows(range(10, 20)), kinds)
    table.compact()
    assert [file.row_count for file in files(table)] == [19]
    assert row_groups(catalog, table, tmp_path) == [19]


@pytest.mark.parametrize(
    "change",
    [
        lake.add_column("more", "INT"),
        lake.set_option("file.compression", "snappy"),
    ],
    ids=["another schema", "another codec"],
)
def test_a_file_that_would_be_written_otherwise_now_is_written_anew(catalog, tmp_path, change):
    table = make_table(catalog)
    table.write(rows(range(10)))
    table = catalog.alter_table("shop.orders", change)
    table.write(rows(range(10, 20)))
    before = table.scan().to_arrow()
    table.compact()
    assert row_groups(catalog, table, tmp_path) == [20]
    assert table.scan().to_arrow().equals(before)


def test_small_row_groups_are_written_as_large_ones(catalog, tmp_path, monkeypatch):
    monkeypatch.setattr(joined_files, "_LEAST_GROUP_ROWS", 11)
    table = make_table(catalog)
    write_disjoint(table)
    table.compact()
    assert row_groups(catalog, table, tmp_path) == [30]


def test_a_damaged_file_is_named_and_nothing_is_left(catalog, tmp_path):
    table = make_table(catalog)
    write_disjoint(table)
    [path] = tmp_path.rglob(files(table)[0].file_name)
    path.write_bytes(path.read_bytes()[:-20] + bytes(20))
    before = {*tmp_path.rglob("*.parquet")}
    with pytest.raises(lake.LakeError, match=path.name):
        table.compact()
    assert {*tmp_path.rglob("*.parquet")} == before


@pytest.mark.parametrize("stored", STORED, ids=["zstd", "none"])
@given(data=st.data())
@fuzzed(60)
def test_damaged_bytes_are_refused_or_row_groups_within_bounds(stored, data):
    content = data.draw(damaged(stored))
    copied = said = 0
    with within_bounds(), contextlib.suppress(CannotJoinError):
        found = read_row_groups(io.BytesIO(content), len(content))
        sink = io.BytesIO()
        joined = JoinedParquet(sink)
        joined.add(io.BytesIO(content), found)
        joined.close()
        copied, said = found.count, read_row_groups(sink, len(sink.getvalue())).count
    assert said == copied


def test_what_is_joined_is_read_as_all_of_it_was():
    sink = io.BytesIO()
    joined = JoinedParquet(sink)
    for stored in [STORED[0]] * 3:
        joined.add(io.BytesIO(stored), read_row_groups(io.BytesIO(stored), len(stored)))
    joined.close()
    once = pq.read_table(io.BytesIO(STORED[0]))
    assert pq.read_table(sink).equals(pa.concat_tables([once] * 3))
    groups = pq.read_metadata(sink)
    assert [groups.row_group(n).num_rows for n in range(groups.num_row_groups)] == [7, 7, 6] * 3
