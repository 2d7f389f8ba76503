"""Footers are checked before row groups are copied: a false one must not reach a new file."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakeformat.files.parquet.end import footer_of
from lakeformat.files.parquet.join import (
    CannotJoinError,
    JoinedParquet,
    RowGroups,
    read_row_groups,
)
from lakeformat.files.parquet.thrift_compact import parse_struct
from tests.unit.files.false_footers import DAMAGES, with_footer


def stored(*values: int | None) -> bytes:
    stream = io.BytesIO()
    pq.write_table(pa.table({"n": pa.array(values, pa.int64())}), stream, row_group_size=2)
    return stream.getvalue()


def indexed() -> bytes:
    """A file with several pages in a chunk, their index, and Bloom filters."""
    values = {"n": pa.array([None, *range(99)], pa.int64()), "s": [f"t{n % 7}" for n in range(100)]}
    stream = io.BytesIO()
    pq.write_table(
        pa.table(values),
        stream,
        row_group_size=40,
        write_page_index=True,
        max_rows_per_page=15,
        bloom_filter_options={"n": {"ndv": 50}},
    )
    return stream.getvalue()


def joined(*contents: bytes) -> bytes:
    stream = io.BytesIO()
    made = JoinedParquet(stream)
    for content in contents:
        made.add(io.BytesIO(content), read(content))
    made.close()
    return stream.getvalue()


def beside_pages(content: bytes) -> list[tuple[bytes, list[bytes], bytes]]:
    """The index of bounds, the pages that the index names, and the Bloom filter of each chunk."""
    found = []
    for group in parse_struct(footer_of(content))[4][1].items:
        for chunk in group[1][1].items:
            bounds, pages = part(content, chunk, 6), parse_struct(part(content, chunk, 4))
            places = [(each[1][1], each[2][1]) for each in pages[1][1].items]
            named = [content[place : place + size] for place, size in places]
            found.append((bounds, named, part(content, chunk[3][1], 14)))
    return found


def part(content: bytes, members, number: int) -> bytes:
    if number not in members:
        return b""
    place = members[number][1]
    return content[place : place + members[number + 1][1]]


def read(content: bytes) -> RowGroups:
    return read_row_groups(io.BytesIO(content), len(content))


def test_a_sound_footer_has_the_sizes_of_its_row_groups():
    found = read(stored(1, 2, 3, 4, 5))
    assert (found.rows, found.count) == (5, 3)
    assert sum(found.sizes) < len(stored(1, 2, 3, 4, 5))


@pytest.mark.parametrize("name", DAMAGES)
def test_a_footer_that_contradicts_its_file_is_refused(name):
    with pytest.raises(CannotJoinError):
        read(with_footer(stored(1, 2, 3, 4, 5), DAMAGES[name]))


def test_nulls_are_those_of_all_row_groups():
    assert read(stored(1, 2, 3)).has_no_null("n")
    assert not read(stored(1, 2, None)).has_no_null("n")
    assert not read(stored(1, 2, 3)).has_no_null("unknown")


def test_an_empty_file_has_the_same_columns():
    content = stored(1, 2, 3)
    empty = pq.read_table(io.BytesIO(read(content).empty_file()))
    assert (empty.num_rows, empty.schema) == (0, pq.read_schema(io.BytesIO(content)))


def test_indexes_of_pages_and_bloom_filters_are_copied():
    source, other = indexed(), stored(1)
    found = beside_pages(joined(source, source))
    assert found == beside_pages(source) * 2
    assert [len(pages) for _, pages, _ in found] == [3, 3, 3, 3, 2, 2] * 2
    assert all(filters for _, _, filters in found[::2])
    assert pq.read_table(io.BytesIO(joined(source, source))).num_rows == 200
    assert len(joined(other)) == len(other), "a file without them gets none"


def _of_first_chunk(content: bytes, change) -> bytes:
    return with_footer(content, lambda footer: change(footer[4][1].items[0][1][1].items[0]))


def test_an_index_that_names_bytes_outside_of_its_pages_is_left_out():
    """Readers do without an index, but would follow a false one."""

    def swap(footer):  # the positions of pages of two row groups
        first, second, _ = (group[1][1].items[0] for group in footer[4][1].items)
        for member in (4, 5):
            first[member], second[member] = second[member], first[member]

    made = joined(with_footer(indexed(), swap))
    groups = parse_struct(footer_of(made))[4][1].items
    found = [[sorted({4, 6} & {*chunk}) for chunk in group[1][1].items] for group in groups]
    assert found == [[[], [4, 6]], [[], [4, 6]], [[4, 6], [4, 6]]]


def test_an_index_with_bounds_of_other_pages_is_left_out():
    def swap(footer):  # the bounds of row groups with three pages and with two
        first, _, last = (group[1][1].items[0] for group in footer[4][1].items)
        for member in (6, 7):
            first[member], last[member] = last[member], first[member]

    made = joined(with_footer(indexed(), swap))
    groups = parse_struct(footer_of(made))[4][1].items
    assert [{4, 6} <= {*group[1][1].items[0]} for group in groups] == [False, True, False]


@pytest.mark.parametrize("number", [4, 6])
def test_an_index_beyond_the_file_is_refused(number):
    def move(chunk):
        chunk[number] = (chunk[number][0], 1 << 40)

    with pytest.raises(CannotJoinError):
        read(_of_first_chunk(indexed(), move))


def test_the_same_bytes_for_many_indexes_are_refused():
    """A small file could otherwise ask for the same bytes thousands of times."""

    def repeat(footer):
        first, second, *_ = footer[4][1].items
        for member in (6, 7):
            second[1][1].items[0][member] = first[1][1].items[0][member]

    with pytest.raises(CannotJoinError):
        read(with_footer(indexed(), repeat))
