# SPDX-License-Identifier: Apache-2.0
"""The order of rows in a merge: by key, then ``sequence.field``, then sequence number."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain

import numpy as np
import pyarrow as pa

from lakeformat.paimon.datafile.system_fields import SEQUENCE_NUMBER, VALUE_KIND
from lakeformat.rows.groups import KeyGroups, Mask, Positions
from lakeformat.rows.key_words import KeyWord, Words, column_words
from lakeformat.rows.row_kinds import is_retract
from lakeformat.rows.word_order import sort_by_words

__all__ = ["MergeOrder"]


@dataclass(frozen=True, slots=True)
class MergeOrder:
    """The order in which the rows of one table are merged."""

    keys: tuple[str, ...]
    """The primary key without partition columns, in the order of the primary key."""
    sequence: tuple[str, ...] = ()
    """The columns of ``sequence.field``."""
    descending: bool = False
    """True if the smallest sequence value is the newest; null is always the oldest."""

    def group(self, rows: pa.Table, *, numbered: bool = True) -> KeyGroups:
        """Group rows by key, and sort the rows of each key from oldest to newest.

        If rows of a key compare equal, the later one in ``rows`` is newer. With ``numbered=False``,
        sequence numbers are not compared. This is right only if they are absent, or if they rise
        from row to row within each key.
        """
        words = chain.from_iterable(column_words(rows[key]) for key in self.keys)
        groups = sort_by_words(words, rows.num_rows)
        if len(groups) == rows.num_rows:
            return groups
        ages = list(self._sequence_words(rows, numbered=numbered))
        return _in_sequence(groups, ages) if ages else groups

    def _sequence_words(self, rows: pa.Table, *, numbered: bool) -> Iterator[KeyWord]:
        for name in self.sequence:
            column = rows[name]
            words = column_words(column)
            if column.null_count:
                yield next(words)  # null is the oldest value in both directions
            for word in words:
                yield partial(_reversed, word) if self.descending else word
        if numbered:
            yield from column_words(rows[SEQUENCE_NUMBER.name])
            yield partial(_adds, rows)


def _reversed(word: KeyWord, rows: Positions | None) -> Words:
    return ~word(rows)


def _adds(rows: pa.Table, positions: Positions | None) -> Words:
    """Return sort keys that put retracts before adds.

    Two writers can assign the same sequence number to two rows of a key. Then these sort keys
    decide.
    """
    kinds = rows[VALUE_KIND.name].to_numpy()
    return (~is_retract(kinds if positions is None else kinds[positions])).astype(np.uint64)


def _in_sequence(groups: KeyGroups, words: list[KeyWord]) -> KeyGroups:
    """Return ``groups`` with the rows of each key in sequence order.

    The rows of a key are sorted only if they are not in this order yet.
    """
    order = groups.order
    falls = _falls(groups, words)
    if not falls.any():
        return groups
    is_mixed = np.zeros(len(groups), np.bool_)
    is_mixed[groups.key_of[falls]] = True
    places = np.flatnonzero(is_mixed[groups.key_of])
    rows = order[places]
    by_words = np.lexsort((*(word(rows) for word in reversed(words)), groups.key_of[places]))
    order = order.copy()
    order[places] = rows[by_words]
    return KeyGroups(order, groups.starts)


def _falls(groups: KeyGroups, words: list[KeyWord]) -> Mask:
    """Return a mask, in the order of ``groups.order``, of rows older than the previous row of their
    key.
    """
    pairs = np.ones(len(groups.order), np.bool_)
    pairs[groups.starts] = False
    falls = np.zeros(len(groups.order), np.bool_)
    places = np.flatnonzero(pairs)
    for word in words:
        if not len(places):
            break
        before, here = word(groups.order[places - 1]), word(groups.order[places])
        falls[places[here < before]] = True
        places = places[here == before]
    return falls
