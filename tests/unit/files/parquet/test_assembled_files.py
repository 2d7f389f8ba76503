"""The fastest encoder encodes each column of a Parquet file, keys once, with the same bytes."""

from __future__ import annotations

import errno
import io
import os
import tracemalloc
from contextlib import contextmanager
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakeformat.errors import InvalidRequestError
from lakeformat.files.column_statistics import reduce_statistics
from lakeformat.files.parquet import writer as parquet_writer
from lakeformat.files.parquet.arrow_file import ArrowFile
from lakeformat.files.parquet.assembled_file import WORTH_ASSEMBLING, AssembledFile
from lakeformat.files.parquet.writer import ParquetFileWriter
from lakeformat.paimon.datafile.rolling_writer import file_content
from lakeformat.paimon.datafile.system_fields import SEQUENCE_NUMBER, VALUE_KIND, key_field
from lakeformat.paimon.options import TableOptions
from lakeformat.types.arrow_types import to_arrow_schema
from lakeformat.types.type_text import parse_type
from lakeformat.types.types import DataField
from lakeformat.types.values import values_to_arrow

GROUP = 50_000
"""Rows of which a column fills several pages."""


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
    return file_content(stored, typed, key_columns=tuple(keys))


def rows_of(content, columns, rows):
    """Rows of a file, given what the columns of the table hold."""
    system = {"_SEQUENCE_NUMBER": [*range(rows)], "_VALUE_KIND": [0] * rows}
    values = [
        columns[field.name.removeprefix("_KEY_")]
        if field.name not in system
        else system[field.name]
        for field in content.fields
    ]
    made = {}
    for each, field in zip(values, content.fields, strict=True):
        if (key := (id(each), field.type)) not in made:
            made[key] = values_to_arrow(each, field.type)
    arrays = [made[id(v), f.type] for v, f in zip(values, content.fields, strict=True)]
    return pa.table(arrays, schema=to_arrow_schema(content.fields))


@contextmanager
def encoded(*, here):
    """Files whose columns are encoded here as far as they can be, or all by Arrow."""
    with pytest.MonkeyPatch.context() as choice:
        choice.setattr(parquet_writer, "WORTH_ASSEMBLING", 0)
        choice.setattr(parquet_writer, "is_worth_assembling", lambda *_: here)
        yield


def write(content, groups, stream=None, *, here=True):
    """The bytes of a file, and what is kept of its columns."""
    stream = stream or io.BytesIO()
    with encoded(here=here):
        writer = ParquetFileWriter(stream, content)
        try:
            for rows in groups:
                writer.write(rows)
            statistics = writer.close()
        finally:
            writer.discard()
    return stream.getvalue(), [*map(reduce_statistics, statistics, content.modes)]


def assert_as_arrow_writes_it(content, groups):
    """The same file, to the last byte, as one all of whose columns Arrow has encoded."""
    assert write(content, groups) == write(content, groups, here=False)


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
            {"k": "DECIMAL(38, 2) NOT NULL", **{f"c{n}": "DOUBLE" for n in range(12)}},
            ["k"],
            {"k": [Decimal(n) for n in NUMBERS], **{f"c{n}": HALVES for n in range(12)}},
            id="many-columns",
        ),
    ],
)
def test_a_file_is_the_one_that_arrow_writes_of_all_columns(columns, keys, values):
    content = content_of(columns, keys)
    rows = rows_of(content, values, GROUP)
    groups = [rows, rows.slice(0, 20_001), rows.slice(7, 1)]
    assert_as_arrow_writes_it(content, groups)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("compression", ["none", "snappy", "gzip", "zstd"])
def test_whatever_compresses_the_pages(compression):
    content = content_of(
        {"k": "BIGINT NOT NULL", "v": "DOUBLE"}, ["k"], file__compression=compression
    )
    rows = rows_of(content, {"k": NUMBERS, "v": HALVES}, GROUP)
    assert_as_arrow_writes_it(content, [rows, rows])


def test_a_file_of_more_row_groups_than_a_short_list_has():
    content = content_of({"k": "BIGINT NOT NULL", "v": "DOUBLE"}, ["k"])
    rows = rows_of(content, {"k": NUMBERS, "v": HALVES}, GROUP)
    assert_as_arrow_writes_it(content, [rows.slice(n, 100) for n in range(40)])


