# SPDX-License-Identifier: Apache-2.0
"""Converts the sequence columns of a group to one whole number per row; a larger number is
newer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.paimon.key_order import orderable
from lakeformat.rows.groups import Mask, Positions
from lakeformat.rows.key_words import column_words
from lakeformat.rows.word_order import sort_by_words

__all__ = ["NEVER", "Sequences", "read_sequences"]

NEVER = np.iinfo(np.int64).min
"""The sequence of a key without a row, and of a row whose sequence columns are all null."""


@dataclass(frozen=True, slots=True)
class Sequences:
    """The sequence of each row in one sequence group."""

    numbers: Positions
    """The sequence of each row: a larger number is newer; ``NEVER`` where all columns are null."""
    present: Mask
    """True where at least one column is not null; other rows do not change the group."""


def read_sequences(rows: pa.Table, names: Sequence[str]) -> Sequences:
    """Return the sequence of each row in the group with the sequence columns ``names``.

    The columns are compared from left to right, and null is smallest. If ``rows`` lacks one of
    them, no row has a sequence. This happens only if no column of the group is read.
    """
    if not set(names) <= set(rows.column_names):
        return Sequences(np.full(rows.num_rows, NEVER), np.zeros(rows.num_rows, dtype=bool))
    present = np.zeros(rows.num_rows, dtype=bool)
    for name in names:
        present |= pc.is_valid(rows[name]).to_numpy()
    numbers = _whole_numbers(rows[names[0]]) if len(names) == 1 else None
    if numbers is None:
        numbers = _ranks(rows, names)
    numbers[~present] = NEVER
    return Sequences(numbers, present)


def _whole_numbers(column: pa.ChunkedArray) -> Positions | None:
    """Return whole numbers that sort as the values do, so that no ranks are needed; 0 for null.

    Return None for types that have no such numbers.
    """
    ordered = orderable(column)
    if pa.types.is_date32(ordered.type) or pa.types.is_time32(ordered.type):
        ordered = ordered.cast(pa.int32())
    elif pa.types.is_temporal(ordered.type):
        ordered = ordered.cast(pa.int64())
    if not pa.types.is_integer(ordered.type):
        return None
    numbers: Positions = pc.fill_null(ordered, 0).to_numpy().astype(np.int64)
    return numbers


def _ranks(rows: pa.Table, names: Sequence[str]) -> Positions:
    """Return the rank of each row's values; equal values share a rank."""
    words = chain.from_iterable(column_words(rows[name]) for name in names)
    equal = sort_by_words(words, rows.num_rows)
    ranks = np.empty(rows.num_rows, dtype=np.int64)
    ranks[equal.order] = equal.key_of
    return ranks
