"""Deletion vectors: deleted rows never reappear, in both forms and after damage."""

from __future__ import annotations

import contextlib
import struct
import tracemalloc
import zlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from lakeformat.errors import CorruptTableError, InvalidRequestError
from lakeformat.files.deletion_vector import DeletionVector, keep_mask
from lakeformat.files.vector_record import DeletionVectorRange, VectorForm, decode_deletion_vector
from lakeformat.paimon.index.deletion_vector_file import (
    encode_deletion_vectors,
    read_deletion_vectors,
)
from lakeformat.storage import MemoryStorage

ONE_AND_THREE = DeletionVector.of([1, 3])
EXAMPLE_32 = (
    "01 00000018 5e43f2d0 3a300000 01000000 0000 0100 10000000 0100 0300 da2d59d3"  # one vector
)
EXAMPLE_64 = (
    "01 00000024 d1d33964 0100000000000000 00000000"
    " 3a300000 01000000 0000 0100 10000000 0100 0300 683497a9"
)
EXAMPLES = {
    VectorForm.BITMAP32: (bytes.fromhex(EXAMPLE_32), DeletionVectorRange("f", 1, 24, 2)),
    VectorForm.BITMAP64: (bytes.fromhex(EXAMPLE_64), DeletionVectorRange("f", 1, 44, 2)),
}
FORMS = pytest.mark.parametrize("form", [*VectorForm])
ROWS_32 = st.sets(st.one_of(st.integers(0, 300), st.integers(0, 2**31 - 1)), max_size=40)
ROWS_64 = st.sets(st.one_of(st.integers(0, 300), st.integers(0, 2**38)), max_size=40)


def storing(content: bytes) -> MemoryStorage:
    storage = MemoryStorage("vectors")
    storage.overwrite("index-0", content)
    return storage


def read(content: bytes, *ranges: DeletionVectorRange) -> dict[str, list[int]]:
    found = read_deletion_vectors(storing(content), "index-0", ranges)
    return {name: vector.to_numpy().tolist() for name, vector in found.items()}


def framed(body: bytes) -> bytes:
    """A file of one vector with a correct checksum for any body."""
    return b"\1" + struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))


@FORMS
def test_the_bytes_are_the_example_of_the_format(form):
    content, ranges = encode_deletion_vectors({"f": ONE_AND_THREE}, form)
    assert (content, ranges) == (EXAMPLES[form][0], (EXAMPLES[form][1],))


@FORMS
def test_the_example_of_the_format_is_read(form):
    content, found = EXAMPLES[form]
    assert read(content, found) == {"f": [1, 3]}


@given(st.dictionaries(st.text(min_size=1), ROWS_32, max_size=4))
def test_any_32_bit_vectors_read_back(rows):
    assert_read_back(rows, VectorForm.BITMAP32)


@given(st.dictionaries(st.text(min_size=1), ROWS_64, max_size=4))
def test_any_64_bit_vectors_read_back(rows):
    assert_read_back(rows, VectorForm.BITMAP64)


def assert_read_back(rows: dict[str, set[int]], form: VectorForm) -> None:
    vectors = {name: DeletionVector.of(positions) for name, positions in rows.items()}
    content, ranges = encode_deletion_vectors(vectors, form)
    assert read(content, *ranges) == {name: sorted(positions) for name, positions in rows.items()}


@FORMS
def test_one_vector_of_several_is_read_alone(form):
    vectors = {name: DeletionVector.of([number]) for number, name in enumerate("abc")}
    content, ranges = encode_deletion_vectors(vectors, form)
    assert read(content, ranges[1]) == {"b": [1]}


@FORMS
def test_long_runs_take_a_few_bytes_and_are_read(form):
    content, [found] = encode_deletion_vectors({"f": DeletionVector.of(range(10**6))}, form)
    assert len(content) < 400
    assert read(content, found)["f"][-1] == 10**6 - 1


def test_a_32_bit_vector_has_the_bytes_of_a_32_bit_bitmap_with_runs():
    rows = np.unique(np.concatenate([np.arange(5000), np.arange(70000, 200000, 3)]))
    content, [found] = encode_deletion_vectors({"f": DeletionVector.of(rows)}, VectorForm.BITMAP32)
    bitmap = BitMap(rows.tolist())
    bitmap.run_optimize()
    assert content[9 : 5 + found.length] == bitmap.serialize()


def test_a_64_bit_vector_has_a_bitmap_for_every_high_word_below_its_highest():
    vector = DeletionVector.of([2**33])
    content, [found] = encode_deletion_vectors({"f": vector}, VectorForm.BITMAP64)
    empty = "3a300000 00000000"
    bitmaps = f"00000000 {empty} 01000000 {empty} 02000000"
    assert bytes.fromhex(f"0300000000000000 {bitmaps}") in content
    assert found.length == len(content) - 1


def test_a_64_bit_vector_may_leave_gaps():
    bitmap = bytes.fromhex("3a300000 01000000 0000 0000 10000000 0500")
    body = bytes.fromhex("d1d33964 0100000000000000 07000000") + bitmap
    found = DeletionVectorRange("f", 1, len(body) + 8)
    assert read(framed(body), found) == {"f": [7 * 2**32 + 5]}