def test_a_file_of_no_rows():
    content = content_of({"k": "BIGINT NOT NULL", "v": "DOUBLE"}, ["k"])
    assert_as_arrow_writes_it(content, [])


def test_a_file_of_more_columns_than_a_byte_counts():
    others = {f"c{n}": "INT" for n in range(140)}
    content = content_of({**others, "k": "BIGINT NOT NULL"}, ["k"])
    values = {name: [1, 2, 3] for name in [*others, "k"]}
    assert_as_arrow_writes_it(content, [rows_of(content, values, 3)] * 2)


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
def test_a_key_of_any_type(kind, values):
    content = content_of({"v": "INT", "k": f"{kind} NOT NULL", "w": "INT"}, ["k"])
    rows = rows_of(content, {"k": values, "v": [1, None, 3], "w": [4, 5, None]}, 3)
    assert_as_arrow_writes_it(content, [rows, rows])


@pytest.mark.parametrize("mode", ["none", "counts", "truncate(2)", "full"])
def test_whatever_is_kept_of_the_column(mode):
    content = content_of({"k": "STRING NOT NULL"}, ["k"], **{"metadata__stats-mode": mode})
    rows = rows_of(content, {"k": TEXTS[:9]}, 9)
    assert_as_arrow_writes_it(content, [rows])


def test_texts_too_long_for_bounds_in_the_footer():
    content = content_of({"k": "STRING NOT NULL"}, ["k"])
    rows = rows_of(content, {"k": ["a" * 5000, "b" * 9000]}, 2)
    assert_as_arrow_writes_it(content, [rows])


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
    assert_as_arrow_writes_it(content, [rows, rows])


EDGES = st.sampled_from([1, 7, 8, 9, 503, 504, 505, 513, 19_999, 20_000, 20_001, 40_001])
"""Rows around what a group, a run of groups and a page hold."""


