# SPDX-License-Identifier: Apache-2.0
"""Sorts rows by the values of columns, one column after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from lakeformat.rows.groups import Positions
from lakeformat.rows.key_words import KeyWord, column_words
from lakeformat.rows.repeated_values import with_dictionaries
from lakeformat.rows.word_order import sort_by_words
from lakeformat.types.arrow_memory import array_of

__all__ = ["positions_by_values"]


def positions_by_values(keys: Sequence[pa.Array], directions: Sequence[str]) -> Positions:
    """Return the positions of rows in sorted order; equal rows keep their order.

    ``directions`` has ``ascending`` or ``descending`` for each key. Nulls are less than all values,
    -0.0 is less than 0.0, and NaN is the largest number.
    """
    return sort_by_words(_words(keys, directions), len(keys[0])).order


def _words(keys: Sequence[pa.Array], directions: Sequence[str]) -> Iterator[KeyWord]:
    for column, direction in zip(keys, directions, strict=True):
        for word in column_words(_ranked(column)):
            yield word if direction == "ascending" else _inverted(word)


def _ranked(column: pa.Array) -> pa.Array:
    """Return the rank of each text if texts repeat, because numbers sort faster.

    Any other column is returned unchanged.
    """
    found = with_dictionaries(pa.table([column], ["key"]), ()).column(0).combine_chunks()
    if not pa.types.is_dictionary(found.type):
        return column
    values = found.dictionary
    order = sort_by_words(column_words(values), len(values)).order
    ranks = np.empty(len(values), np.int64)
    ranks[order] = np.arange(len(values))
    return array_of(ranks).take(found.indices)


def _inverted(word: KeyWord) -> KeyWord:
    return lambda rows: ~word(rows)
