# SPDX-License-Identifier: Apache-2.0
"""The hash of rows: Murmur3 x86-32 with seed 42 over their bytes, without the arity.

All rows are hashed together: the first word of each row, then the second word of each, and so on.
"""

from __future__ import annotations

from itertools import takewhile

import numpy as np
from numpy.typing import NDArray

from lakeformat.paimon.binary_row.column_parts import (
    MASKS,
    ItemTail,
    RowParts,
    WideTail,
)
from lakeformat.rows.murmur import Lockstep, finish, mix_into
from lakeformat.types.unaligned import Positions, WordReader, Words

__all__ = ["hash_parts", "hash_row"]

_SEED = 42

# For fewer rows, one Python loop per row is faster than numpy steps over all rows.
_FEW = 16


def hash_row(row: bytes) -> int:
    """Return the signed 32-bit hash of one row."""
    lane = mix_into(_SEED, np.frombuffer(row, np.uint8))
    return int(finish(np.array([lane], np.uint32), len(row))[0])


def hash_parts(parts: RowParts) -> NDArray[np.int32]:
    """Return the signed 32-bit hash of each row, from headers, slots and items as columns."""
    shared = _shared_start(parts.header)
    state = Lockstep(parts.rows, mix_into(_SEED, shared.view(np.uint8)))
    for words in (*parts.header[len(shared) :], *parts.slots):
        state.mix(words if isinstance(words, np.ndarray) else np.full(parts.rows, words, np.uint64))
    for tail in parts.tails:
        if isinstance(tail, WideTail):
            for item_word in tail.words:
                state.mix(item_word)
        else:
            _mix_items(state, tail)
    return finish(state.lanes, parts.end)


def _shared_start(header: list[int | Words]) -> Words:
    """Return the leading header words that all rows have in common: they are hashed only once."""
    return np.array(list(takewhile(lambda word: isinstance(word, int), header)), np.uint64)


def _mix_items(state: Lockstep, tail: ItemTail) -> None:
    """Mix the words of the items, one word of each row per round.

    Rows with the longest items come first, so that the rows with words left are always the first
    rows of the arrays.
    """
    counts = (tail.sizes + 7) >> 3
    longest = int(counts.max(initial=0))
    if longest == 0:
        return
    if counts.min() == longest:
        _mix_descending(state, tail.source, tail.starts, tail.sizes)
        return
    narrow = np.uint8 if longest <= 0xFF else np.uint16 if longest <= 0xFFFF else np.int64
    order = np.argsort((longest - counts).astype(narrow), kind="stable")
    lanes = state.lanes
    state.lanes = lanes[order]
    _mix_descending(state, tail.source, tail.starts[order], tail.sizes[order])
    lanes[order] = state.lanes
    state.lanes = lanes


def _mix_descending(state: Lockstep, source: Words, starts: Positions, sizes: Positions) -> None:
    remaining = -((sizes + 7) >> 3)
    active, done = int(np.searchsorted(remaining, 0)), 0
    reader = WordReader(source, starts[:active])
    while active > _FEW:
        content = reader.read(active)
        going_on = int(np.searchsorted(remaining[:active], -(done + 1)))
        # Bytes after an item in its last word belong to other items; a row has zeros there.
        ended = slice(going_on, active)
        content[ended] &= MASKS[sizes[ended] - 8 * done]
        state.mix(content)
        active, done = going_on, done + 1
    for row in range(active):
        rest = source.view(np.uint8)[starts[row] + 8 * done : starts[row] + sizes[row]]
        state.lanes[row] = mix_into(int(state.lanes[row]), rest)
