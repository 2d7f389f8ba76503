# SPDX-License-Identifier: Apache-2.0
"""``listagg``: joins texts by a delimiter; blank texts are left out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.paimon.merge.functions.elements import codes_of, elements_of, lists_of, pairs_of
from lakeformat.paimon.merge.functions.folding import Folding
from lakeformat.paimon.merge.functions.function import Accumulator, Column
from lakeformat.paimon.merge.functions.segments import combined
from lakeformat.rows.groups import KeyGroups, Mask, Positions

__all__ = ["ListaggFunction"]

# Java's whitespace, which excludes non-breaking spaces.
_BLANK = (
    r"^[\x{9}-\x{d}\x{1c}-\x{20}\x{1680}\x{2000}-\x{2006}\x{2008}-\x{200a}"
    r"\x{2028}\x{2029}\x{205f}\x{3000}]*$"
)


@dataclass(frozen=True, slots=True)
class ListaggFunction:
    """Joins non-blank texts with a delimiter.

    With ``distinct``, the first of these texts is kept unchanged. Later texts are split at the
    delimiter, and only parts that are new and not blank are added.
    """

    name: str
    column: str
    delimiter: str
    distinct: bool
    keeps_single: bool = False
    swaps_late: bool = True

    def accumulator(self, values: Column, keys: int) -> Accumulator:
        return Folding(self, values, keys)

    def reduce(self, values: Column, groups: KeyGroups) -> pa.Array:
        flat = combined(values)
        texts = flat.take(pa.array(groups.order))
        present = np.flatnonzero(~_is_blank(texts))
        keys, texts = groups.key_of[present], texts.take(pa.array(present))
        if self.distinct:
            keys, texts = self._distinct_tokens(keys, texts)
        has = np.zeros(len(groups), bool)
        has[keys] = True
        lists = lists_of(texts, keys, has, pa.list_(flat.type))
        return pc.binary_join(lists, self.delimiter)

    def _distinct_tokens(self, keys: Positions, texts: pa.Array) -> tuple[Positions, pa.Array]:
        """Return the parts of texts to join, and the key of each part.

        For each key, these are all parts of its first text, then the parts of later texts that are
        new and not blank.
        """
        is_first = np.ones(len(keys), bool)
        is_first[1:] = keys[1:] != keys[:-1]
        tokens = pc.split_pattern(texts, self.delimiter)
        everything = np.arange(len(keys))
        found = elements_of(tokens, KeyGroups(everything, everything))
        flat = tokens.values.take(pa.array(found.places))
        owners = keys[found.rows]
        is_new = np.zeros(len(flat), bool)
        is_new[pairs_of(owners, codes_of(flat)).first] = True
        chosen = np.flatnonzero(is_first[found.rows] | (is_new & ~_is_blank(flat)))
        return owners[chosen], flat.take(pa.array(chosen))


def _is_blank(texts: pa.Array) -> Mask:
    """Return a mask of the texts that are null, empty or whitespace alone."""
    if not len(texts):
        return np.zeros(0, bool)
    offsets = _offsets(texts)
    blank: Mask = offsets[1:] == offsets[:-1]
    if texts.null_count:
        blank |= ~np.asarray(texts.is_valid())
    # Few texts begin with whitespace: only those are checked as a whole.
    data = np.frombuffer(texts.buffers()[2] or b"", np.uint8)
    if not len(data):
        return blank
    first = data[np.minimum(offsets[:-1], len(data) - 1)]
    doubtful = np.flatnonzero(~blank & ((first <= ord(" ")) | (first >= 0xE1)))
    if len(doubtful):
        found = pc.match_substring_regex(texts.take(pa.array(doubtful)), _BLANK)
        blank[doubtful] = np.asarray(found).astype(bool)
    return blank


def _offsets(texts: pa.Array) -> Positions:
    width = np.int64 if pa.types.is_large_string(texts.type) else np.int32
    raw = np.frombuffer(texts.buffers()[1], width)
    return raw[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
