"""The container of a file index: every body is found under its column and type."""

from __future__ import annotations

import contextlib
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakeformat.errors import CorruptTableError, InvalidRequestError, UnsupportedError
from lakeformat.files.byte_cursor import ByteCursor
from lakeformat.paimon.index.file_index import (
    EMPTY,
    decode_file_index,
    encode_file_index,
    open_column_index,
    read_file_index,
)
from lakeformat.paimon.index.file_index.modified_utf8 import encode_utf, read_utf
from lakeformat.storage import MemoryStorage
from lakeformat.types.types import STRING

INDEXES = {
    "a": {"bloom-filter": b"bloom", "bitmap": b"bits"},
    "tags[größe]": {"bitmap": None},
    "b": {"from-the-future": b"?"},
}
BODIES = st.dictionaries(st.text(max_size=5), st.none() | st.binary(max_size=9), max_size=3)
GOOD = encode_file_index(INDEXES)


def storing(content: bytes) -> MemoryStorage:
    storage = MemoryStorage("indexes")
    storage.overwrite("data-0.parquet.index", content)
    return storage


def read(content: bytes, columns=None):
    return read_file_index(storing(content), "data-0.parquet.index", columns)


def test_the_bytes_are_the_format_s():
    assert (
        encode_file_index({"b": {"bitmap": b"\xaa\xbb"}, "c": {"bsi": None}}).hex()
        == (
            "00054e4ed01a35ae"  # magic
            "00000001"  # version
            "00000043"  # length of the head
            "00000002"  # columns
            "000162" + "00000001" + "00066269746d6170" + "00000043" + "00000002"
            "000163" + "00000001" + "0003627369" + "ffffffff" + "00000000"
            "00000000"  # redundant length
            "aabb"
        )
    )


@given(st.dictionaries(st.text(max_size=5), BODIES, max_size=3))
def test_any_container_reads_back_from_memory_and_from_storage(indexes):
    content = encode_file_index(indexes)
    with_bodies = {column: by_type for column, by_type in indexes.items() if by_type}
    assert decode_file_index(content, "index") == with_bodies
    assert read(content) == with_bodies


def test_only_the_columns_that_are_asked_for_are_read():
    assert read(GOOD, {"a", "z"}) == {"a": INDEXES["a"]}


def test_an_index_without_a_body_proves_that_no_row_has_a_value():
    assert open_column_index("bitmap", STRING, None, "index") is EMPTY


def test_an_index_type_of_the_future_is_skipped():
    assert open_column_index("from-the-future", STRING, b"?", "index") is None


@pytest.mark.parametrize(
    ("text", "content"),
    [("a", "61"), ("\0", "c080"), ("é", "c3a9"), ("中", "e4b8ad"), ("😀", "eda0bdedb880")],
)
def test_names_are_in_java_s_modified_utf_8(text, content):
    encoded = encode_utf(text)
    assert encoded.hex() == f"{len(content) // 2:04x}{content}"
    assert read_utf(ByteCursor(encoded, "name", remedy="")) == text


@given(st.text())
def test_any_name_reads_back(text):
    assert read_utf(ByteCursor(encode_utf(text), "name", remedy="")) == text


def test_a_name_longer_than_its_length_can_say_is_refused():
    with pytest.raises(InvalidRequestError, match="70000 bytes"):
        encode_file_index({"n" * 70_000: {}})


@pytest.mark.parametrize(
    ("start", "change", "reason"),
    [
        (7, b"\0", "a file index cannot start with 0x"),
        (11, b"\0", "its format version is 0, but versions begin at 1"),
        (12, b"\x7f\xff\xff\xff", "the length of its head is 2147483647"),
        (12, b"\0\0\0\0", "the length of its head is 0"),
        (16, b"\xff\xff\xff\xff", "the number of columns cannot be -1"),
        (GOOD.index(b"bloom-filter") + 12, b"\0\0\0\0", "bloom-filter index of column a claims"),
        (
            GOOD.index(b"bloom-filter") + 16,
            b"\0\1\0\0",
            r"index of column a claims bytes \d+ to \d{5}, but indexes are at bytes",
        ),
        (
            GOOD.index(b"bloom-filter") + 16,
            b"\0\0\0\x0a",
            "its indexes together are longer than the file",
        ),
    ],
)
def test_a_damaged_head_is_named_with_what_to_do(start, change, reason):
    damaged = GOOD[:start] + change + GOOD[start + len(change) :]
    for decode in (lambda content: decode_file_index(content, "index"), read):
        with pytest.raises(CorruptTableError, match=rf"{reason}.*read without the file index"):
            decode(damaged)


def test_a_container_of_a_newer_version_is_not_called_damaged():
    newer = GOOD[:11] + b"\2" + GOOD[12:]
    for decode in (lambda content: decode_file_index(content, "index"), read):
        with pytest.raises(
            UnsupportedError,
            match=r"index: its file index version is 2, but this library reads up to 1: a newer "
            "program wrote it; upgrade this library, or set 'file-index.read.enabled' to 'false'",
        ):
            decode(newer)


def test_a_missing_file_is_named():
    with pytest.raises(CorruptTableError, match=r"x\.index is missing although a manifest"):
        read_file_index(MemoryStorage("empty"), "x.index")


@given(st.integers(0, len(GOOD) - 1), st.binary(max_size=8), st.integers(0, 8))
def test_changed_bytes_give_our_error_or_valid_bodies(position, noise, cut):
    damaged = GOOD[:position] + noise + GOOD[position + cut :]
    found = []
    for decode in (lambda content: decode_file_index(content, "index"), read):
        with contextlib.suppress(CorruptTableError, UnsupportedError):
            found.append(decode(damaged))
    # From memory and from storage the answer is the same.
    assert len(found) in (0, 2)
    assert found[:1] == found[1:]


@given(st.integers(0, len(GOOD) - 1))
def test_a_truncated_container_is_never_a_partial_answer(length):
    with pytest.raises(CorruptTableError):
        decode_file_index(GOOD[:length], "index")


def test_indexes_that_share_their_bytes_ask_for_no_memory():
    content = encode_file_index({f"c{number}": {"bitmap": b"x"} for number in range(1000)})
    body = bytes(2**20)
    start = len(content) - 1000
    place = (start).to_bytes(4, "big") + len(body).to_bytes(4, "big")
    shared = b"".join(
        part + (place if number < 1000 else b"")
        for number, part in enumerate(split_at_places(content, start))
    )
    tracemalloc.start()
    with pytest.raises(CorruptTableError, match="its indexes together are longer than the file"):
        decode_file_index(shared + body, "index")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5 * 2**20


def split_at_places(content: bytes, end: int) -> list[bytes]:
    """The head in pieces, without the start and length of each index."""
    pieces = content[:end].split(b"\x00\x06bitmap")
    return [
        (piece if number == 0 else piece[8:])
        + (b"\x00\x06bitmap" if number + 1 < len(pieces) else b"")
        for number, piece in enumerate(pieces)
    ]
