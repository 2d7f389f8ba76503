"""The file index of each new data file: its content, its place, and the allowed options."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.paimon.datafile.rolling_writer import RollingWriter
from lakeformat.paimon.index.file_index import BloomFilter, decode_file_index, open_column_index
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta
from lakeformat.paimon.options import TableOptions
from lakeformat.paimon.read.plan import plan_files
from lakeformat.storage import MemoryStorage
from lakeformat.types.types import STRING, ArrayType, DataField, TypeName, atomic
from tests.golden.tables import HOW_TO_UNSKIP, golden_tables
from tests.keyed_rows import KeyedRows, listed

GOLDEN = {table.name: table for table in golden_tables()}
needs_golden_tables = pytest.mark.skipif(not GOLDEN, reason=HOW_TO_UNSKIP)
ROWS = (("+I", 1, "a"), ("+I", 2, None), ("+I", 3, "a"))
BESIDE = {"file-index.in-manifest-threshold": "10 b"}


def file_of(table: lake.Table) -> DataFileMeta:
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    [entry] = plan_files(table._handle, snapshot)
    return entry.file


def indexes_of(table: lake.Table) -> dict[str, dict[str, bytes | None]]:
    """The container of the only file, wherever it is."""
    file, handle = file_of(table), table._handle
    content = file.embedded_file_index
    if content is None:
        content = handle.storage.read(handle.layout.data_file(0, file.extra_files[0], ""))
    return decode_file_index(content, file.file_name)


def written(options: dict[str, str], *, keyed: bool = False) -> tuple[KeyedRows, DataFileMeta]:
    table = KeyedRows(options, keyed=keyed)
    table.commit(*ROWS)
    return table, file_of(table.table)


@pytest.mark.parametrize("keyed", [False, True], ids=["append", "keyed"])
def test_a_small_index_is_in_the_manifest_and_knows_the_rows(keyed):
    _, file = written({"file-index.bitmap.columns": "v"}, keyed=keyed)
    assert file.extra_files == ()
    assert file.embedded_file_index is not None
    body = decode_file_index(file.embedded_file_index, "it")["v"]["bitmap"]
    index = open_column_index("bitmap", STRING, body, "it")
    assert [*index.equal_to("a")] == [0, 2]
    assert [*index.is_null()] == [1]


@pytest.mark.parametrize("keyed", [False, True], ids=["append", "keyed"])
def test_a_larger_one_is_beside_the_data_file(keyed):
    table, file = written({"file-index.bitmap.columns": "v", **BESIDE}, keyed=keyed)
    assert (file.embedded_file_index, file.extra_files) == (None, (f"{file.file_name}.index",))
    storage, layout = table.place
    content = storage.read(layout.data_file(0, file.extra_files[0], ""))
    assert [*decode_file_index(content, "it")] == ["v"]


def test_each_column_has_the_indexes_that_name_it():
    options = {
        f"file-index.{index_type}.columns": columns
        for index_type, columns in (
            ("bloom-filter", "v"),
            ("bitmap", "v, k"),
            ("range-bitmap", "v"),
            ("bsi", "k"),
        )
    }
    _, file = written({**options, "file-index.bloom-filter.v.items": "10"})
    assert file.embedded_file_index is not None
    bodies = decode_file_index(file.embedded_file_index, "it")
    assert {column: {*by_type} for column, by_type in bodies.items()} == {
        "v": {"bloom-filter", "bitmap", "range-bitmap"},
        "k": {"bitmap", "bsi"},
    }


def test_settings_are_of_one_column():
    options = {"file-index.bloom-filter.columns": "v", "file-index.bloom-filter.v.items": "10"}
    _, file = written({**options, "file-index.bloom-filter.v.fpp": "0.01"})
    body = decode_file_index(file.embedded_file_index or b"", "it")["v"]["bloom-filter"]
    index = open_column_index("bloom-filter", STRING, body, "it")
    assert isinstance(index, BloomFilter)
    assert (index.hash_count, len(index.bits)) == (7, 12)


def test_bitmaps_of_version_1_are_written_where_asked():
    options = {"file-index.bitmap.columns": "v", "file-index.bitmap.v.version": "1"}
    _, file = written(options)
    body = decode_file_index(file.embedded_file_index or b"", "it")["v"]["bitmap"]
    assert body is not None
    assert body[0] == 1


def test_a_file_with_a_value_no_index_holds_goes_without():
    catalog = lake.open_catalog("memory://lowest/wh")
    catalog.create_database("shop")
    table = catalog.create_table(
        "shop.t", [("n", "BIGINT")], options={"file-index.bsi.columns": "n"}
    )
    table.write(pa.table({"n": [-(2**63)]}))
    assert listed(table.scan(where="n < 0")) == [(-(2**63),)]


@pytest.mark.parametrize("index_type", ["bloom-filter", "bsi", "bitmap"])
def test_a_column_no_such_index_holds_goes_without(index_type):
    """A table of another engine may ask for it."""
    options = TableOptions(
        {f"file-index.{index_type}.columns": "v, k", "file-index.bloom-filter.k.items": "10"}
    )
    fields = (DataField(0, "v", ArrayType(STRING)), DataField(1, "k", atomic(TypeName.INT)))
    writer = RollingWriter(MemoryStorage("it"), "/t", fields, options, lambda: "data-0.parquet")
    writer.write(pa.record_batch({"v": [["a"]], "k": pa.array([7], pa.int32())}))
    [file] = writer.finish()
    assert {*decode_file_index(file.embedded_index or b"", "it")} == {"k"}


def test_an_aborted_write_leaves_no_index_behind():
    table = KeyedRows({"file-index.bitmap.columns": "v", **BESIDE}, keyed=False)
    writer = table.table.new_writer()
    writer.write(pa.table({"k": pa.array([1], pa.int32()), "v": ["a"]}))
    messages = writer.prepare()
    assert [m.new_files[0].extra_files for m in messages] != [()]
    table.table.abort(messages)
    storage, layout = table.place
    assert [path for path in storage.files(layout.root) if "bucket-" in path] == []


def test_a_writer_that_gives_up_removes_its_indexes_too():
    storage, options = MemoryStorage("given-up"), {"file-index.bitmap.columns": "v", **BESIDE}
    fields = (DataField(0, "v", STRING),)
    writer = RollingWriter(storage, "/t", fields, TableOptions(options), lambda: "data-0.parquet")
    writer.write(pa.record_batch({"v": ["a", "b"]}))
    assert [file.extra_files for file in writer.finish()] == [("data-0.parquet.index",)]
    writer.abort()
    assert storage.files("/t") == {}


def test_compacted_files_have_their_index_and_changelog_files_none():
    options = {"file-index.bitmap.columns": "v", "changelog-producer": "full-compaction", **BESIDE}
    table = KeyedRows(options)
    table.commit(*ROWS)
    table.commit(("+I", 1, "b"))
    table.table.compact()
    file = file_of(table.table)
    assert (file.level, file.extra_files) == (5, (f"{file.file_name}.index",))
    assert listed(table.table.scan(where="v = 'a'")) == [(3, "a")]
    storage, layout = table.place
    beside = [path for path in storage.files(layout.root) if path.endswith(".index")]
    assert len([path for path in beside if "/changelog-" in path]) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"file-index.bitmap.columns": "w"}, "names 'w', but the table has no such column"),
        ({"file-index.bsi.columns": "v"}, "names 'v', but it is STRING; a bsi index takes"),
        ({"file-index.bitmap.v.version": "1"}, "'file-index.bitmap.columns' does not name"),
        (
            {"file-index.bloom-filter.columns": "v", "file-index.bloom-filter.v.fpp": "0"},
            "rate of 0.0 false positives",
        ),
        ({"file-index.ngram.columns": "v"}, "'file-index.ngram.columns' would build no index"),
    ],
)
def test_an_index_that_cannot_be_is_refused_when_the_table_is_made(options, message):
    with pytest.raises(lake.InvalidRequestError, match=message):
        KeyedRows(options, keyed=False)


def test_columns_that_another_engine_renamed_are_named_and_what_to_do(tmp_path):
    """Java leaves the option as it is, and from then on writes nothing itself."""
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    options = {"file-index.bitmap.columns": "v", "file-index.bsi.columns": "k"}
    table = catalog.create_table("shop.t", [("k", "INT"), ("v", "STRING")], options=options)
    table.write(pa.table({"k": [0, 1], "v": ["a", "a"]}))
    schemas = tmp_path / "shop.db" / "t" / "schema"
    renamed = json.loads((schemas / "schema-0").read_text()) | {"id": 1}
    renamed["fields"][1]["name"] = "w"
    (schemas / "schema-1").write_text(json.dumps(renamed))
    table = catalog.table("shop.t")
    row = pa.table({"k": [2], "w": ["b"]})
    message = "'file-index.bitmap.columns' names 'v', but the table has no such column.* remove it"
    for change in (
        lambda: table.write(row),
        lambda: table.delete("k = 1"),
        lambda: table.rewrite_file_indexes(),
    ):
        with pytest.raises(lake.UnsupportedError, match=message):
            change()
    catalog.alter_table("shop.t", lake.set_option("file-index.bitmap.columns", "w"))
    table = catalog.table("shop.t")
    table.write(row)
    assert table.scan(where="w = 'b'").to_arrow().to_pylist() == [{"k": 2, "w": "b"}]


@needs_golden_tables
@pytest.mark.parametrize("name", ["format-java/file_index", "format-java/file_index_embedded"])
def test_the_same_rows_and_options_give_the_same_indexes_as_in_java(name):
    golden = GOLDEN[name]
    columns = [(column["name"], column["type"]) for column in golden.expected["columns"]]
    catalog = lake.open_catalog(f"memory://{name.rpartition('/')[2]}/wh")
    catalog.create_database("shop")
    table = catalog.create_table("shop.t", columns, options=golden.expected["options"])
    java = lake.open_table(golden.location)
    table.write(java.scan().to_arrow())
    assert indexes_of(table) == indexes_of(java)
