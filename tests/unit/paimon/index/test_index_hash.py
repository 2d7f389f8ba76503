"""Hash index files: each key hash of a bucket once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakeformat.errors import CorruptTableError, InvalidRequestError
from lakeformat.paimon.index.hash_index import (
    decode_hash_index,
    encode_hash_index,
    read_hash_index,
    write_hash_index,
)
from lakeformat.storage import MemoryStorage

ONE_TWO_THREE = np.array([1465514398, 1340390384, -771300025], np.int32)
"""The row hashes of the INT keys 1, 2 and 3."""
INT32 = st.integers(-(2**31), 2**31 - 1)


def test_the_bytes_are_the_example_of_the_format():
    assert encode_hash_index(ONE_TWO_THREE).hex(" ", 4) == "5759f99e 4fe4bbf0 d206e547"


def test_a_file_reads_back_as_written():
    storage = MemoryStorage("hashes")
    size = write_hash_index(storage, "t/index/index-u-0", ONE_TWO_THREE)
    hashes = read_hash_index(storage, "t/index/index-u-0", count=3)
    assert (size, hashes.dtype, hashes.tolist()) == (12, np.int32, ONE_TWO_THREE.tolist())


@given(st.sets(INT32, max_size=50))
def test_any_set_of_hashes_reads_back(hashes):
    content = encode_hash_index(np.array([*hashes], np.int32))
    assert set(decode_hash_index(content, "h", count=len(hashes)).tolist()) == hashes


def test_a_hash_that_is_there_twice_is_refused():
    with pytest.raises(InvalidRequestError, match="2 hashes have 1 distinct values"):
        encode_hash_index(np.array([5, 5], np.int32))


def test_hashes_of_another_type_are_refused_before_they_are_cut():
    with pytest.raises(InvalidRequestError, match="got 1-d int64"):
        encode_hash_index(np.array([2**40]))


@given(st.binary(max_size=40), st.integers(0, 10))
def test_any_bytes_are_as_many_hashes_as_the_manifest_says_or_an_error(content, count):
    try:
        hashes = decode_hash_index(content, "h", count=count)
    except CorruptTableError:
        return
    assert len(hashes) == count


def test_a_file_of_another_size_is_named():
    with pytest.raises(
        CorruptTableError,
        match=r"index-0 has 11 bytes, but its manifest entry has 3 hashes \(12 bytes\)",
    ):
        decode_hash_index(bytes(11), "index-0", count=3)


def test_a_missing_file_is_named_with_what_to_do():
    with pytest.raises(CorruptTableError, match=r"index-0 is missing .* repeat the call"):
        read_hash_index(MemoryStorage("empty"), "index-0", count=1)
