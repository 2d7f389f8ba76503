"""Files are parted by the ranges of their keys: what shares none is never merged."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakeformat.errors import CorruptTableError
from lakeformat.paimon.binary_row import encode_row, frame_row
from lakeformat.paimon.merge.sections import key_sections
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta
from lakeformat.types.type_text import parse_type

BIGINT, TEXT = parse_type("BIGINT NOT NULL"), parse_type("STRING NOT NULL")


def file(least, most, *, types=(BIGINT,), newest=0, name="f") -> DataFileMeta:
    framed = [
        frame_row(encode_row(key if isinstance(key, tuple) else (key,), types), len(types))
        for key in (least, most)
    ]
    return DataFileMeta(
        file_name=name,
        file_size=1,
        row_count=1,
        min_sequence_number=newest,
        max_sequence_number=newest,
        schema_id=0,
        min_key=framed[0],
        max_key=framed[1],
    )


def sections(*ranges, types=(BIGINT,)):
    return key_sections([file(*each, types=types) for each in ranges], types)


def test_files_whose_keys_do_not_meet_are_sections_of_their_own_in_key_order():
    assert sections((20, 29), (0, 9), (10, 19)) == [((1,),), ((2,),), ((0,),)]


def test_a_shared_key_joins_files_into_one_section_with_a_run_each():
    assert sections((0, 10), (10, 20)) == [((0,), (1,))]


def test_files_join_through_others_they_do_not_meet_themselves():
    [section] = sections((0, 5), (10, 15), (4, 11))
    assert sorted(section) == [(0, 1), (2,)]


def test_runs_come_oldest_first():
    files = [file(0, 9, newest=7), file(1, 8, newest=3), file(2, 7, newest=5)]
    assert key_sections(files, [BIGINT]) == [((1,), (2,), (0,))]


def test_keys_of_several_columns_and_texts_are_compared_as_rows_are():
    types = (TEXT, BIGINT)
    ranges = [(("a", 5), ("b", 1)), (("b", 2), ("b", 9)), (("ab", 0), ("ab", 0))]
    assert sections(*ranges, types=types) == [((0,), (2,)), ((1,),)]


def test_no_files_are_no_sections():
    assert key_sections([], [BIGINT]) == []


def test_a_file_that_ends_before_it_starts_is_damage():
    with pytest.raises(CorruptTableError, match="data file f is damaged: its first key is greater"):
        sections((9, 0))


def test_a_key_that_is_no_key_is_damage_and_names_the_file():
    wrong = file((1, 2), (1, 2), types=(BIGINT, BIGINT), name="data-x.parquet")
    with pytest.raises(CorruptTableError, match="_MIN_KEY of data file data-x"):
        key_sections([file(0, 1), wrong], [BIGINT])


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 6)), max_size=12))
def test_sections_are_apart_and_runs_are_the_fewest(starts_and_lengths):
    ranges = [(start, start + length) for start, length in starts_and_lengths]
    found = sections(*ranges)
    assert sorted(i for section in found for run in section for i in run) == [*range(len(ranges))]
    reached = -1
    for section in found:
        files = [ranges[i] for run in section for i in run]
        assert min(least for least, _ in files) > reached
        reached = max(most for _, most in files)
        for run in section:
            for before, after in pairwise(run):
                assert ranges[before][1] < ranges[after][0]
        deepest = max(sum(a <= key <= b for a, b in files) for key in range(37))
        assert len(section) == deepest
