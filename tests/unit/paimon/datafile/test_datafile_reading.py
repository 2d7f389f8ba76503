"""Rows of data files under a newer schema, in every format."""

from __future__ import annotations

import io
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from lakeformat.errors import CorruptTableError, InvalidRequestError, UnsupportedError
from lakeformat.files.orc.footer import find_far_timestamps
from lakeformat.files.orc.tail import read_tail
from lakeformat.files.parquet.reader import FEW_ROWS
from lakeformat.paimon.datafile.reader import read_batches
from lakeformat.paimon.datafile.rolling_writer import RollingWriter
from lakeformat.paimon.options import TableOptions
from lakeformat.storage.memory import MemoryStorage
from lakeformat.types.arrow_types import to_arrow_schema
from lakeformat.types.type_text import parse_type
from lakeformat.types.types import DataField, RowType

FORMATS = ["parquet", "orc", "avro"]
in_every_format = pytest.mark.parametrize("file_format", FORMATS)


def columns(*named_types):
    """Fields numbered in order; a name may carry its id, as in ``price#7``."""
    fields = []
    for position, (name, text) in enumerate(named_types):
        name, _, number = name.partition("#")
        fields.append(DataField(int(number or position), name, parse_type(text)))
    return tuple(fields)


def row_of(*named_types):
    return RowType(columns(*named_types))


def write(rows, fields, file_format="parquet", **options):
    """The storage and path of one file with these rows."""
    storage = MemoryStorage()
    table = pa.Table.from_pylist(rows, schema=to_arrow_schema(fields))
    writer = RollingWriter(
        storage,
        "/t",
        fields,
        TableOptions({"file.format": file_format, **options}),
        lambda: f"data-0.{file_format}",
    )
    for batch in table.to_batches():
        writer.write(batch)
    (file,) = writer.finish()
    return storage, file.path


def read(place, fields, wanted, **more):
    storage, path = place
    batches = read_batches(storage, path, file_fields=fields, wanted=wanted, **more)
    return pa.Table.from_batches(batches, schema=to_arrow_schema(wanted)).to_pylist()


@in_every_format
def test_columns_are_found_by_id_under_the_name_they_had(file_format):
    old = columns(("a#1", "INT"), ("gone#2", "INT"))
    place = write([{"a": 1, "gone": 9}], old, file_format)
    new = columns(("gone#5", "INT"), ("renamed#1", "BIGINT"))
    assert read(place, old, new) == [{"gone": None, "renamed": 1}]


@in_every_format
def test_only_columns_that_were_added_later_still_have_every_row(file_format):
    old = columns(("a#1", "INT"))
    place = write([{"a": 1}, {"a": 2}], old, file_format)
    assert read(place, old, columns(("b#2", "STRING"))) == [{"b": None}] * 2


@in_every_format
def test_nested_rows_change_field_by_field(file_format):
    old = (DataField(0, "r", row_of(("x#1", "INT"), ("y#2", "STRING"))),)
    new = (DataField(0, "r", row_of(("z#3", "DATE"), ("was_x#1", "STRING"))),)
    rows = [{"r": {"x": 1, "y": "a"}}, {"r": None}, {"r": {"x": None, "y": None}}]
    assert read(write(rows, old, file_format), old, new) == [
        {"r": {"z": None, "was_x": "1"}},
        {"r": None},
        {"r": {"z": None, "was_x": None}},
    ]


@in_every_format
def test_elements_and_map_values_are_cast_where_they_are(file_format):
    old = columns(("a", "ARRAY<INT>"), ("m", "MAP<STRING, ARRAY<INT>>"))
    new = columns(("a", "ARRAY<BIGINT>"), ("m", "MAP<STRING, ARRAY<DECIMAL(9, 1)>>"))
    rows = [
        {"a": [1, None], "m": [("k", [2])]},
        {"a": None, "m": None},
        {"a": [], "m": [("k", None), ("l", [])]},
    ]
    found = read(write(rows, old, file_format), old, new)
    assert [row["a"] for row in found] == [[1, None], None, []]
    assert str(found[0]["m"][0][1][0]) == "2.0"
    assert found[2]["m"] == [("k", None), ("l", [])]


