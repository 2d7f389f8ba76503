"""Key columns stand in a Parquet file twice and are encoded once; nobody can see that."""

from __future__ import annotations

import errno
import io
import os
import tracemalloc
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakeformat.arrow_types import to_arrow_schema
from lakeformat.binary_row import values_to_arrow
from lakeformat.datafile import parquet_writer
from lakeformat.datafile.column_statistics import reduce_statistics
from lakeformat.datafile.file_writer import FileContent
from lakeformat.datafile.key_order import KeyOrder, Keys
from lakeformat.datafile.parquet_writer import ParquetFileWriter
from lakeformat.datafile.repeated_columns import RepeatedColumn, repeated_columns
from lakeformat.datafile.repeated_pages import CopiedPages, RepeatingStream
from lakeformat.datafile.rolling_writer import ROW_GROUP_ROWS, RollingWriter
from lakeformat.datafile.statistics_modes import column_modes
from lakeformat.datafile.system_fields import SEQUENCE_NUMBER, VALUE_KIND, key_field
from lakeformat.errors import InvalidRequestError
from lakeformat.options import TableOptions
from lakeformat.storage import MemoryStorage
from lakeformat.type_text import parse_type
from lakeformat.types import DataField

GROUP = 50_000
"""Rows of which a column fills several pages."""
ENOUGH = 1_000_000
"""Rows with which it is worth it whatever the columns are; it depends on nothing else."""


def content_of(columns, keys, **options):
    """The files of a table with these columns, by name and type, and this primary key."""
    types = {name: parse_type(kind) for name, kind in columns.items()}
    by_name = {name: DataField(n, name, types[name]) for n, name in enumerate(types)}
    system = (SEQUENCE_NUMBER, VALUE_KIND)
    stored = (
        *(key_field(by_name[key]) for key in keys),
        *system,
        *by_name.values(),
    )
    typed = TableOptions({name.replace("__", "."): text for name, text in options.items()})
    modes = column_modes([field.name for field in stored], typed)
    return FileContent(stored, modes, typed, tuple(keys))


def rows_of(content, columns, rows):
    """Rows of a file, given what the columns of the table hold."""
    system = {"_SEQUENCE_NUMBER": [*range(rows)], "_VALUE_KIND": [0] * rows}
    values = [
        columns[field.name.removeprefix("_KEY_")]
        if field.name not in system
        else system[field.name]
        for field in content.fields
    ]
    arrays = [values_to_arrow(v, f.type) for v, f in zip(values, content.fields, strict=True)]
    return pa.table(arrays, schema=to_arrow_schema(content.fields))


def write(content, groups, stream=None):
    """The bytes of a file, and what is kept of its columns."""
    stream = stream or io.BytesIO()
    writer = ParquetFileWriter(stream, content, ENOUGH)
    try:
        for rows in groups:
            writer.write(rows)
        statistics = writer.close()
    finally:
        writer.discard()
    return stream.getvalue(), [*map(reduce_statistics, statistics, content.modes)]


def assert_as_arrow_writes_it(monkeypatch, content, groups):
    """The same file, to the last byte, as one all of whose columns Arrow has encoded."""
    assert repeated_columns(content, ENOUGH)
    found = write(content, groups)
    with monkeypatch.context() as all_encoded:
        all_encoded.setattr(parquet_writer, "repeated_columns", lambda *_: [])
        assert found == write(content, groups)


NUMBERS = [*range(GROUP)]
TEXTS = [f"key-{number:07}-{number * number:x}" for number in NUMBERS]
FEW = [f"shop {number // 10_000}" for number in NUMBERS]
HALVES = [number / 2 if number % 7 else None for number in NUMBERS]


