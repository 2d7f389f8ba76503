"""Footers are checked before row groups are copied: a false one must not reach a new file."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakeformat.files.parquet.join import CannotJoinError, RowGroups, read_row_groups
from tests.unit.files.false_footers import DAMAGES, with_footer


def stored(*values: int | None) -> bytes:
    stream = io.BytesIO()
    pq.write_table(pa.table({"n": pa.array(values, pa.int64())}), stream, row_group_size=2)
    return stream.getvalue()


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