def test_map_keys_never_change():
    old, new = columns(("m", "MAP<INT, INT>")), columns(("m", "MAP<BIGINT, INT>"))
    with pytest.raises(UnsupportedError, match=r"column 'm' of .*data-0.parquet: the keys of"):
        read(write([{"m": [(1, 2)]}], old), old, new)


def test_a_value_that_cannot_be_cast_names_the_column_and_the_file():
    old, new = columns(("a", "STRING")), columns(("a", "INT"))
    with pytest.raises(
        InvalidRequestError,
        match=r"column 'a' of memory:.*'x' is not a valid INT. .*back to STRING",
    ):
        read(write([{"a": "x"}], old), old, new)


@in_every_format
def test_a_range_of_rows_and_a_mask_are_positions_in_the_file(file_format):
    fields = columns(("n", "INT"))
    place = write([{"n": n} for n in range(100)], fields, file_format)

    def is_even(start, count):
        return np.arange(start, start + count) % 2 == 0

    found = read(place, fields, fields, rows=range(10, 21), keep=is_even, batch_rows=7)
    assert [row["n"] for row in found] == [10, 12, 14, 16, 18, 20]


def test_row_groups_outside_the_range_are_not_read():
    table = pa.table({"n": pa.array(range(1000), pa.int32())})
    storage = MemoryStorage()
    with storage.open_output("/t/a.parquet") as stream:
        pq.write_table(table, stream, row_group_size=100, compression="none")
    damaged = bytearray(storage.read("/t/a.parquet"))
    damaged[4:60] = bytes(56)  # the first row group
    storage.overwrite("/t/a.parquet", bytes(damaged))
    fields = columns(("n", "INT"))
    found = read((storage, "/t/a.parquet"), fields, fields, rows=range(500, 502))
    assert [row["n"] for row in found] == [500, 501]


@in_every_format
def test_columns_that_a_partial_file_lacks_are_null(file_format):
    fields = columns(("a", "INT"), ("b", "INT"))
    place = write([{"a": 1}], fields[:1], file_format)
    assert read(place, fields, fields, write_cols=("a",)) == [{"a": 1, "b": None}]


@in_every_format
def test_a_file_with_another_number_of_rows_than_its_manifest_says_is_damaged(file_format):
    fields = columns(("n", "INT"))
    place = write([{"n": 1}, {"n": 2}], fields, file_format)
    for count in (1, 3):
        with pytest.raises(CorruptTableError, match=f"the manifest records {count}"):
            read(place, fields, fields, row_count=count)


@in_every_format
def test_a_file_that_lacks_a_column_of_its_own_schema_is_damaged(file_format):
    fields = columns(("a", "INT"))
    place = write([{"a": 1}], fields, file_format)
    with pytest.raises(CorruptTableError, match=r"data-0\.\w+ cannot be read"):
        read(place, columns(("b", "INT")), columns(("b", "INT")))


@pytest.mark.parametrize(
    ("stored", "wanted"),
    [
        ("STRING", "INT"),
        ("INT", "STRING"),
        ("INT", "BOOLEAN"),
        ("BOOLEAN", "INT"),
        ("INT", "ROW<a INT>"),
    ],
)
def test_a_column_of_another_kind_than_its_schema_says_is_damage_and_no_cast(stored, wanted):
    place = write([{"a": None}], columns(("a", stored)))
    with pytest.raises(CorruptTableError, match=r"column 'a': values of type .* are stored as"):
        read(place, columns(("a", wanted)), columns(("a", wanted)))