@pytest.mark.parametrize(
    ("columns", "keys", "values"),
    [
        pytest.param(
            {"k": "BIGINT NOT NULL", "v": "DOUBLE"}, ["k"], {"k": NUMBERS, "v": HALVES}, id="number"
        ),
        pytest.param(
            {"k": "STRING NOT NULL", "v": "DOUBLE"}, ["k"], {"k": TEXTS, "v": HALVES}, id="text"
        ),
        pytest.param(
            {"few": "STRING NOT NULL", "n": "INT NOT NULL", "v": "DOUBLE"},
            ["few", "n"],
            {"few": FEW, "n": NUMBERS, "v": HALVES},
            id="dictionary",
        ),
        pytest.param(
            {"v": "DOUBLE", "n": "INT NOT NULL", "w": "DOUBLE", "few": "STRING NOT NULL"},
            ["few", "n"],
            {"few": FEW, "n": NUMBERS, "v": HALVES, "w": HALVES},
            id="in-another-order-between-others",
        ),
        pytest.param(
            {"k": "INT NOT NULL", "list": "ARRAY<INT>", "row": "ROW<a INT, b STRING>"},
            ["k"],
            {"k": NUMBERS, "list": [[n] * (n % 3) for n in NUMBERS], "row": [None] * GROUP},
            id="nested-behind",
        ),
        pytest.param(
            {"at": "TIMESTAMP(9) NOT NULL", "k": "BIGINT NOT NULL", "v": "TIMESTAMP(9)"},
            ["at", "k"],
            {"at": NUMBERS, "k": NUMBERS, "v": NUMBERS},
            id="int96",
        ),
        pytest.param(
            {"k": "DECIMAL(38, 2) NOT NULL", **{f"c{n}": "DOUBLE" for n in range(20)}},
            ["k"],
            {"k": [Decimal(n) for n in NUMBERS], **{f"c{n}": HALVES for n in range(20)}},
            id="many-columns",
        ),
    ],
)
def test_a_file_is_the_one_that_arrow_writes_of_all_columns(monkeypatch, columns, keys, values):
    content = content_of(columns, keys)
    rows = rows_of(content, values, GROUP)
    groups = [rows, rows.slice(0, 30_000), rows.slice(7, 1)]
    assert_as_arrow_writes_it(monkeypatch, content, groups)


@pytest.mark.parametrize("compression", ["none", "snappy", "gzip", "zstd"])
def test_whatever_compresses_the_pages(monkeypatch, compression):
    content = content_of(
        {"k": "BIGINT NOT NULL", "v": "DOUBLE"}, ["k"], file__compression=compression
    )
    rows = rows_of(content, {"k": NUMBERS, "v": HALVES}, GROUP)
    assert_as_arrow_writes_it(monkeypatch, content, [rows, rows])


def test_a_file_of_more_row_groups_than_a_short_list_has(monkeypatch):
    content = content_of({"k": "BIGINT NOT NULL", "v": "DOUBLE"}, ["k"])
    rows = rows_of(content, {"k": NUMBERS, "v": HALVES}, GROUP)
    assert_as_arrow_writes_it(monkeypatch, content, [rows.slice(n, 100) for n in range(40)])


def test_a_file_of_no_rows(monkeypatch):
    content = content_of({"k": "BIGINT NOT NULL", "v": "DOUBLE"}, ["k"])
    assert_as_arrow_writes_it(monkeypatch, content, [])


def test_a_file_of_more_columns_than_a_byte_counts(monkeypatch):
    others = {f"c{n}": "INT" for n in range(140)}
    content = content_of({**others, "k": "BIGINT NOT NULL"}, ["k"])
    values = {name: [1, 2, 3] for name in [*others, "k"]}
    assert_as_arrow_writes_it(monkeypatch, content, [rows_of(content, values, 3)] * 2)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("TINYINT", [-1, 0, 1]),
        ("SMALLINT", [-1, 0, 1]),
        ("BOOLEAN", [False, True, True]),
        ("FLOAT", [-0.0, 0.0, float("nan")]),
        ("DOUBLE", [float("nan"), -0.0, 0.0]),
        ("DATE", [-1, 0, 1]),
        ("TIME(3)", [0, 1, 2]),
        ("CHAR(3)", ["", "a", "\U0001f600"]),
        ("BYTES", [b"", b"\xff", b"\xff\xff"]),
        ("DECIMAL(9, 2)", [Decimal("-1.25"), Decimal("0.00"), Decimal("1.25")]),
        ("DECIMAL(18, 2)", [Decimal("-1.25"), Decimal("0.00"), Decimal("1.25")]),
        ("TIMESTAMP(3)", [-1_000_000, 0, 1_000_000]),
        ("TIMESTAMP(6) WITH LOCAL TIME ZONE", [-1000, 0, 1000]),
        ("TIMESTAMP(9) WITH LOCAL TIME ZONE", [-1, 0, 1]),
    ],
)
def test_a_key_of_any_type(monkeypatch, kind, values):
    content = content_of({"v": "INT", "k": f"{kind} NOT NULL", "w": "INT"}, ["k"])
    rows = rows_of(content, {"k": values, "v": [1, None, 3], "w": [4, 5, None]}, 3)
    assert_as_arrow_writes_it(monkeypatch, content, [rows, rows])


