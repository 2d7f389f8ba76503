"""Files of records: declared sizes are checked before memory is used, errors name the place."""

from __future__ import annotations

import io
from functools import cache

import fastavro
import pyarrow as pa
import pytest
from backports import zstd

from lakeformat.errors import CorruptTableError
from lakeformat.files.avro.avro_packing import avro_number
from lakeformat.paimon.datafile.reader import read_batches
from lakeformat.paimon.metadata.record_file import decode_avro_file, encode_avro_file
from lakeformat.storage import MemoryStorage
from lakeformat.types.type_text import parse_type
from lakeformat.types.types import DataField
from tests.damage import within_bounds

NUMBER = {"type": "record", "name": "r", "fields": [{"name": "_VERSION", "type": "int"}]}
BYTES = {"type": "record", "name": "r", "fields": [{"name": "x", "type": "bytes"}]}
NOTHING = {"type": "record", "name": "nothing", "fields": [{"name": "n", "type": "null"}]}


def container(schema, count: int, body: bytes, codec: str = "null") -> bytes:
    """A file of one block with any declared sizes."""
    marker, buffer = b"S" * 16, io.BytesIO()
    fastavro.writer(buffer, fastavro.parse_schema(schema), [], codec=codec, sync_marker=marker)
    return buffer.getvalue() + avro_number(count) + avro_number(len(body)) + body + marker


def zeros(size: int) -> bytes:
    packer = zstd.ZstdCompressor()
    megabyte = bytes(1 << 20)
    parts = [packer.compress(avro_number(size))]
    parts += [packer.compress(megabyte) for _ in range(size >> 20)]
    return b"".join([*parts, packer.flush()])


def lists_of(items):
    field = {"name": "x", "type": {"type": "array", "items": items}}
    return {"type": "record", "name": "r", "fields": [field]}


BOMBS = {
    "records without fields": lambda: container(
        {"type": "record", "name": "r", "fields": []}, 20_000_000, b""
    ),
    "a block that unpacks to gigabytes": lambda: container(BYTES, 1, zeros(2 << 30), "zstandard"),
    "items that are null": lambda: container(
        lists_of("null"), 1, avro_number(50_000_000) + avro_number(0)
    ),
    "items that are records of null": lambda: container(
        lists_of(NOTHING), 1, avro_number(50_000_000) + avro_number(0)
    ),
    "items of no size": lambda: container(
        lists_of({"type": "fixed", "name": "f", "size": 0}),
        1,
        avro_number(50_000_000) + avro_number(0),
    ),
    "more records than bytes": lambda: container(NUMBER, 1 << 40, b"\0\0"),
}


@cache
def bomb_of(name: str) -> bytes:
    """Return the file; the largest takes half a second to make."""
    return BOMBS[name]()


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_few_bytes_do_not_take_the_memory(bomb):
    content = bomb_of(bomb)
    with within_bounds(), pytest.raises(CorruptTableError, match=r"f .* is not a readable Avro"):
        decode_avro_file(content, "f")


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_few_bytes_of_a_data_file_do_not_take_the_memory(bomb):
    storage, field = MemoryStorage("bombs"), DataField(0, "x", parse_type("BYTES"))
    storage.overwrite("data.avro", bomb_of(bomb))
    with within_bounds(), pytest.raises(CorruptTableError, match=r"data\.avro cannot be read"):
        list(read_batches(storage, "data.avro", file_fields=(field,), wanted=(field,)))


def test_the_version_is_checked_before_the_next_record_is_read():
    content = container(NUMBER, 3, avro_number(2) + avro_number(3) + b"\xff")
    with pytest.raises(
        CorruptTableError, match=r"format version 3, but this library reads 2: .*newer"
    ):
        decode_avro_file(content, "f", version=2)


def test_a_version_that_was_never_written_is_no_reason_to_upgrade():
    content = container(NUMBER, 1, avro_number(1))
    with pytest.raises(CorruptTableError, match=r"format version 1, .*; restore"):
        decode_avro_file(content, "f", version=2)


def some_blocks() -> bytes:
    buffer = io.BytesIO()
    records = ({"x": b"v" * 8} for _ in range(3))
    fastavro.writer(buffer, fastavro.parse_schema(BYTES), records, "null", 1)
    return buffer.getvalue()


WHOLE = some_blocks()
START = len(WHOLE) - 3 * (1 + 1 + 9 + 16)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"PAR1" + WHOLE[4:], r"not an Avro file: it starts with b'PAR1' instead of b'Obj\x01'"),
        (b"", r"it starts with b''"),
        (WHOLE[:-1], f"block 2 at byte {START + 54}"),
        (WHOLE[: START + 30], f"block 1 at byte {START + 27}"),
        (WHOLE[: START + 29] + b"\x7f" + WHOLE[START + 30 :], f"block 1 at byte {START + 27}"),
    ],
)
def test_an_error_says_where_a_file_is_damaged_and_repeats_none_of_it(content, told):
    storage, field = MemoryStorage("places"), DataField(0, "x", parse_type("BYTES"))
    storage.overwrite("data.avro", content)
    with pytest.raises(CorruptTableError) as metadata:
        decode_avro_file(content, "f")
    with pytest.raises(CorruptTableError) as rows:
        list(read_batches(storage, "data.avro", file_fields=(field,), wanted=(field,)))
    for caught in (metadata, rows):
        assert told in str(caught.value)
        assert len(str(caught.value)) < 400
        assert "NotPlainError" not in str(caught.value)


@pytest.mark.parametrize("codec", ["null", "deflate", "snappy", "zstandard", "bzip2", "xz"])
def test_every_codec_is_unpacked_for_records_and_for_rows(codec):
    storage, field = MemoryStorage("codecs"), DataField(0, "x", parse_type("BYTES"))
    records = [{"x": bytes([number])} for number in range(100)]
    buffer = io.BytesIO()
    fastavro.writer(buffer, fastavro.parse_schema(BYTES), records, codec, 64)
    assert decode_avro_file(buffer.getvalue(), "f") == records
    storage.overwrite("data.avro", buffer.getvalue())
    batches = read_batches(storage, "data.avro", file_fields=(field,), wanted=(field,))
    assert pa.Table.from_batches(batches).to_pylist() == records


def test_what_is_written_reads_back():
    records = [{"_VERSION": 2}] * 3
    content = encode_avro_file(NUMBER, records, compression="zstd", zstd_level=1)
    assert decode_avro_file(content, "f", version=2) == records
