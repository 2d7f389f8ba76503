"""New data files: their names, sizes, columns and physical types."""

from __future__ import annotations

import gc
import io
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from lakeformat.errors import InvalidRequestError, NotFoundError, UnsupportedError
from lakeformat.files.file_format import FileFormat, file_extension, format_of
from lakeformat.paimon.binary_row import decode_row, unframe_row
from lakeformat.paimon.datafile import rolling_writer
from lakeformat.paimon.datafile.file_description import FileOrigin
from lakeformat.paimon.datafile.file_statistics import key_statistics
from lakeformat.paimon.datafile.key_value_writer import KeyValueWriter
from lakeformat.paimon.datafile.reader import read_batches, read_key_values
from lakeformat.paimon.datafile.rolling_writer import ROW_GROUP_ROWS, RollingWriter
from lakeformat.paimon.datafile.system_fields import SEQUENCE_NUMBER, VALUE_KIND
from lakeformat.paimon.layout import DataFileNames
from lakeformat.paimon.metadata.data_file_meta import FileSource
from lakeformat.paimon.options import TableOptions
from lakeformat.storage.memory import MemoryStorage
from lakeformat.types.arrow_types import to_arrow_schema
from lakeformat.types.type_text import parse_type
from lakeformat.types.types import DataField

FORMATS = ["parquet", "orc", "avro"]
in_every_format = pytest.mark.parametrize("file_format", FORMATS)


def columns(*named_types):
    return tuple(DataField(n, name, parse_type(t)) for n, (name, t) in enumerate(named_types))


def new_writer(fields, storage=None, **options):
    texts = {key.replace("__", ".").replace("_", "-"): text for key, text in options.items()}
    typed = TableOptions(texts)
    names = DataFileNames(typed, "u")
    return RollingWriter(storage or MemoryStorage(), "/t", fields, typed, names.next_data)


def batch_of(fields, rows):
    table = pa.Table.from_pylist(rows, schema=to_arrow_schema(fields))
    return table.combine_chunks().to_batches()[0]


@pytest.mark.parametrize(
    ("name", "file_format"),
    [
        ("data-u-0.parquet", FileFormat.PARQUET),
        ("data-u-0.zst.parquet", FileFormat.PARQUET),
        ("data-u-0.orc", FileFormat.ORC),
        ("data-u-0.snappy.avro", FileFormat.AVRO),
        ("data-u-0.avro.gz", FileFormat.AVRO),
        ("data.with.dots-0.orc", FileFormat.ORC),
    ],
)
def test_the_format_of_a_file_is_the_ending_of_its_name(name, file_format):
    assert format_of(f"/t/bucket-0/{name}", "uri") is file_format


@pytest.mark.parametrize(
    ("compression", "extension"),
    [("zstd", "zst.orc"), ("gzip", "gz.orc"), ("lz4", "lz4.orc"), ("none", "orc")],
)
def test_the_compression_is_in_the_name_when_asked_for(compression, extension):
    assert file_extension(FileFormat.ORC, compression, include_compression=True) == extension
    assert file_extension(FileFormat.ORC, compression, include_compression=False) == "orc"


def test_data_and_changelog_files_of_a_writer_share_one_counter():
    names = DataFileNames(
        TableOptions({"changelog-file.prefix": "c-", "file.suffix.include.compression": "true"}),
        "u",
    )
    assert [names.next_changelog(), names.next_data(), names.next_data()] == [
        "c-u-0.zst.parquet",
        "data-u-1.zst.parquet",
        "data-u-2.zst.parquet",
    ]


@in_every_format
def test_a_file_that_has_reached_the_target_size_is_followed_by_another(file_format, monkeypatch):
    group = 16 * 1024
    monkeypatch.setattr(rolling_writer, "ROW_GROUP_ROWS", group)
    fields = columns(("n", "BIGINT"))
    storage = MemoryStorage()
    writer = new_writer(fields, storage, file__format=file_format, target_file_size="64 kb")
    count = 2 * group + 1
    numbers = pa.array(np.random.default_rng(1).integers(0, 2**60, count))
    writer.write(pa.RecordBatch.from_arrays([numbers], names=["n"]))
    files = writer.finish()
    assert len(files) > 1
    found = [
        batch.column(0)
        for file in files
        for batch in read_batches(storage, file.path, file_fields=fields, wanted=fields)
    ]
    assert pa.concat_arrays(found).equals(numbers)
    assert sum(file.row_count for file in files) == count