@pytest.mark.parametrize("mode", ["none", "counts", "truncate(2)", "full"])
def test_whatever_is_kept_of_the_column(monkeypatch, mode):
    content = content_of({"k": "STRING NOT NULL"}, ["k"], **{"metadata__stats-mode": mode})
    rows = rows_of(content, {"k": TEXTS[:9]}, 9)
    assert_as_arrow_writes_it(monkeypatch, content, [rows])


def test_texts_too_long_for_bounds_in_the_footer(monkeypatch):
    content = content_of({"k": "STRING NOT NULL"}, ["k"])
    rows = rows_of(content, {"k": ["a" * 5000, "b" * 9000]}, 2)
    assert_as_arrow_writes_it(monkeypatch, content, [rows])


@given(
    st.lists(
        st.tuples(st.integers(-9, 9), st.text(max_size=3), st.none() | st.floats()), min_size=1
    ),
    st.permutations(["a", "b", "v"]),
    st.permutations(["a", "b"]),
)
def test_any_rows_and_any_order_of_columns(found, order, keys):
    kinds = {"a": "INT NOT NULL", "b": "STRING NOT NULL", "v": "DOUBLE"}
    content = content_of({name: kinds[name] for name in order}, keys)
    a, b, v = map(list, zip(*found, strict=True))
    rows = rows_of(content, {"a": a, "b": b, "v": v}, len(found))
    with pytest.MonkeyPatch.context() as monkeypatch:
        assert_as_arrow_writes_it(monkeypatch, content, [rows, rows])


def test_statistics_of_a_column_are_those_of_its_key():
    content = content_of({"k": "INT NOT NULL"}, ["k"])
    _, (key, _, _, column) = write(content, [rows_of(content, {"k": [3, 1, 2]}, 3)])
    assert key == column
    assert (column.minimum, column.maximum, column.null_count) == (1, 3, 0)


def test_what_is_known_of_a_key_that_has_fewer_statistics_than_the_column_is_not_repeated():
    options = {"fields__k__stats-mode": "full", "fields___KEY_k__stats-mode": "none"}
    content = content_of({"k": "INT NOT NULL"}, ["k"], **options)
    assert repeated_columns(content, ENOUGH) == []


@pytest.mark.parametrize(
    "columns",
    [
        pytest.param({"k": "INT"}, id="its column may be null, which is in its pages"),
        pytest.param({"list": "ARRAY<INT>", "k": "INT NOT NULL"}, id="nobody counts nested values"),
    ],
)
def test_a_key_that_cannot_be_repeated_is_encoded_twice(columns):
    content = content_of(columns, ["k"])
    assert repeated_columns(content, ENOUGH) == []
    rows = rows_of(content, {"k": [1, 2], "list": [[], [1, 2]]}, 2)
    written, _ = write(content, [rows])
    assert pq.read_table(io.BytesIO(written))["k"].to_pylist() == [1, 2]


@pytest.mark.parametrize("size", [1, 2, 33, 1000, 10**9])
def test_pages_may_come_in_pieces_of_any_size(size):
    """Arrow writes headers and pages one by one; it need not."""
    rows = pa.table({"key": pa.array(NUMBERS), "v": pa.array(np.sin(NUMBERS))})
    plain = io.BytesIO()
    pq.write_table(rows, plain, use_dictionary=False)
    content, metadata = plain.getvalue(), pq.read_metadata(plain)
    first, second = (metadata.row_group(0).column(n).data_page_offset for n in range(2))
    end = len(content) - 8 - metadata.serialized_size

    target = io.BytesIO()
    stream = RepeatingStream(target, [RepeatedColumn("again", 9, source=0, before=2)])
    stream.write(content[:first])
    stream.start_group(GROUP)
    for start in range(first, end, size):
        stream.write(content[start : min(start + size, end)])
    stream.write(b"footer")
    assert target.getvalue() == content[:end] + content[first:second] + b"footer"
    assert stream.copies == [[CopiedPages(distance=end - first, size=second - first)]]


