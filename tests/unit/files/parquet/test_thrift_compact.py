"""Thrift's compact protocol: what is parsed and not changed is serialised to the same bytes."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakeformat.files.parquet.thrift_compact import (
    ThriftKind,
    ThriftList,
    parse_struct,
    serialize_struct,
)
from tests import sampling

# What a compact stream says of a value, and values it can have; members and lists follow below.
ATOMIC = {
    ThriftKind.BYTE: st.integers(0, 255),
    ThriftKind.I16: st.integers(-(2**15), 2**15 - 1),
    ThriftKind.I32: st.integers(-(2**31), 2**31 - 1),
    ThriftKind.I64: st.integers(-(2**63), 2**63 - 1),
    ThriftKind.DOUBLE: st.floats(allow_nan=False),
    ThriftKind.BINARY: st.binary(max_size=200),
}
BOOLEANS = st.sampled_from([(ThriftKind.TRUE, True), (ThriftKind.FALSE, False)])


def members(values):
    """A struct: its members' numbers only grow, by steps of any size."""
    return st.dictionaries(st.integers(1, 2**15 - 1), values | BOOLEANS, max_size=20).map(
        lambda found: dict(sorted(found.items()))
    )


def lists(values):
    """Lists and sets of one kind, the empty and the long ones too."""
    kinds = st.sampled_from([ThriftKind.LIST, ThriftKind.SET])
    many = values.flatmap(
        lambda one: st.integers(0, 20).map(lambda count: ThriftList(one[0], [one[1]] * count))
    )
    return st.tuples(kinds, many)


atomic = st.one_of(*(st.tuples(st.just(kind), values) for kind, values in ATOMIC.items()))
anything = st.recursive(
    atomic,
    lambda inner: lists(inner) | st.tuples(st.just(ThriftKind.STRUCT), members(inner)),
    max_leaves=20,
)


@given(members(anything))
@settings(deadline=None)
def test_what_is_serialised_is_parsed_again(tree):
    assert parse_struct(serialize_struct(tree)) == tree


TYPES = {
    "BIGINT": pa.int64(),
    "STRING": pa.string(),
    "BYTES": pa.binary(12),
    "BOOLEAN": pa.bool_(),
    "DECIMAL": pa.decimal128(28, 2),
    "TIMESTAMP": pa.timestamp("ns", "UTC"),
    "TIME": pa.time32("ms"),
    "ARRAY": pa.list_(pa.float64()),
    "MAP": pa.map_(pa.string(), pa.int8()),
    "ROW": pa.struct([("a", pa.int32()), ("b", pa.list_(pa.date32()))]),
}


@given(
    st.lists(st.sampled_from(sorted(TYPES)), min_size=1, max_size=30),
    st.integers(0, 30),
    st.fixed_dictionaries(
        {
            "compression": st.sampled_from(["zstd", "snappy", "none"]),
            "write_page_index": st.booleans(),
            "write_page_checksum": st.booleans(),
            "write_statistics": st.booleans(),
            "use_dictionary": st.booleans(),
            "store_schema": st.booleans(),
            "data_page_version": st.sampled_from(["1.0", "2.0"]),
            "row_group_size": st.integers(1, 40),
        }
    ),
)
@settings(max_examples=sampling.count(8, whole=50))
def test_the_footer_of_any_file_that_arrow_writes_keeps_its_bytes(names, rows, options):
    arrays = [pa.nulls(rows, TYPES[name]) for name in names]
    numbers = pa.array(range(rows), pa.int64())
    table = pa.table([*arrays, numbers], names=[f"c{n}" for n in range(len(names) + 1)])
    stream = pa.BufferOutputStream()
    pq.write_table(table, stream, **options)
    content = stream.getvalue().to_pybytes()
    footer = content[-8 - int.from_bytes(content[-8:-4], "little") : -8]
    assert serialize_struct(parse_struct(footer)) == footer


@pytest.mark.parametrize(
    "content",
    [b"", b"\x18\x05abc", b"\x00\x00", b"\x1e\x00", b"\x16\x80"],
    ids=["empty", "short text", "more follows", "no such kind", "endless number"],
)
def test_bytes_that_are_no_struct_are_an_error(content):
    with pytest.raises((ValueError, IndexError)):
        parse_struct(content)