def test_a_row_beyond_the_32_bit_form_is_refused_with_what_to_set():
    with pytest.raises(InvalidRequestError, match=r"row 2147483648 .*bitmap64"):
        encode_deletion_vectors({"f": DeletionVector.of([2**31])}, VectorForm.BITMAP32)


def test_a_row_beyond_every_form_is_refused_before_it_fills_the_memory():
    with pytest.raises(
        InvalidRequestError, match=r"a deletion vector up to row \d+ would take more than 2 GiB"
    ):
        encode_deletion_vectors({"f": DeletionVector.of([2**62])}, VectorForm.BITMAP64)


@pytest.mark.parametrize("positions", [np.array([3, -1]), [3, -1]], ids=["numpy", "list"])
def test_a_row_before_the_first_is_refused(positions):
    with pytest.raises(InvalidRequestError, match="row"):
        DeletionVector.of(positions)


@given(ROWS_32, st.integers(0, 300), st.integers(0, 100))
def test_the_mask_keeps_exactly_the_rows_that_are_not_deleted(rows, start, count):
    mask = keep_mask(DeletionVector.of(rows), start, count)
    assert mask.tolist() == [row not in rows for row in range(start, start + count)]


@given(ROWS_64, ROWS_64)
def test_merged_vectors_delete_what_either_deletes(first, second):
    merged = DeletionVector.of(first).merged(DeletionVector.of(second))
    assert merged.to_numpy().tolist() == sorted(first | second)


@FORMS
def test_a_wrong_checksum_is_named_with_file_and_offset(form):
    content, found = EXAMPLES[form]
    damaged = content[:-1] + bytes([content[-1] ^ 1])
    place = len(content)
    with pytest.raises(
        CorruptTableError, match=f"index-0 is damaged near byte {place}: .* checksum"
    ):
        read(damaged, found)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"length": 25}, "has length 24, but the index manifest records 25"),
        ({"cardinality": 3}, "has 2 rows, but the index manifest records 3"),
        ({"offset": 0}, "should take 24 bytes from byte 0 on"),
        ({"offset": 30}, "has 33 bytes"),
        ({"length": -1}, "should take -1 bytes"),
        ({"length": 2**31 - 1}, "should take 2147483647 bytes"),
    ],
)
def test_a_manifest_that_says_something_else_is_an_error(change, reason):
    content, found = EXAMPLES[VectorForm.BITMAP32]
    with pytest.raises(CorruptTableError, match=reason):
        read(content, replace(found, **change))


def test_older_manifests_do_not_know_the_number_of_rows():
    content, found = EXAMPLES[VectorForm.BITMAP32]
    assert read(content, replace(found, cardinality=None)) == {"f": [1, 3]}


def test_a_magic_nobody_knows_is_refused():
    with pytest.raises(CorruptTableError, match="a deletion vector cannot start with deadbeef"):
        read(framed(bytes.fromhex("deadbeef")), DeletionVectorRange("f", 1, 4))


def test_a_missing_file_is_named_with_what_to_do():
    with pytest.raises(CorruptTableError, match=r"index-1 is missing .* repeat the call"):
        read_deletion_vectors(MemoryStorage("empty"), "index-1", [])


SAMPLES = [
    encode_deletion_vectors({"f": DeletionVector.of(rows)}, form)[0][5:-4]
    for form in VectorForm
    for rows in ([1, 3], range(9000), [*range(0, 400_000, 7), *range(500_000, 600_000)])
] + [encode_deletion_vectors({"f": DeletionVector.of([1, 2**33])}, VectorForm.BITMAP64)[0][5:-4]]


@given(st.sampled_from(SAMPLES), st.data())
def test_changed_bytes_with_a_right_checksum_give_our_error_or_a_vector(body, data):
    position = data.draw(st.one_of(st.integers(0, 60), st.integers(0, len(body) - 1)))
    noise = data.draw(st.one_of(st.binary(max_size=6), st.sampled_from([b"\xff" * 4, bytes(8)])))
    cut = data.draw(st.integers(0, 6))
    content = framed(body[:position] + noise + body[position + cut :])
    frame = 8 if content[5:9].hex() == "d1d33964" else 0
    try:
        vector = decode_deletion_vector(
            content[1:],
            DeletionVectorRange("f", 1, len(content) - 9 + frame),
            "index-0",
            remedy="restore it",
        )
    except CorruptTableError:
        return
    assert keep_mask(vector, 0, 100).sum() <= 100


@given(st.sampled_from(SAMPLES), st.data())
def test_a_truncated_file_is_never_a_vector(body, data):
    content = framed(body)
    frame = 8 if body[:4].hex() == "d1d33964" else 0
    length = data.draw(st.integers(0, len(content) - 1))
    with pytest.raises(CorruptTableError):
        read(content[:length], DeletionVectorRange("f", 1, len(body) + frame))


@pytest.mark.parametrize("body", [SAMPLES[0], SAMPLES[3]])
def test_announced_lengths_ask_for_no_memory(body):
    tracemalloc.start()
    for position in range(len(body) - 3):
        content = framed(body[:position] + b"\x7f\xff\xff\xff" + body[position + 4 :])
        with contextlib.suppress(CorruptTableError):
            read(content, DeletionVectorRange("f", 1, len(body)))
        with pytest.raises(CorruptTableError):
            read(b"\1\x7f\xff\xff\xff" + content[5:], DeletionVectorRange("f", 1, len(body)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 * 2**20