@in_every_format
def test_aborting_removes_every_file(file_format):
    fields = columns(("n", "INT"))
    storage = MemoryStorage()
    writer = new_writer(fields, storage, file__format=file_format)
    writer.write(batch_of(fields, [{"n": 1}]))
    (file,) = writer.finish()
    writer.abort()
    with pytest.raises(NotFoundError):
        storage.read(file.path)


@in_every_format
def test_a_file_given_up_half_way_is_removed_without_a_word(file_format):
    fields = columns(("n", "BIGINT"))
    storage = MemoryStorage()
    writer = new_writer(fields, storage, file__format=file_format)
    writer.write(pa.RecordBatch.from_arrays([pa.array(range(ROW_GROUP_ROWS))], names=["n"]))
    writer.abort()
    del writer
    gc.collect()
    assert storage.list("/t") == []


@pytest.mark.parametrize(
    ("file_format", "type_text"),
    [
        ("orc", "BINARY(4)"),
        ("orc", "VARBINARY(4)"),
        ("orc", "VARIANT"),
        ("orc", "MULTISET<INT>"),
        ("orc", "ARRAY<ROW<a BINARY(2)>>"),
        ("avro", "TIMESTAMP(7)"),
        ("avro", "TIMESTAMP(9) WITH LOCAL TIME ZONE"),
        ("avro", "TIME(6)"),
        ("avro", "MAP<STRING, VARIANT>"),
    ],
)
def test_a_type_that_a_format_cannot_hold_is_refused_before_anything_is_written(
    file_format, type_text
):
    with pytest.raises(UnsupportedError, match=f"{file_format} files cannot hold .*'odd'"):
        new_writer(columns(("odd", type_text)), file__format=file_format)


@pytest.mark.parametrize("fields", [columns(("a-b", "INT")), columns(("a", "ROW<`b c` INT>"))])
def test_a_name_that_avro_cannot_hold_is_refused(fields):
    with pytest.raises(UnsupportedError, match="avro files cannot hold column 'a"):
        new_writer(fields, file__format="avro")


def test_nested_columns_whose_names_lead_to_one_are_refused_by_avro():
    fields = columns(("a", "ROW<b_c ROW<x INT>>"), ("a_b", "ROW<c ROW<x INT>>"))
    writer = new_writer(fields, file__format="avro")
    writer.write(batch_of(fields, [{"a": None, "a_b": None}]))
    with pytest.raises(UnsupportedError, match="rename one"):
        writer.finish()


@pytest.mark.parametrize(
    ("file_format", "compression"),
    [
        ("parquet", "null"),
        ("parquet", "deflate"),
        ("orc", "gzip"),
        ("orc", "null"),
        ("avro", "lz4"),
        ("avro", "gzip"),
        ("avro", "none"),  # Java does not know it there
    ],
)
def test_a_compression_that_a_format_lacks_is_refused(file_format, compression):
    with pytest.raises(UnsupportedError, match=f"no compression '{compression}'"):
        new_writer(columns(("a", "INT")), file__format=file_format, file__compression=compression)


def test_a_timestamp_that_orc_readers_would_get_wrong_is_refused():
    fields = columns(("t", "TIMESTAMP(3)"))
    writer = new_writer(fields, file__format="orc")
    writer.write(batch_of(fields, [{"t": datetime(9999, 12, 31)}]))
    with pytest.raises(
        InvalidRequestError, match="column 't' has a timestamp before 1677 or after 2262"
    ):
        writer.finish()


