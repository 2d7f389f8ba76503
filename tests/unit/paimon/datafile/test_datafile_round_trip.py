"""Written rows are read back unchanged, for all types that a format can hold."""

from __future__ import annotations

import math
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakeformat.files.column_statistics import has_order
from lakeformat.paimon.datafile.file_statistics import encode_value_statistics, file_statistics
from lakeformat.paimon.datafile.reader import read_batches
from lakeformat.paimon.datafile.rolling_writer import RollingWriter
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta
from lakeformat.paimon.options import TableOptions
from lakeformat.storage.memory import MemoryStorage
from lakeformat.types.arrow_types import to_arrow_schema
from lakeformat.types.type_text import parse_type
from lakeformat.types.types import (
    ArrayType,
    DataField,
    MapType,
    MultisetType,
    RowType,
)
from lakeformat.types.values import values_from_arrow, values_to_arrow
from tests import sampling

LONG = 2**63 - 1
MILLI = 10**6
"""Before 1970, ORC files are written with whole milliseconds only."""
NANOS_END = LONG // 10**9
"""Seconds that nanoseconds in 64 bits reach."""


def decimals(precision, scale):
    unscaled = st.integers(1 - 10**precision, 10**precision - 1)
    digits = unscaled.map(lambda number: (int(number < 0), tuple(map(int, str(abs(number))))))
    return digits.map(lambda parts: Decimal((*parts, -scale)))


def timestamps(precision):
    step = 10 ** (9 - precision)
    # What every format can hold, ORC too: it is read as nanoseconds.
    return st.integers(-NANOS_END * 10**precision, NANOS_END * 10**precision).map(
        lambda count: count * step
    )


ATOMIC = {
    "BOOLEAN": st.booleans(),
    "TINYINT": st.integers(-(2**7), 2**7 - 1),
    "SMALLINT": st.integers(-(2**15), 2**15 - 1),
    "INT": st.integers(-(2**31), 2**31 - 1),
    "BIGINT": st.integers(-LONG - 1, LONG),
    "FLOAT": st.floats(width=32),
    "DOUBLE": st.floats(),
    "CHAR(3)": st.text(min_size=3, max_size=3),
    "STRING": st.text(),
    "BINARY(2)": st.binary(min_size=2, max_size=2),
    "BYTES": st.binary(),
    "DECIMAL(9, 2)": decimals(9, 2),
    "DECIMAL(18, 0)": decimals(18, 0),
    "DECIMAL(38, 38)": decimals(38, 38),
    "DATE": st.integers(-(2**31), 2**31 - 1),
    "TIME(3)": st.integers(0, 86_399_999),
    "TIMESTAMP(0)": timestamps(0),
    "TIMESTAMP(3)": timestamps(3),
    "TIMESTAMP(6) WITH LOCAL TIME ZONE": timestamps(6),
    "TIMESTAMP(9)": timestamps(9),
}
WITHOUT = {
    "parquet": set(),
    "orc": {"BINARY(2)"},
    "avro": {"TIMESTAMP(9)"},
}


def values_of(name, file_format):
    if file_format == "orc" and name.startswith("TIMESTAMP"):
        return ATOMIC[name].map(lambda nanos: nanos if nanos > 0 else nanos // MILLI * MILLI)
    return ATOMIC[name]


def types(names, file_format):
    """Types of these names, nested too, each with a strategy of values that are not null."""
    atomic = st.sampled_from(sorted(names)).map(
        lambda name: (parse_type(name), values_of(name, file_format))
    )
    return st.recursive(atomic, nested, max_leaves=4)


def nested(parts):
    return st.one_of(
        parts.map(lambda part: (ArrayType(part[0]), st.lists(or_null(part[1]), max_size=3))),
        st.tuples(st.sampled_from(["STRING", "INT", "DATE"]), parts).map(map_of),
        st.lists(parts, min_size=1, max_size=3).map(row_of),
    )


def or_null(values):
    return st.none() | values


def map_of(drawn):
    key, (value, values) = drawn
    entries = st.lists(
        st.tuples(ATOMIC[key], or_null(values)), max_size=3, unique_by=lambda entry: entry[0]
    )
    return MapType(parse_type(f"{key} NOT NULL"), value), entries


def row_of(parts):
    fields = tuple(DataField(100 + n, f"f{n}", part[0]) for n, part in enumerate(parts))
    return RowType(fields), st.tuples(*(or_null(part[1]) for part in parts))


def columns_of(file_format):
    names = set(ATOMIC) - WITHOUT[file_format]
    return st.lists(types(names, file_format), min_size=1, max_size=4)


def same(found, expected):
    """NaN is NaN, and zeros keep their sign."""
    return repr(found) == repr(expected)


@pytest.mark.parametrize(
    ("file_format", "compression"),
    [
        ("parquet", "zstd"),
        ("parquet", "none"),
        ("orc", "zstd"),
        ("orc", "none"),
        ("avro", "zstd"),
        ("avro", "null"),
    ],
)
def test_any_rows_come_back_and_lie_within_their_statistics(file_format, compression):
    options = TableOptions({"file.format": file_format, "file.compression": compression})

    @settings(max_examples=sampling.count(5, whole=25), suppress_health_check=list(HealthCheck))
    @given(st.data())
    def round_trip(data):
        drawn = data.draw(columns_of(file_format))
        # Ids are unique over nested fields as well.
        fields = tuple(DataField(n, f"c{n}", kind) for n, (kind, _) in enumerate(drawn))
        count = data.draw(st.integers(1, 5))
        values = [
            data.draw(st.lists(or_null(of_type), min_size=count, max_size=count))
            for _, of_type in drawn
        ]
        check(fields, values, options)

    round_trip()


def check(fields, values, options):
    arrays = [values_to_arrow(v, field.type) for v, field in zip(values, fields, strict=True)]
    batch = pa.RecordBatch.from_arrays(arrays, schema=to_arrow_schema(fields))
    storage = MemoryStorage()
    writer = RollingWriter(storage, "/t", fields, options, lambda: f"data-0.{options.file_format}")
    writer.write(batch.slice(0, 1))
    writer.write(batch.slice(1))
    (file,) = writer.finish()
    (found,) = read_batches(storage, file.path, file_fields=fields, wanted=fields)
    for column, field, expected in zip(found.columns, fields, values, strict=True):
        assert same(values_from_arrow(column, field.type), expected)
    check_statistics(file, fields, values)


def check_statistics(file, fields, values):
    value_stats, covered = encode_value_statistics(fields, file.statistics, dense=True)
    meta = DataFileMeta(
        file_name=file.name,
        file_size=file.size,
        row_count=file.row_count,
        min_sequence_number=0,
        max_sequence_number=0,
        schema_id=0,
        value_stats=value_stats,
        value_stats_cols=covered,
    )
    for known, field, column in zip(
        file_statistics(meta, fields, fields), fields, values, strict=True
    ):
        present = [value for value in column if value is not None]
        assert known.null_count in (None, len(column) - len(present))
        if known.minimum is None:
            continue
        assert has_order(field.type)
        assert not any(isinstance(v, float) and math.isnan(v) for v in present)
        assert all(known.minimum <= value <= known.maximum for value in present)


def test_a_multiset_is_written_to_parquet_and_avro():
    fields = (DataField(0, "bag", MultisetType(parse_type("STRING NOT NULL"))),)
    for file_format in ("parquet", "avro"):
        options = TableOptions({"file.format": file_format})
        check(fields, [[[("a", 2), ("b", 1)], None, []]], options)