@pytest.mark.parametrize("name", ["data-0.csv", "data-0.lance", "data-0", "data-0.json.gz"])
def test_a_file_of_another_format_is_refused_by_its_name(name):
    with pytest.raises(UnsupportedError, match=f"{name} has .*parquet, orc, avro"):
        list(read_batches(MemoryStorage(), f"/t/{name}", file_fields=(), wanted=()))


def test_a_missing_file_says_what_may_have_happened():
    fields = columns(("a", "INT"))
    with pytest.raises(CorruptTableError, match="just expired, scan again"):
        read((MemoryStorage(), "/t/data-0.avro"), fields, fields)


def store_parquet(table, **how):
    storage = MemoryStorage()
    with storage.open_output("/t/a.zst.parquet") as stream:
        pq.write_table(table, stream, **how)
    return storage, "/t/a.zst.parquet"


def test_a_shredded_variant_is_refused_by_column():
    parts = [("metadata", pa.binary()), ("value", pa.binary()), ("typed_value", pa.int64())]
    rows = pa.array([{"metadata": b"\1\0\0", "value": None, "typed_value": 3}], pa.struct(parts))
    place = store_parquet(pa.table({"v": rows}))
    fields = columns(("v", "VARIANT"))
    with pytest.raises(UnsupportedError, match=r"column 'v' of .* shredded"):
        read(place, fields, fields)


def test_nanoseconds_as_int96_are_read_before_1970_too():
    counts = [0, -1, 1_700_000_000_123_456_789, -1_700_000_000_123_456_789, None]
    rows = pa.table({"t": pa.array(counts, pa.timestamp("ns"))})
    place = store_parquet(rows, use_deprecated_int96_timestamps=True)
    for text in ("TIMESTAMP(9)", "TIMESTAMP(9) WITH LOCAL TIME ZONE"):
        fields = columns(("t", text))
        (batch,) = read_batches(*place, file_fields=fields, wanted=fields)
        assert batch.column("t").cast(pa.int64()).to_pylist() == counts


@pytest.mark.parametrize("is_integer", [True, False])
@pytest.mark.parametrize("precision", [9, 18, 19])
def test_decimals_are_read_from_every_physical_type(precision, is_integer):
    fields = columns(("d", f"DECIMAL({precision}, 2)"))
    texts = pa.array(["1.50", "-0.01", None, "9" * (precision - 2) + ".99"])
    rows = pa.table({"d": texts.cast(pa.decimal128(precision, 2))})
    place = store_parquet(rows, store_decimal_as_integer=is_integer)
    (batch,) = read_batches(*place, file_fields=fields, wanted=fields)
    assert batch.column("d").equals(rows.column("d").combine_chunks())


def test_bytes_of_fixed_length_are_bytes():
    place = store_parquet(pa.table({"b": pa.array([b"abcd", None], pa.binary(4))}))
    fields = columns(("b", "BINARY(4)"))
    assert read(place, fields, fields) == [{"b": b"abcd"}, {"b": None}]


def test_orc_timestamps_come_in_nanoseconds_and_times_as_numbers():
    storage = MemoryStorage()
    rows = pa.table(
        {
            "t": pa.array([-1, 1_999_999], pa.timestamp("ns")),
            "c": pa.array([3_723_004, None], pa.int32()),
        }
    )
    with storage.open_output("/t/a.orc") as stream:
        orc.write_table(rows, stream)
    fields = columns(("t", "TIMESTAMP(3)"), ("c", "TIME(0)"))
    (batch,) = read_batches(storage, "/t/a.orc", file_fields=fields, wanted=fields)
    assert batch.column("t").cast(pa.int64()).to_pylist() == [-1, 1]
    assert batch.column("c").cast(pa.int32()).to_pylist() == [3_723_004, None]


def test_a_batch_has_no_more_rows_than_asked_for():
    fields = columns(("n", "INT"))
    for file_format in FORMATS:
        place = write([{"n": n} for n in range(5000)], fields, file_format)
        batches = read_batches(*place, file_fields=fields, wanted=fields, batch_rows=700)
        assert max(batch.num_rows for batch in batches) <= 700


