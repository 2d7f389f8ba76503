"""Lengths in ORC files, looked at before they are trusted: never wrong about an honest file."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pyarrow.orc as orc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakeformat.errors import UnsupportedError
from lakeformat.files.orc.instants import as_written
from lakeformat.files.orc.message import parse_message, parts, single
from lakeformat.files.orc.runs import summarise_runs
from lakeformat.files.orc.streams import check_streams
from lakeformat.files.orc.tail import read_tail, unpack
from lakeformat.types.java_zones import zone_offsets
from tests.damage import fuzzed

ZLIB = 1
COMPRESSIONS = ["uncompressed", "zlib", "snappy", "lz4", "zstd"]
SMALL = st.integers(0, 9)
PIECES = st.one_of(
    st.tuples(SMALL, st.integers(1, 600)).map(lambda pair: [pair[0]] * pair[1]),  # repeats
    st.lists(SMALL, max_size=40),  # numbers in bits
    st.integers(1, 60).map(lambda count: list(range(count))),  # equal steps
    st.lists(st.integers(1, 40), max_size=30).map(lambda steps: np.cumsum(steps).tolist()),
    st.tuples(st.integers(20, 300), st.integers(300, 20_000)).map(
        lambda pair: [3, 2, 1, 5, 4] * pair[0] + [pair[1]] + [1, 2] * 9  # exceptions
    ),
)
LENGTHS = st.lists(PIECES, max_size=4).map(lambda pieces: [n for piece in pieces for n in piece])


def written(column: pa.Array, compression: str) -> io.BytesIO:
    stream = io.BytesIO()
    orc.write_table(pa.table({"c": column}), stream, compression=compression)
    return stream


def stream_of(content: io.BytesIO, kind: int, number: int) -> bytes:
    """A stream of a file's only stripe, unpacked."""
    tail = read_tail(content)
    [stripe] = tail.stripes
    content.seek(stripe.footer_start)
    footer = parse_message(unpack(content.read(stripe.footer_size), tail.codec))
    start = stripe.start
    for message in map(parse_message, parts(footer, 1)):
        size = single(message, 3)
        if (single(message, 1), single(message, 2)) == (kind, number):
            content.seek(start)
            return unpack(content.read(size), tail.codec)
        start += size
    raise AssertionError("there is no such stream")


@pytest.mark.parametrize("compression", COMPRESSIONS)
@given(lengths=LENGTHS.filter(bool))
@fuzzed(40)
def test_what_is_said_of_lengths_is_so(compression, lengths):
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    content = written(
        pa.ListArray.from_arrays(ends, pa.array(np.zeros(ends[-1], np.int8))), compression
    )
    found = summarise_runs(stream_of(content, 2, 1), version=2, signed=False)
    assert (found.count, found.total) == (len(lengths), sum(lengths))
    assert (found.low, found.high) == (min(lengths), max(lengths))
    check_streams(content, read_tail(content), ["c"])


@given(numbers=st.lists(st.integers(-(2**40), 2**40) | st.integers(-3, 3), min_size=1))
@fuzzed(100)
def test_what_is_said_of_numbers_with_signs_is_so(numbers):
    content = written(pa.array(numbers, pa.int64()), "uncompressed")
    found = summarise_runs(stream_of(content, 1, 1), version=2, signed=True)
    assert (found.count, found.total) == (len(numbers), sum(numbers))
    assert (found.low, found.high) == (min(numbers), max(numbers))


@pytest.mark.parametrize(
    ("run", "signed", "found"),
    [
        ("61 00 07", False, (100, 700, 7, 7)),
        ("61 ff 64", False, (100, 5050, 1, 100)),
        ("61 ff 02", False, (100, 100 * 2 - 4950, -97, 2)),
        ("fb 02 03 06 07 ac 02", False, (5, 318, 2, 300)),
        ("61 ff c8 01", True, (100, 5050, 1, 100)),
    ],
)
def test_runs_of_the_first_version_are_read_too(run, signed, found):
    told = summarise_runs(bytes.fromhex(run), version=1, signed=signed)
    assert (told.count, told.total, told.low, told.high) == found


def test_a_compression_whose_lengths_cannot_be_checked_is_refused_by_name():
    content = bytearray(written(pa.array(["a"]), "zlib").getvalue())
    postscript = content[-1 - content[-1] :]
    assert postscript.count(b"\x10\x01") == 1
    content[-1 - content[-1] :] = postscript.replace(b"\x10\x01", b"\x10\x03")
    with pytest.raises(UnsupportedError, match="LZO"):
        read_tail(io.BytesIO(content))


def test_invalid_compressed_bytes_are_named_as_such():
    invalid_block = b"\x07\0"
    size = len(invalid_block) << 1
    with pytest.raises(ValueError, match=r"a compressed chunk is invalid: .*invalid block type"):
        unpack(size.to_bytes(3, "little") + invalid_block, ZLIB)


def test_an_instant_too_far_to_shift_is_refused_with_its_column():
    instants = pa.array([2**63 - 1]).cast(pa.timestamp("ns", "UTC"))
    rows = pa.record_batch({"seen": pa.array([{"at": instants[0]}])})
    with pytest.raises(UnsupportedError, match="column 'seen' holds instants before 1677"):
        as_written(rows, zone_offsets("Europe/Berlin"))
