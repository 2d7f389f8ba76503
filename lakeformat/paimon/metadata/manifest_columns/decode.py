# SPDX-License-Identifier: Apache-2.0
"""Decodes manifests column by column: the same field of thousands of records in one step.

The start of a record is known only after the record before it has been read. So every position that
looks like the start of an entry is a candidate, and all candidates are read at once. Then the
entries of each block must form a chain from the start of the block to its end: each entry starts
where the entry before it ends. The number of entries in a chain must equal the number in the header
of the block. The general decoder reads the files that this decoder cannot read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from lakeformat.files.avro.avro_container import AvroBlocks, NotPlainError
from lakeformat.paimon.metadata.manifest_columns.columns import (
    Column,
    ListColumn,
    Numbers,
    Positions,
)
from lakeformat.paimon.metadata.manifest_columns.concat import concat_columns
from lakeformat.paimon.metadata.manifest_columns.cursor import Cursor
from lakeformat.paimon.metadata.manifest_columns.shape import FieldShape
from lakeformat.types.unaligned import at_every_byte

__all__ = ["decode_columns"]

_GROUP_BYTES = 1 << 20
"""Blocks are decoded together if their total size in bytes is at most this number.

A group of this size has many records, but still fits into the CPU cache.
"""

_EMPTY_ROW_SIZE = 12
_FIRST_LOOK = 9
"""After this number of fields, the decoder drops the candidates that cannot be entries.

Most of the wrong candidates are found in these fields.
"""

_VERSION_BYTE = 4  # the number 2 in zig-zag form
_FIRST_PATHS = ["_VERSION", "_KIND", "_PARTITION"]

# The first 8 bytes of an entry: version, kind 0 or 1, the size of the partition in one or two
# bytes, and the arity at the start of the partition, whose upper half is zero.
_SHORT_SIZE = (np.uint64(0x000000FFFF81FDFF), np.uint64(0x0000000000000004))
_LONG_SIZE = (np.uint64(0x0000FFFF8081FDFF), np.uint64(0x0000000000800004))


def decode_columns(blocks: AvroBlocks, shape: Sequence[FieldShape]) -> list[Column]:
    """Return one column for each field of ``shape``, with the values of all records.

    Raise NotPlainError if the general decoder is needed.
    """
    if [field.path for field in shape[:3]] != _FIRST_PATHS:
        raise NotPlainError("its records do not start as those of a manifest")
    groups = [_decode_group(blocks.content, shape, *group) for group in _groups(blocks)]
    if not groups:
        return [Cursor(blocks.content, 0, np.zeros(0, np.int64)).read(field) for field in shape]
    return [concat_columns(parts) for parts in zip(*groups, strict=True)]


def _groups(blocks: AvroBlocks) -> Iterator[tuple[Positions, Positions, Numbers]]:
    """Yield groups of blocks that are read together.

    A group has the first byte, the end and the number of records of each of its blocks.

    Raise NotPlainError if a block without records has content.
    """
    starts = np.concatenate(([0], blocks.ends[:-1]))[: len(blocks.ends)]
    filled = blocks.counts > 0
    if (starts[~filled] != blocks.ends[~filled]).any():
        raise NotPlainError("a block without records has content")
    starts, ends, counts = starts[filled], blocks.ends[filled], blocks.counts[filled]
    first = 0
    while first < len(starts):
        last = int(np.searchsorted(ends, starts[first] + _GROUP_BYTES))
        last = min(max(last, first + 1), len(starts))
        yield starts[first:last], ends[first:last], counts[first:last]
        first = last


def _decode_group(
    content: NDArray[np.uint8],
    shape: Sequence[FieldShape],
    starts: Positions,
    ends: Positions,
    counts: Numbers,
) -> list[Column]:
    candidates = _find_candidates(content, int(starts[0]), int(ends[-1]))
    cursor = Cursor(content, int(ends[-1]), candidates.copy())
    columns = [cursor.read(field) for field in shape[:_FIRST_LOOK]]
    if not cursor.sound.all():
        likely = np.flatnonzero(cursor.sound)
        candidates = candidates[likely]
        cursor.keep(likely)
        columns = [_chosen(column, likely) for column in columns]
    columns += [cursor.read(field) for field in shape[_FIRST_LOOK:]]
    following = np.where(cursor.sound, cursor.places, -1)
    chosen = _follow(candidates, following, starts, ends, counts)
    return columns if chosen is None else [_chosen(column, chosen) for column in columns]


def _chosen(column: Column, rows: Positions) -> Column:
    taken = column.take(rows)
    return taken.compact() if isinstance(taken, ListColumn) else taken


def _find_candidates(content: NDArray[np.uint8], start: int, end: int) -> Positions:
    """Return the byte positions between ``start`` and ``end`` at which an entry may start.

    The bytes there look like a version, a kind, and a partition that has room for all of its
    fields.
    """
    found = np.flatnonzero(content[start:end] == _VERSION_BYTE) + start
    words = at_every_byte(content, "u8")[found]
    is_short, is_long = (words & mask == wanted for mask, wanted in (_SHORT_SIZE, _LONG_SIZE))
    likely = np.flatnonzero(is_short | is_long)
    found, words, is_short = found[likely], words[likely].view(np.int64), is_short[likely]
    # In zig-zag form, the lowest bit of a size is its sign.
    sizes = np.where(is_short, words >> 17 & 0x3F, (words >> 17 & 0x3F) | (words >> 18 & 0x1FC0))
    arity = np.where(is_short, words >> 40, words >> 48)
    arity = (arity & 0xFF) << 8 | (arity >> 8 & 0xFF)
    return found[sizes >= _EMPTY_ROW_SIZE + 8 * arity]


def _follow(
    candidates: Positions, following: Positions, starts: Positions, ends: Positions, counts: Numbers
) -> Positions | None:
    """Return the indexes of those ``candidates`` that are entries; None if all are.

    ``following`` has the position right after each candidate. Raise NotPlainError if the entries of
    a block do not form a chain from the start of the block to its end.
    """
    first = np.searchsorted(candidates, starts)
    if not len(candidates) or (candidates[first.clip(max=len(candidates) - 1)] != starts).any():
        raise NotPlainError("a block does not start with an entry")
    if len(candidates) == counts.sum() and _is_one_chain(
        candidates, following, first, ends, counts
    ):
        return None
    if counts.sum() > len(candidates):
        raise NotPlainError("a block has fewer entries than its header states")
    place_of = np.searchsorted(candidates, following).clip(max=len(candidates) - 1)
    links = np.where(candidates[place_of] == following, place_of, -1).tolist()
    chosen: list[int] = []
    for row, end, count in zip(first.tolist(), ends.tolist(), counts.tolist(), strict=True):
        for _ in range(count - 1):
            chosen.append(row)
            row = links[row]
            if row < 0:
                raise NotPlainError("an entry does not end where the next one starts")
        chosen.append(row)
        if following[row] != end:
            raise NotPlainError("a block and its last entry do not end at the same byte")
    return np.array(chosen, np.int64)


def _is_one_chain(
    candidates: Positions, following: Positions, first: Positions, ends: Positions, counts: Numbers
) -> bool:
    """Return True if every candidate is an entry, and the entries form the chains of all blocks."""
    whole = np.concatenate((first, [len(candidates)]))
    return bool(
        (np.diff(whole) == counts).all()
        and (following[:-1] == candidates[1:]).all()
        and following[-1] == ends[-1]
    )
