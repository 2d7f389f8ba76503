"""Damaged data files: an error that names the file, or rows; never anything else."""

from __future__ import annotations

import contextlib
import gc
import io

import fastavro
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakeformat.errors import CorruptTableError, UnsupportedError
from lakeformat.files.avro.avro_container import _read_header
from lakeformat.files.parquet.sound_footer import require_sound_footer
from lakeformat.paimon.datafile.reader import read_batches
from lakeformat.paimon.datafile.rolling_writer import RollingWriter
from lakeformat.paimon.options import TableOptions
from lakeformat.storage.memory import MemoryStorage
from lakeformat.types.arrow_types import to_arrow_schema
from lakeformat.types.type_text import parse_type
from lakeformat.types.types import DataField
from tests.damage import damaged, fuzzed, within_bounds

TYPES = ["INT", "STRING", "DECIMAL(20, 2)", "TIMESTAMP(6)", "ARRAY<INT>", "MAP<STRING, BIGINT>"]
FIELDS = tuple(DataField(n, f"c{n}", parse_type(text)) for n, text in enumerate(TYPES))
ROWS = [
    {"c0": n, "c1": f"text {n}", "c2": n, "c3": n, "c4": [n, None], "c5": [("k", n)]}
    for n in range(20)
]
in_every_format = pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])


def content(file_format, compression=None):
    """One file; not compressed, damage reaches the decoders."""
    storage = MemoryStorage()
    compression = compression or ("null" if file_format == "avro" else "none")
    options = TableOptions({"file.format": file_format, "file.compression": compression})
    fields = FIELDS
    writer = RollingWriter(storage, "/t", fields, options, lambda: "file")
    table = pa.Table.from_pylist(ROWS, schema=to_arrow_schema(fields))
    writer.write(table.combine_chunks().to_batches()[0])
    writer.finish()
    return storage.read("/t/file")


def without_checksums(stored):
    sink = io.BytesIO()
    pq.write_table(pq.read_table(io.BytesIO(stored)), sink, compression="none")
    return sink.getvalue()


CONTENT = {name: content(name) for name in ("parquet", "orc", "avro")}
WITHOUT_CHECKSUMS = without_checksums(CONTENT["parquet"])
"""Else they are what notices."""
COMPRESSED = {name: content(name, "zstd") for name in CONTENT}


def read(stored, file_format, fields=FIELDS, **choice):
    storage = MemoryStorage()
    storage.overwrite(f"/t/data.{file_format}", bytes(stored))
    batches = read_batches(
        storage,
        f"/t/data.{file_format}",
        file_fields=fields,
        wanted=fields,
        row_count=len(ROWS),
        **choice,
    )
    return pa.Table.from_batches(batches, schema=to_arrow_schema(fields))


@in_every_format
def test_the_file_itself_is_fine(file_format):
    assert read(CONTENT[file_format], file_format).num_rows == len(ROWS)


def test_a_page_of_parquet_that_is_not_what_was_written_is_found_by_its_checksum():
    sink = io.BytesIO()
    rows = pq.read_table(io.BytesIO(CONTENT["parquet"]))
    pq.write_table(rows, sink, compression="none", write_page_checksum=True)
    stored = sink.getvalue().replace(b"text 7", b"text 8")
    with pytest.raises(CorruptTableError, match=r"data\.parquet cannot be read: .*checksum"):
        read(stored, "parquet")


def test_a_file_that_lost_whole_blocks_of_avro_is_damaged():
    buffer = io.BytesIO()
    kind = {"type": "record", "name": "r", "fields": [{"name": "c0", "type": "int"}]}
    with_many_blocks = ({"c0": n} for n in range(20))
    fastavro.writer(buffer, fastavro.parse_schema(kind), with_many_blocks, sync_interval=1)
    stored = buffer.getvalue()
    [field] = [field for field in FIELDS if field.name == "c0"]
    assert read(stored, "avro", (field,)).num_rows == len(ROWS)
    _, start = _read_header(stored)
    [*ends] = [n for n in range(start, len(stored)) if stored[n - 16 : n] == stored[-16:]]
    assert len(ends) == len(ROWS)
    for end in ends:
        with pytest.raises(
            CorruptTableError, match=r"data\.avro .* ends after [\d,]+ rows?|has no rows"
        ):
            read(stored[:end], "avro", (field,))


@in_every_format
@given(data=st.data())
@fuzzed(25)
def test_a_truncated_file_is_damaged(file_format, data):
    whole = CONTENT[file_format]
    end = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(CorruptTableError, match=rf"data\.{file_format} cannot be read"):
        read(whole[:end], file_format)


@in_every_format
@given(garbage=st.binary(max_size=300))
@fuzzed(25)
def test_a_file_of_garbage_is_named_as_one_that_cannot_be_read(file_format, garbage):
    with pytest.raises(CorruptTableError, match=rf"data\.{file_format} cannot be read"):
        read(garbage, file_format)


@in_every_format
@pytest.mark.parametrize("compression", ["none", "zstd"])
@given(data=st.data())
@fuzzed(80)
def test_changed_bytes_give_our_error_or_rows(file_format, compression, data):
    whole = CONTENT[file_format] if compression == "none" else COMPRESSED[file_format]
    changed = data.draw(damaged(whole))
    with within_bounds(), contextlib.suppress(CorruptTableError, UnsupportedError):
        rows = read(changed, file_format)
        rows.validate(full=True)
        assert rows.num_rows == len(ROWS)
        assert rows.schema == read(CONTENT[file_format], file_format).schema


