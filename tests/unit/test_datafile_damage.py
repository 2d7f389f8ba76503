"""Damaged data files: an error that names the file, or rows; never anything else."""

from __future__ import annotations

import contextlib

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakeformat.arrow_types import to_arrow_schema
from lakeformat.datafile.reader import read_batches
from lakeformat.datafile.rolling_writer import RollingWriter
from lakeformat.errors import CorruptTableError
from lakeformat.options import TableOptions
from lakeformat.storage.memory import MemoryStorage
from lakeformat.type_text import parse_type
from lakeformat.types import DataField

TYPES = ["INT", "STRING", "DECIMAL(20, 2)", "TIMESTAMP(6)", "ARRAY<INT>", "MAP<STRING, BIGINT>"]
ALL_FIELDS = tuple(DataField(n, f"c{n}", parse_type(text)) for n, text in enumerate(TYPES))
# Arrow's ORC library trusts how long a list says it is, and ends the process over a wrong one.
FIELDS = {"parquet": ALL_FIELDS, "orc": ALL_FIELDS[:-2], "avro": ALL_FIELDS}
ROWS = [
    {"c0": n, "c1": f"text {n}", "c2": n, "c3": n, "c4": [n, None], "c5": [("k", n)]}
    for n in range(20)
]
in_every_format = pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])


def content(file_format):
    """One file, not compressed: damage reaches the decoders."""
    storage = MemoryStorage()
    options = TableOptions({"file.format": file_format, "file.compression": "none"})
    fields = FIELDS[file_format]
    writer = RollingWriter(storage, "/t", fields, options, lambda: "file")
    table = pa.Table.from_pylist(ROWS, schema=to_arrow_schema(fields))
    writer.write(table.combine_chunks().to_batches()[0])
    writer.finish()
    return storage.read("/t/file")


CONTENT = {name: content(name) for name in ("parquet", "orc", "avro")}


def read(stored, file_format):
    storage = MemoryStorage()
    storage.overwrite(f"/t/data.{file_format}", bytes(stored))
    fields = FIELDS[file_format]
    batches = read_batches(
        storage, f"/t/data.{file_format}", file_fields=fields, wanted=fields, row_count=len(ROWS)
    )
    return pa.Table.from_batches(batches, schema=to_arrow_schema(fields))


@in_every_format
def test_the_file_itself_is_fine(file_format):
    assert read(CONTENT[file_format], file_format).num_rows == len(ROWS)


@in_every_format
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_a_truncated_file_is_damaged(file_format, data):
    whole = CONTENT[file_format]
    end = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(CorruptTableError, match=rf"data\.{file_format} cannot be read"):
        read(whole[:end], file_format)


@in_every_format
@given(garbage=st.binary(max_size=300))
@settings(max_examples=25, deadline=None)
def test_garbage_is_damaged(file_format, garbage):
    with pytest.raises(CorruptTableError, match=rf"data\.{file_format} cannot be read"):
        read(garbage, file_format)


@in_every_format
@given(data=st.data())
@settings(max_examples=80, deadline=None)
def test_changed_bytes_give_our_error_or_rows(file_format, data):
    changed = bytearray(CONTENT[file_format])
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(changed) - 1))
        changed[place] = data.draw(st.integers(0, 255))
    with contextlib.suppress(CorruptTableError):
        rows = read(changed, file_format)
        rows.validate()
        assert rows.schema == read(CONTENT[file_format], file_format).schema


def test_an_orc_decimal_of_impossible_precision_is_damage_and_not_the_end_of_the_process():
    stored = CONTENT["orc"]
    # In the footer: kind, length, precision and scale of DECIMAL(20, 2).
    kind = bytes([8, 14, 32, 0, 40, 20, 48, 2])
    assert stored.count(kind) == 1
    with pytest.raises(CorruptTableError, match="a decimal of a precision there is not"):
        read(stored.replace(kind, bytes([8, 14, 32, 0, 40, 50, 48, 2])), "orc")