@pytest.mark.parametrize(("more", "in_threads"), [(0, False), (1, True)])
def test_only_large_files_are_decoded_in_several_threads(more, in_threads, monkeypatch):
    rows = FEW_ROWS + more
    place = store_parquet(pa.table({"n": np.arange(rows, dtype=np.int32)}))
    asked = []
    iter_batches = pq.ParquetFile.iter_batches

    def spy(file, *arguments, use_threads=True, **more):
        asked.append(use_threads)
        return iter_batches(file, *arguments, use_threads=use_threads, **more)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", spy)
    fields = columns(("n", "INT"))
    assert [row["n"] for row in read(place, fields, fields)] == list(range(rows))
    assert asked == [in_threads]


@pytest.mark.parametrize("year", [1, 1600, 2600, 9999])
def test_timestamps_beyond_nanoseconds_are_refused_and_not_read_wrongly(year):
    values = pa.array([datetime(2024, 1, 1), None, datetime(year, 12, 31)], pa.timestamp("us"))
    rows = pa.table({"n": [1, 2, 3], "t": values})
    parquet = store_parquet(rows, use_deprecated_int96_timestamps=True)
    orc_storage = MemoryStorage()
    with orc_storage.open_output("/t/a.orc") as stream:
        orc.write_table(rows, stream, compression="zstd")
    fields = columns(("n", "BIGINT"), ("t", "TIMESTAMP(9)"))
    for place in (parquet, (orc_storage, "/t/a.orc")):
        with pytest.raises(
            UnsupportedError, match=r"/t/a\..*column 't' (holds INT96|has) timestamps before"
        ):
            read(place, fields, fields)
        assert read(place, fields, fields[:1]) == [{"n": 1}, {"n": 2}, {"n": 3}]


@pytest.mark.parametrize("year", [1500, 1950, 2020, 9999])
@pytest.mark.parametrize(
    ("type_text", "around"),
    [
        ("ROW<t TIMESTAMP(9)>", lambda value: {"t": value}),
        ("ARRAY<TIMESTAMP(9)>", lambda value: [None, value]),
        ("MAP<INT, TIMESTAMP(9)>", lambda value: [(1, value)]),
        ("ARRAY<ROW<n INT, m MAP<INT, TIMESTAMP(9)>>>", lambda v: [{"n": 1, "m": [(1, v)]}]),
    ],
)
def test_nested_timestamps_beyond_nanoseconds_are_refused_as_well(type_text, around, year):
    fields = columns(("n", "BIGINT"), ("c", type_text))
    value = datetime(year, 12, 31)
    kind = to_arrow_schema(columns(("c", type_text.replace("(9)", "(6)")))).types[0]
    rows = pa.table({"n": [1, 2], "c": pa.array([None, around(value)], kind)})
    place = store_parquet(rows, use_deprecated_int96_timestamps=True)
    if 1677 < year < 2262:
        assert read(place, fields, fields) == rows.to_pylist()
    else:
        with pytest.raises(UnsupportedError, match="column 'c' holds INT96 timestamps before 1677"):
            read(place, fields, fields)
    assert read(place, fields, fields[:1]) == [{"n": 1}, {"n": 2}]


@pytest.mark.parametrize("compression", ["uncompressed", "zlib", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("width", [1, 300])
def test_footers_of_orc_files_are_read_in_every_compression(compression, width):
    far = pa.array([[datetime(9999, 12, 31)]], pa.list_(pa.timestamp("ms")))
    names = [f"a rather long name of a column {n}" for n in range(width)]
    content = io.BytesIO()
    orc.write_table(
        pa.table([*[pa.array([1])] * width, far], names=[*names, "t"]),
        content,
        compression=compression,
    )
    tail = read_tail(content)
    assert find_far_timestamps(tail, [*names, "t"]) == "t"
    assert find_far_timestamps(tail, names) is None
