"""Hashes are those of the reference implementation of Murmur3 x64-128."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakeformat.rows.murmur128 import hash_to_long

FIRST_HALVES = {
    b"The quick brown fox jumps over the lazy dog": 0xE34BBC7BBC071B6C,
    b"The quick brown fox jumps over the lazy cog": 0x658CA970FF85269A,
}


@pytest.mark.parametrize("text", FIRST_HALVES)
def test_the_hash_is_that_of_the_reference(text):
    (found,) = hash_to_long(pa.array([text], pa.binary()), 0)
    assert found == FIRST_HALVES[text] >> 1


def test_values_of_any_lengths_are_hashed_alike_alone_and_together():
    values = [bytes(range(length)) for length in range(1, 50)]
    together = hash_to_long(pa.array([*values, *values], pa.binary()), 9001)
    alone = [hash_to_long(pa.array([each], pa.binary()), 9001)[0] for each in values]
    assert sorted(together) == sorted([*alone, *alone])
    assert len({*alone}) == len(values)


def test_a_part_of_an_array_is_hashed_alone():
    whole = pa.array([b"aaaa", b"bbbb", b"cccc"], pa.binary())
    part = hash_to_long(whole.slice(1, 1), 1)
    assert part.tolist() == hash_to_long(pa.array([b"bbbb"], pa.binary()), 1).tolist()