@pytest.mark.parametrize(
    ("type_text", "around"),
    [
        ("TIMESTAMP(6)", lambda value: value),
        ("TIMESTAMP(9) WITH LOCAL TIME ZONE", lambda value: value),
        ("ROW<a ARRAY<TIMESTAMP(6)>>", lambda value: {"a": [None, value]}),
        ("MAP<TIMESTAMP(6), INT>", lambda value: [(value, 1)]),
        ("MAP<INT, TIMESTAMP(6)>", lambda value: [(1, value)]),
    ],
)
def test_a_fraction_before_1970_that_java_does_not_read_in_orc_is_refused(type_text, around):
    """In the rows that are written, not in those a slice leaves out."""
    fields = columns(("n", "INT"), ("t", type_text))
    whole, fraction = datetime(1969, 12, 31, 1, 2, 3, 1_000), datetime(1969, 12, 31, 1, 2, 3, 1)
    moments = [around(fraction), around(whole), None, around(fraction)]
    batch = batch_of(fields, [{"t": value} for value in moments])
    writer = new_writer(fields, file__format="orc")
    writer.write(batch.slice(1, 2))
    assert writer.finish()[0].row_count == 2
    writer.write(batch.slice(1))
    with pytest.raises(InvalidRequestError, match="column 't' has a timestamp before 1970 with a"):
        writer.finish()


def test_a_slice_of_rows_keeps_its_nulls_in_orc():
    fields = columns(("r", "ROW<a INT>"))
    storage = MemoryStorage()
    rows = [None, {"a": 1}, {"a": None}, None]
    writer = new_writer(fields, storage, file__format="orc")
    writer.write(batch_of(fields, [{"r": row} for row in rows]).slice(1))
    (file,) = writer.finish()
    (found,) = read_batches(storage, file.path, file_fields=fields, wanted=fields)
    assert found.column("r").to_pylist() == rows[1:]


def test_a_value_hidden_in_a_null_row_disturbs_no_other_in_orc():
    fields = columns(("r", "ROW<i ROW<a INT>>"), ("l", "ARRAY<ROW<i ROW<a INT>>>"))
    hidden = pa.array([7, 1, 8], pa.int32())
    inner = pa.StructArray.from_arrays([hidden], ["a"], mask=pa.array([True, False, True]))
    outer = pa.StructArray.from_arrays([inner], ["i"], mask=pa.array([False, False, True]))
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3]), outer)
    batch = pa.record_batch([outer, lists], ["r", "l"]).cast(to_arrow_schema(fields))
    storage = MemoryStorage()
    writer = new_writer(fields, storage, file__format="orc")
    writer.write(batch)
    (file,) = writer.finish()
    (found,) = read_batches(storage, file.path, file_fields=fields, wanted=fields)
    rows = [{"i": None}, {"i": {"a": 1}}, None]
    assert found.column("r").to_pylist() == rows
    assert found.column("l").to_pylist() == [[row] for row in rows]


def test_decimals_and_times_have_java_s_physical_types_in_parquet():
    fields = columns(("d9", "DECIMAL(9, 2)"), ("d18", "DECIMAL(18, 2)"), ("t", "TIME(3) NOT NULL"))
    storage = MemoryStorage()
    writer = new_writer(fields, storage)
    writer.write(batch_of(fields, [{"d9": None, "d18": None, "t": 1}]))
    (file,) = writer.finish()
    schema = str(pq.ParquetFile(pa.BufferReader(storage.read(file.path))).schema)
    assert "optional int32 field_id=0 d9 (Decimal" in schema
    assert "optional int64 field_id=1 d18 (Decimal" in schema
    assert "required int32 field_id=2 t (Time(isAdjustedToUTC=true, timeUnit=millis" in schema


def test_the_parts_of_a_variant_have_java_s_ids_in_parquet():
    fields = columns(("n", "INT"), ("v", "ROW<w VARIANT NOT NULL>"))
    storage = MemoryStorage()
    writer = new_writer(fields, storage)
    writer.write(batch_of(fields, [{"n": 1, "v": None}]))
    [file] = writer.finish()
    schema = str(pq.ParquetFile(io.BytesIO(storage.read(file.path))).schema)
    assert "required binary field_id=0 value" in schema
    assert "required binary field_id=1 metadata" in schema


def test_a_flipped_bit_in_a_parquet_page_is_noticed_by_readers_that_ask():
    fields = columns(("s", "STRING"))
    storage = MemoryStorage()
    writer = new_writer(fields, storage, **{"file.compression": "none"})
    writer.write(batch_of(fields, [{"s": "precious"}]))
    [file] = writer.finish()
    content = storage.read(file.path)
    assert b"precious" in content
    damaged = content.replace(b"precious", b"previous")
    with pytest.raises(OSError, match="CRC checksum verification failed"):
        pq.read_table(io.BytesIO(damaged), page_checksum_verification=True)