@given(EDGES, st.integers(1, 12), st.integers(1, 40), st.integers(0, 2**32), st.booleans())
def test_texts_of_few_kinds_that_come_alone_or_in_runs(rows, kinds, longest, seed, as_dictionary):
    random = np.random.default_rng(seed)
    lengths = random.integers(1, longest + 1, rows)
    numbers = np.repeat(random.integers(0, kinds, rows), lengths)[:rows]
    few = pa.array([f"text {n}" * n for n in range(kinds)]).take(pa.array(numbers))
    content = content_of({"k": "BIGINT NOT NULL", "few": "STRING", "one": "STRING"}, ["k"])
    found = rows_of(content, {"k": range(rows), "few": few.to_pylist(), "one": ["x"] * rows}, rows)
    if as_dictionary:
        place = found.column_names.index("few")
        found = found.set_column(place, "few", few.dictionary_encode())
    assert_as_arrow_writes_it(content, [found, found.slice(0, rows // 2 + 1)])


@given(EDGES, st.integers(0, 2**32), st.sampled_from([1, 2, 3]))
def test_numbers_of_every_width_and_bits(rows, seed, pieces):
    """Those with one value of all come by a dictionary."""
    random = np.random.default_rng(seed)
    kinds = {
        **{"TINYINT": pa.int8(), "SMALLINT": pa.int16(), "INT": pa.int32(), "BIGINT": pa.int64()},
        **{"DATE": pa.date32(), "TIMESTAMP(3)": pa.timestamp("ms")},
        **{"TIMESTAMP(6)": pa.timestamp("us"), "FLOAT": pa.float32(), "DOUBLE": pa.float64()},
    }
    content = content_of(
        {
            "k": "BIGINT NOT NULL",
            **{f"{n}{kind}": kind for kind in kinds for n in ("any", "one")},
            "short": "DECIMAL(9, 2)",
            "long": "DECIMAL(18, 2)",
        },
        ["k"],
    )
    found = {"_KEY_k": pa.array(range(rows)), "_SEQUENCE_NUMBER": pa.array(range(rows))}
    found |= {"_VALUE_KIND": pa.array(np.zeros(rows, np.int8)), "k": pa.array(range(rows))}
    for name, kind in kinds.items():
        bits = pa.py_buffer(random.bytes(rows * kind.bit_width // 8))
        found[f"any{name}"] = pa.Array.from_buffers(kind, rows, [None, bits])
        found[f"one{name}"] = found[f"any{name}"].take(pa.array(np.zeros(rows, np.int64)))
    for name, digits in (("short", 9), ("long", 18)):
        unscaled = random.integers(-(10**digits), 10**digits, rows)
        halves = pa.py_buffer(np.column_stack([unscaled, unscaled >> 63]))
        found[name] = pa.Array.from_buffers(pa.decimal128(digits, 2), rows, [None, halves])
    whole = pa.table(
        [found[field.name] for field in content.fields], schema=to_arrow_schema(content.fields)
    )
    parts = pa.concat_tables([whole.slice(n * rows // pieces, rows) for n in range(pieces)])
    assert_as_arrow_writes_it(content, [parts, whole])


@pytest.mark.parametrize(
    ("kind", "groups"),
    [
        ("DOUBLE", [[1.0, 2.0], [1.0, float("nan")], [3.0, None], [4.0, 5.0]]),
        ("FLOAT", [[0.0, -0.0], [-0.0, -0.0], [0.0, 0.0], [-0.0, 1.0]]),
        ("FLOAT", [[0.0, 0.0], [0.0, -0.0], [-0.0, -0.0]]),
        ("DOUBLE", [[float("nan")] * 2, [1.0, 1.0]]),
        ("TINYINT", [[5, 5], [5, 6], [5, 5]]),
        ("BIGINT", [[7, 7], [None, 7], [7, 7]]),
        ("BOOLEAN", [[True, True], [False, True]]),
        ("STRING", [["a", "a"], ["b", None], ["a", "c"]]),
        ("TIMESTAMP(9)", [[0, 0], [1, None]]),
        ("ARRAY<INT>", [[[1], [1]], [[], None]]),
    ],
)
def test_row_groups_that_need_different_encoders(kind, groups):
    content = content_of({"k": "INT NOT NULL", "v": kind}, ["k"])
    found = [rows_of(content, {"k": [1, 2], "v": group}, 2) for group in groups]
    assert_as_arrow_writes_it(content, found)


def test_a_dictionary_with_texts_that_no_row_has():
    content = content_of({"k": "INT NOT NULL", "few": "STRING"}, ["k"])
    found = rows_of(content, {"k": [1, 2], "few": ["b", "c"]}, 2)
    few = pa.DictionaryArray.from_arrays(pa.array([1, 2], pa.int32()), ["a", "b", "c", "d"])
    found = found.set_column(found.column_names.index("few"), "few", few)
    assert_as_arrow_writes_it(content, [found])


def test_more_kinds_of_texts_than_a_byte_counts_and_longer_ones():
    content = content_of({"k": "INT NOT NULL", "many": "STRING", "long": "STRING"}, ["k"])
    values = {
        "k": NUMBERS,
        "many": [f"{n % 300}" for n in NUMBERS],
        "long": ["x" * 300 * (1 + n % 2) for n in NUMBERS],
    }
    assert_as_arrow_writes_it(content, [rows_of(content, values, GROUP)])


def test_a_table_without_a_key():
    fields = (
        DataField(0, "n", parse_type("INT")),
        DataField(1, "s", parse_type("STRING")),
        DataField(2, "m", parse_type("MAP<STRING, INT>")),
    )
    content = file_content(fields, TableOptions({}))
    rows = pa.table(
        [
            values_to_arrow([1, 2], fields[0].type),
            values_to_arrow(["a", "b"], fields[1].type),
            values_to_arrow([{"a": 1}, {}], fields[2].type),
        ],
        schema=to_arrow_schema(fields),
    )
    assert_as_arrow_writes_it(content, [rows, rows])


FEW_TEXTS = ["paid", "new", "paid", "paid"] * (WORTH_ASSEMBLING // 4)
WITH_NULLS = [None, 1, 2, 3] * (WORTH_ASSEMBLING // 4)
LONG_TEXTS = [f"{number:020}" for number in range(WORTH_ASSEMBLING)]


@pytest.mark.parametrize(
    ("columns", "is_worth_it"),
    [
        pytest.param({}, True, id="numbers"),
        pytest.param({"s": ("STRING", FEW_TEXTS)}, True, id="few texts"),
        pytest.param({"s": ("STRING", LONG_TEXTS)}, True, id="one column of texts"),
        pytest.param({n: ("STRING", LONG_TEXTS) for n in "stu"}, False, id="mostly texts"),
        pytest.param({n: ("INT", WITH_NULLS) for n in "stuvwxyz"}, False, id="nulls"),
    ],
)
def test_a_file_is_left_to_arrow_where_that_encodes_most_of_it(columns, is_worth_it):
    """Chunks that Arrow encodes are in memory twice, without any gain."""
    content = content_of(
        {"k": "BIGINT NOT NULL", **{n: kind for n, (kind, _) in columns.items()}}, ["k"]
    )
    values = {"k": range(WORTH_ASSEMBLING), **{name: found for name, (_, found) in columns.items()}}
    rows = rows_of(content, values, WORTH_ASSEMBLING)
    assert file_of(content, rows) is (AssembledFile if is_worth_it else ArrowFile)


def test_few_rows_and_codecs_that_only_arrow_has_are_left_to_it():
    content = content_of({"k": "INT NOT NULL"}, ["k"])
    rows = rows_of(content, {"k": range(WORTH_ASSEMBLING)}, WORTH_ASSEMBLING)
    assert file_of(content, rows) is AssembledFile
    assert file_of(content, rows.slice(1)) is ArrowFile
    assert (
        file_of(content_of({"k": "INT NOT NULL"}, ["k"], file__compression="lz4"), rows)
        is ArrowFile
    )


def file_of(content, rows):
    """The writer of a file that begins with these rows."""
    found = []
    with pytest.MonkeyPatch.context() as watched:
        for kind in (AssembledFile, ArrowFile):
            watched.setattr(kind, "write", lambda self, rows: found.append(type(self)))
        ParquetFileWriter(io.BytesIO(), content).write(rows)
    return found[0]


def test_a_key_with_another_type_in_front_is_encoded_twice():
    content = content_of({"k": "INT"}, ["k"])  # which may be null there, and not in front
    assert content.repeated == {}
    rows = rows_of(content, {"k": [1, 2]}, 2)
    written, _ = write(content, [rows])
    assert pq.read_table(io.BytesIO(written))["k"].to_pylist() == [1, 2]
    assert content_of({"k": "INT NOT NULL"}, ["k"]).repeated == {"k": "_KEY_k"}


def test_statistics_of_a_column_are_those_of_its_key():
    content = content_of({"k": "INT NOT NULL"}, ["k"])
    _, (key, _, _, column) = write(content, [rows_of(content, {"k": [3, 1, 2]}, 3)])
    assert key == column
    assert (column.minimum, column.maximum, column.null_count) == (1, 3, 0)


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


def test_a_full_disk_is_reported_at_every_write():
    content = content_of({"k": "BIGINT NOT NULL", "v": "DOUBLE"}, ["k"])
    rows = rows_of(content, {"k": [1, 2], "v": [None, 0.5]}, 2)
    whole = FullDisk(1000)
    write(content, [rows, rows], whole)
    writes = 1000 - whole.room
    assert writes > 20
    for room in range(writes):
        with pytest.raises(OSError, match="No space left on device"):
            write(content, [rows, rows], FullDisk(room))


def test_a_decimal_that_exceeds_its_type_is_reported_with_the_key_of_its_row():
    content = content_of({"d": "DECIMAL(9, 2)", "k": "BIGINT NOT NULL"}, ["k"])
    rows = rows_of(content, {"k": [7, 8], "d": [None, None]}, 2)
    unscaled = b"".join(number.to_bytes(16, "little") for number in (1, 1 << 40))
    outgrown = pa.Array.from_buffers(pa.decimal128(9, 2), 2, [None, pa.py_buffer(unscaled)])
    with pytest.raises(InvalidRequestError, match="column 'd' of the row k = 8 is 10995116277"):
        write(content, [rows.set_column(rows.column_names.index("d"), "d", outgrown)])


class Nowhere(io.RawIOBase):
    def writable(self):
        return True

    def write(self, content):
        return len(content)

    def tell(self):
        return 0


def test_pages_are_released_once_they_are_written():
    content = content_of({"k": "BIGINT NOT NULL"}, ["k"], file__compression="none")
    rows = rows_of(content, {"k": NUMBERS}, GROUP)
    writer = ParquetFileWriter(Nowhere(), content)
    tracemalloc.start()
    try:
        with encoded(here=True):
            writer.write(rows)
        held, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        writer.discard()
    assert most > rows["k"].nbytes
    assert held < rows["k"].nbytes / 4
