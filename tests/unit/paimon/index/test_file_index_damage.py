"""Damaged bodies of file indexes: our error or an answer, quickly and in little memory."""

from __future__ import annotations

import contextlib
import struct
import tracemalloc

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakeformat.errors import CorruptTableError
from lakeformat.paimon.index.file_index import (
    BloomFilter,
    IndexType,
    encode_bitmap_index,
    encode_bloom_filter,
    encode_bsi,
    encode_range_bitmap,
    open_column_index,
)
from lakeformat.types.arrow_types import to_arrow_type
from lakeformat.types.types import STRING, TypeName, atomic
from tests.damage import damaged, fuzzed, within_bounds

INT = atomic(TypeName.INT)
NUMBERS = [None, None, *range(-40, 40), *[7] * 9000, *[-3, 5, None] * 500]
TEXTS = [None, *(f"k{number}" * (number % 5) for number in range(80)), *["x", None] * 3000]


def samples() -> list[tuple[IndexType, object, bytes]]:
    """Bodies of all types, some of one part and some of many."""
    numbers, texts = (
        pa.array(values, to_arrow_type(data_type))
        for values, data_type in ((NUMBERS, INT), (TEXTS, STRING))
    )
    few = pa.array([1, None, 2, 1], pa.int32())
    bitmap, range_bitmap = IndexType.BITMAP, IndexType.RANGE_BITMAP
    return [
        (IndexType.BLOOM_FILTER, INT, encode_bloom_filter(few, INT, items=10)),
        (bitmap, INT, encode_bitmap_index(few, INT)),
        (bitmap, INT, encode_bitmap_index(numbers, INT, block_size=100)),
        (bitmap, STRING, encode_bitmap_index(texts, STRING, block_size=100)),
        (bitmap, INT, encode_bitmap_index(few, INT, version=1)),
        (bitmap, STRING, encode_bitmap_index(texts, STRING, version=1)),
        (IndexType.BSI, INT, encode_bsi(few, INT)),
        (IndexType.BSI, INT, encode_bsi(numbers, INT)),
        (range_bitmap, INT, encode_range_bitmap(few, INT)),
        (range_bitmap, INT, encode_range_bitmap(numbers, INT, chunk_size=50)),
        (range_bitmap, STRING, encode_range_bitmap(texts, STRING, chunk_size=50)),
    ]


SAMPLES = samples()
each_sample = pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample[0])
PROBES = {INT: [7, -41, 1], STRING: ["x", "", "k5k5"]}


def answers_with_rows_of_the_file(index_type, data_type, body) -> bool:
    """Every question is asked; one may be refused."""
    index = open_column_index(index_type, data_type, body, "index")
    probes = PROBES[data_type]
    if isinstance(index, BloomFilter):
        return index.may_contain(probes[0]) in (True, False)
    # A damaged part must not keep the others from being asked.
    questions = [index.is_null, index.is_not_null, lambda: index.one_of(probes)]
    if index_type is not IndexType.BITMAP:
        for probe in probes:
            questions += [lambda probe=probe: index.less_than(probe)]
            questions += [lambda probe=probe: index.at_least(probe)]
    found = []
    for question in questions:
        with contextlib.suppress(CorruptTableError):
            found.append(question())
    return all(not rows or rows.max() < index.row_count for rows in found)


@given(st.sampled_from(SAMPLES), st.data())
@fuzzed(100)
def test_changed_bytes_give_our_error_or_rows_of_the_file(sample, data):
    index_type, data_type, body = sample
    changed = data.draw(damaged(body))
    with within_bounds(), contextlib.suppress(CorruptTableError):
        assert answers_with_rows_of_the_file(index_type, data_type, changed)


@each_sample
def test_a_truncated_body_gives_our_error_or_rows_of_the_file(sample):
    index_type, data_type, body = sample
    for length in range(0, len(body), 1 + len(body) // 200):
        with contextlib.suppress(CorruptTableError):
            assert answers_with_rows_of_the_file(index_type, data_type, body[:length])


@pytest.mark.sampled(2)
@each_sample
def test_announced_lengths_ask_for_no_memory(sample):
    index_type, data_type, body = sample
    tracemalloc.start()
    for position in range(min(len(body) - 3, 150)):
        for number in (2**31 - 1, -1, -(2**31)):
            damaged = body[:position] + struct.pack(">i", number) + body[position + 4 :]
            with contextlib.suppress(CorruptTableError):
                assert answers_with_rows_of_the_file(index_type, data_type, damaged)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 * 2**20


@pytest.mark.parametrize(
    ("index_type", "body", "reason"),
    [
        (IndexType.BITMAP, "03", "1: its format version is 3, but this library reads 1 or 2"),
        (IndexType.BITMAP, "02 ffffffff", "the number of rows cannot be -1"),
        (
            IndexType.BITMAP,
            "02 00000005 00000000 00 0000",
            "the next value needs 4 bytes, but 2 can be read",
        ),
        (IndexType.BSI, "02", "its format version is 2, but this library reads 1"),
        (
            IndexType.BSI,
            "01 00000005 01 01 0000000000000000 0000000000000001 3a30000000000000 00000041",
            "the number of bit slices cannot be 65",
        ),
        (
            IndexType.BSI,
            "01 00000005 01 01 0000000000000000 0000000000000001 3a300000 01000000 00000000 10",
            "the next value needs",
        ),
        (
            IndexType.BSI,
            "01 00000005 01 01 0000000000000000 0000000000000001"
            "3a300000 01000000 0000 0000 10000000 0900 00000000 00",
            "a bitmap names row 9, counted from 0, but the data file has only 5 rows",
        ),
        (
            IndexType.BSI,
            "01 00000005 01 01 0000000000000000 0000000000000001"
            "3a300000 01000000 0000 0100 10000000 0300 0100 00000000 00",
            "the bitmap that starts here cannot be decoded",
        ),
        (
            IndexType.BSI,
            "01 00000005 01 01 0000000000000000 0000000000000001 77777777",
            "a Roaring bitmap cannot start with 0x77777777",
        ),
        (
            IndexType.BSI,
            "01 00000005 01 01 0000000000000000 0000000000000001 3a300000 01000100",
            "the bitmap claims 65537 containers, but at most 65536 are possible",
        ),
        (
            IndexType.RANGE_BITMAP,
            "00000001 07",
            "its format version is 7, but this library reads 1",
        ),
        (IndexType.RANGE_BITMAP, "7fffffff", "needs 2,147,483,647 bytes, but 0 can be read"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(index_type, body, reason):
    with pytest.raises(CorruptTableError, match=f"index is damaged near byte .*{reason}") as caught:
        open_column_index(index_type, INT, bytes.fromhex(body), "index")
    assert "`lake rewrite-file-index TABLE --force`" in str(caught.value)