def test_orc_columns_carry_their_ids_nested_ones_too():
    fields = columns(("a", "ARRAY<TIME(3)>"))
    storage = MemoryStorage()
    writer = new_writer(fields, storage, file__format="orc")
    writer.write(batch_of(fields, [{"a": [1, None]}]))
    (file,) = writer.finish()
    (stored,) = orc.ORCFile(pa.BufferReader(storage.read(file.path))).schema
    assert stored.metadata == {b"paimon.id": b"0"}
    assert stored.type.value_field.metadata == {b"paimon.id": b"536870912"}
    assert stored.type.value_type == pa.int32()


FIELDS = columns(("v", "STRING"), ("k", "INT NOT NULL"), ("p", "STRING NOT NULL"))
KEY_VALUES = (SEQUENCE_NUMBER, VALUE_KIND, *FIELDS)
ROWS = [
    {"_SEQUENCE_NUMBER": 7, "_VALUE_KIND": 0, "v": "a", "k": 1, "p": "x"},
    {"_SEQUENCE_NUMBER": 9, "_VALUE_KIND": 3, "v": None, "k": 2, "p": "x"},
    {"_SEQUENCE_NUMBER": 8, "_VALUE_KIND": 1, "v": "b", "k": 3, "p": "x"},
]
ORIGIN = FileOrigin(5, datetime(2024, 1, 1), FileSource.COMPACT, level=2)


def write_key_values(storage, **options):
    typed = TableOptions({key: str(text) for key, text in options.items()})
    names = DataFileNames(typed, "u")
    writer = KeyValueWriter(storage, "/t", FIELDS, ["k"], typed, names.next_data)
    for row in ROWS:
        writer.write(batch_of(KEY_VALUES, [row]))
    return writer.finish(ORIGIN)


@in_every_format
@pytest.mark.parametrize("thin", ["true", "false"])
def test_rows_of_a_primary_key_file_come_back_with_numbers_and_kinds(file_format, thin):
    storage = MemoryStorage()
    (meta,) = write_key_values(storage, **{"file.format": file_format, "data-file.thin-mode": thin})
    path = f"/t/{meta.file_name}"
    (found,) = read_key_values(
        storage, path, file_fields=FIELDS, wanted=FIELDS, row_count=meta.row_count
    )
    assert found.schema == to_arrow_schema(KEY_VALUES)
    assert found.to_pylist() == ROWS


@in_every_format
@pytest.mark.parametrize("thin", ["true", "false"])
def test_a_manifest_knows_keys_numbers_and_deletes_of_a_primary_key_file(file_format, thin):
    (meta,) = write_key_values(
        MemoryStorage(), **{"file.format": file_format, "data-file.thin-mode": thin}
    )
    key = FIELDS[1]
    assert decode_row(unframe_row(meta.min_key)[1], [key.type]) == (1,)
    assert decode_row(unframe_row(meta.max_key)[1], [key.type]) == (3,)
    (known,) = key_statistics(meta, [key])
    assert (known.minimum, known.maximum, known.null_count) == (1, 3, 0)
    assert (meta.min_sequence_number, meta.max_sequence_number) == (7, 9)
    assert (meta.row_count, meta.delete_row_count) == (3, 2)
    assert (meta.schema_id, meta.level, meta.file_source) == (5, 2, FileSource.COMPACT)


def test_key_columns_come_first_and_thin_files_lack_them():
    for thin, expected in [("false", ["_KEY_k"]), ("true", [])]:
        storage = MemoryStorage()
        (meta,) = write_key_values(storage, **{"data-file.thin-mode": thin})
        schema = pq.ParquetFile(pa.BufferReader(storage.read(f"/t/{meta.file_name}"))).schema
        names = [schema.column(n).name for n in range(len(schema))]
        assert names == [*expected, "_SEQUENCE_NUMBER", "_VALUE_KIND", "v", "k", "p"]