def ask_everything(footer, columns):
    """Select all row groups, but only after reading the whole footer."""
    assert footer.size_bytes(range(len(footer)), columns) > 0
    for field in to_arrow_schema(FIELDS):
        footer.nulls(field.name)
        footer.bounds(field.name, field.type)
    return pc.greater(footer.rows, -1).to_numpy(zero_copy_only=False)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("bit", [1 << n for n in range(8)])
def test_no_changed_bit_of_a_footer_of_parquet_ends_the_process(bit):
    """pyarrow would end it where it describes a column chunk that contradicts the schema."""
    stored = CONTENT["parquet"]
    length = int.from_bytes(stored[-8:-4], "little")
    asked = {"pick": ask_everything, "encoded": ("c1",)}
    expected = read(stored, "parquet", **asked)
    refused = 0
    for place in range(len(stored) - 8 - length, len(stored)):
        changed = bytearray(stored)
        changed[place] ^= bit
        try:
            found = read(changed, "parquet", **asked)
        except CorruptTableError:
            refused += 1
        else:
            assert found.num_rows == expected.num_rows
    assert refused > length // 4


def test_nothing_of_a_file_stays_behind_whose_footer_was_looked_at():
    """A reference would keep the whole footer of every file in memory."""
    stored = CONTENT["parquet"]
    footer = pq.ParquetFile(io.BytesIO(stored)).metadata
    gc.collect()
    before = readers()
    require_sound_footer(footer, len(stored))
    gc.collect()
    assert readers() == before


def readers():
    return sum(isinstance(held, pq.ParquetFile) for held in gc.get_objects())


def test_an_orc_decimal_of_impossible_precision_is_damage_and_not_the_end_of_the_process():
    stored = CONTENT["orc"]
    # In the footer: kind, length, precision and scale of DECIMAL(20, 2).
    kind = bytes([8, 14, 32, 0, 40, 20, 48, 2])
    assert stored.count(kind) == 1
    with pytest.raises(CorruptTableError, match="a decimal has an invalid precision"):
        read(stored.replace(kind, bytes([8, 14, 32, 0, 40, 50, 48, 2])), "orc")


def stored_as(arrays, compression):
    stream = io.BytesIO()
    orc.write_table(pa.table(arrays), stream, compression=compression)
    return stream.getvalue()


TEXT, LISTS = pa.array(["abcdef"] * 20), pa.array([[n, n] for n in range(20)])
FALLING = {
    # Twenty lengths as a first one and equal steps of none: the last byte makes them steps down.
    "text": ({"c": TEXT}, bytes([0xC0, 19, 6, 0]), "STRING"),
    "list": ({"c": LISTS}, bytes([0xC0, 19, 2, 0]), "ARRAY<BIGINT>"),
    "map": (
        {"c": pa.array([[("k", n), ("l", n)] for n in range(20)], pa.map_("string", "int64"))},
        bytes([0xC0, 19, 2, 0]),
        "MAP<STRING, BIGINT>",
    ),
}


@pytest.mark.parametrize("kind", FALLING)
def test_a_negative_length_in_an_orc_file_is_damage_and_not_the_end_of_the_process(kind):
    arrays, run, data_type = FALLING[kind]
    stored = stored_as(arrays, "uncompressed")
    assert stored.count(run) == 1
    fields = (DataField(0, "c", parse_type(data_type)),)
    assert len(read(stored, "orc", fields)["c"]) == 20
    with pytest.raises(
        CorruptTableError, match=r"data\.orc .* stripe at offset 3 .* a length of -"
    ):
        read(stored.replace(run, run[:3] + b"\x03"), "orc", fields)


def test_a_huge_length_in_an_orc_file_asks_for_no_memory():
    stored = stored_as({"c": LISTS}, "uncompressed")
    run = bytes([0xC0, 19, 2, 0])
    # Ten times a number of three bytes.
    huge = stored.replace(run, bytes([0x17, 127, 255, 255]))
    fields = (DataField(0, "c", parse_type("ARRAY<BIGINT>")),)
    with within_bounds(), pytest.raises(CorruptTableError, match="lengths whose sum is 83886070"):
        read(huge, "orc", fields)


@in_every_format
def test_a_text_that_is_no_text_is_damage(file_format):
    stored = WITHOUT_CHECKSUMS if file_format == "parquet" else CONTENT[file_format]
    assert b"text 7" in stored
    with pytest.raises(CorruptTableError, match=r"data\..* cannot be read: .*(UTF8|utf-8)"):
        read(stored.replace(b"text 7", b"text\xff7"), file_format)


@in_every_format
def test_a_column_that_a_file_lacks_is_named_in_one_line(file_format):
    other = (*FIELDS[:1], DataField(9, "lost", parse_type("INT")))
    told = r"cannot be read: it lacks the column 'lost' .* its columns are 'c0', .*'c5'; restore"
    with pytest.raises(CorruptTableError, match=told) as caught:
        read(CONTENT[file_format], file_format, other)
    assert "\n" not in str(caught.value)
