"""The score from 0 to 100, against examples worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from lakeformat.tables.health.score import Pending, Score, score

MIB = 1 << 20
ENOUGH_BYTES = 0.75 * 128 * MIB


def pending(*partitions: tuple[int, int, int, int, int], enough_files: float = 12) -> Pending:
    """Files, bytes, rows, deletes and hidden rows of each partition."""
    files, sizes, rows, deletes, hidden = np.array(partitions, np.int64).reshape(-1, 5).T
    return Pending(
        files=files,
        bytes=sizes,
        rows=rows,
        deletes=deletes,
        hidden=hidden,
        enough_files=np.full(len(files), enough_files),
        enough_bytes=ENOUGH_BYTES,
    )


MANY_SMALL = (40, 160 * MIB, 1000, 20, 50)
MERGED = (2, 160 * MIB, 1000, 0, 0)


@pytest.mark.parametrize(
    ("partitions", "parts", "total"),
    [
        # 40 files of 4 MiB, 2% deletes, 5% hidden: everything weighs in full.
        ([MANY_SMALL], (2, 32, 15), 49),
        # Merged into two of 80 MiB: 2 of 12 files, each five sixths of enough.
        ([MERGED], (39, 40, 20), 99),
        # One file is never too many, however small it is and whatever it deletes.
        ([(1, 10, 10, 10, 10)], (40, 40, 20), 100),
        ([(0, 0, 0, 0, 0)], (40, 40, 20), 100),
        ([], (40, 40, 20), 100),
        # The worst case: countless tiny files, and half of the rows deleted.
        ([(10**6, 10**9, 100, 50, 50)], (1, 0, 0), 1),
        # Twelve files that hold next to nothing cost next to nothing: f is near 0.
        ([(12, 1, 100, 50, 50)], (40, 40, 20), 100),
        # The means, rounded up: (2 + 39) / 2 is 21, (32 + 40) / 2 is 36, (15 + 20) / 2 is 18.
        ([MANY_SMALL, MERGED], (21, 36, 18), 75),
    ],
)
def test_the_score_is_what_the_formula_says(partitions, parts, total):
    found = score(pending(*partitions))
    assert (found.small_files, found.rows_to_merge, found.hidden_rows) == parts
    assert found.total == total


def test_one_file_is_fine_even_where_one_is_as_many_as_there_may_be():
    one = (1, 96 * MIB, 100, 50, 50)
    assert score(pending(one, enough_files=1)).total == 100


def test_what_is_exact_is_not_rounded_up():
    """8% of deletes cost 32 of 40 points; as binary fractions 32 and a little less."""
    assert score(pending((40, 160 * MIB, 100, 8, 0))).rows_to_merge == 8


def test_files_without_rows_delete_nothing():
    assert score(pending((40, 160 * MIB, 0, 0, 0))) == Score(2, 40, 20)


def test_how_many_files_are_too_many_may_be_said():
    """12 of 24 files are half as bad: f is 0.5, and 40 - 20 * (1 - 8 / 96) is 21.67."""
    half = (12, 96 * MIB, 1000, 0, 0)
    assert score(pending(half, enough_files=24)).small_files == 22
    assert score(pending(half)).small_files == 4