class FullDisk(io.BytesIO):
    """Has room for some writes."""

    def __init__(self, room):
        super().__init__()
        self.room = room

    def write(self, content):
        self.room -= 1
        if self.room < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(content)


def test_a_write_that_fails_is_told_as_it_was_wherever_it_is():
    content = content_of({"k": "BIGINT NOT NULL", "v": "DOUBLE"}, ["k"])
    rows = rows_of(content, {"k": [1, 2], "v": [None, 0.5]}, 2)
    whole = FullDisk(1000)
    write(content, [rows, rows], whole)
    writes = 1000 - whole.room
    assert writes > 20
    for room in range(writes):
        with pytest.raises(OSError, match="No space left on device"):
            write(content, [rows, rows], FullDisk(room))


def test_a_decimal_without_room_is_told_with_the_key_of_its_row():
    content = content_of({"d": "DECIMAL(9, 2)", "k": "BIGINT NOT NULL"}, ["k"])
    rows = rows_of(content, {"k": [7, 8], "d": [None, None]}, 2)
    unscaled = b"".join(number.to_bytes(16, "little") for number in (1, 1 << 40))
    outgrown = pa.Array.from_buffers(pa.decimal128(9, 2), 2, [None, pa.py_buffer(unscaled)])
    with pytest.raises(InvalidRequestError, match="column 'd' of the row k = 8 is 10995116277"):
        write(content, [rows.set_column(rows.column_names.index("d"), "d", outgrown)])


def test_a_file_of_few_rows_is_written_faster_without():
    content = content_of({"k": "BIGINT NOT NULL", "v": "DOUBLE"}, ["k"])
    assert repeated_columns(content, 1000) == []
    assert repeated_columns(content, 10_000)


def test_the_wider_a_table_the_more_rows_it_takes():
    content = content_of({"k": "INT NOT NULL", **{f"c{n}": "INT" for n in range(40)}}, ["k"])
    assert repeated_columns(content, 10_000) == []
    assert repeated_columns(content, ROW_GROUP_ROWS)


@pytest.mark.parametrize(("rows", "is_repeated"), [(100, False), (20_000, True)])
def test_a_writer_goes_by_the_rows_that_its_file_begins_with(monkeypatch, rows, is_repeated):
    content, found = content_of({"k": "INT NOT NULL"}, ["k"]), []
    monkeypatch.setattr(
        parquet_writer,
        "repeated_columns",
        lambda *arguments: found.append(repeated_columns(*arguments)) or found[-1],
    )
    names = iter(["file.parquet"])
    order = KeyOrder(["k"], Keys.ONCE)
    writer = RollingWriter(
        MemoryStorage(),
        "bucket-0",
        content.fields,
        content.options,
        names.__next__,
        key_order=order,
    )
    for batch in rows_of(content, {"k": NUMBERS[:rows]}, rows).to_batches():
        writer.write(batch)
    writer.finish()
    assert [bool(columns) for columns in found] == [is_repeated]


def test_a_row_group_has_rows():
    """Of none, Arrow writes no page of values: where a column ends could not be seen."""
    content = content_of({"k": "INT NOT NULL"}, ["k"])
    with pytest.raises(AssertionError, match="no rows"):
        write(content, [rows_of(content, {"k": []}, 0)])


class Nowhere(io.RawIOBase):
    def writable(self):
        return True

    def write(self, content):
        return len(content)

    def tell(self):
        return 0


def test_pages_are_let_go_once_they_are_written_again():
    content = content_of({"k": "BIGINT NOT NULL"}, ["k"], file__compression="none")
    rows = rows_of(content, {"k": NUMBERS}, GROUP)
    writer = ParquetFileWriter(Nowhere(), content, ENOUGH)
    tracemalloc.start()
    try:
        writer.write(rows)
        held, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        writer.discard()
    assert most > rows["k"].nbytes
    assert held < rows["k"].nbytes / 4


def test_the_next_row_group_does_not_begin_within_one():
    stream = RepeatingStream(io.BytesIO(), [RepeatedColumn("again", 9, source=0, before=1)])
    stream.start_group(3)
    with pytest.raises(AssertionError, match="not whole"):
        stream.start_group(3)
