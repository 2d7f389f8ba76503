# SPDX-License-Identifier: Apache-2.0
"""Finds thousands of records at once by a text that each of them has, and reads their fields.

Avro does not store the length of a record, so its start is usually known only after the record
before it has been read. To avoid this, one text field is chosen, such as the format of a file. Each
place where its text, such as ``PARQUET``, occurs is taken as that field of one record. From these
places all records are read at once to their ends, and the end of a record is the start of the next
one. Then the fields before the text are read from these starts. They must end exactly where the
text occurs, which proves that all records are correct. ``NotPlainError`` is raised for a file that
cannot be read in this way; the caller then uses the general decoder.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from lakeformat.files.avro.avro_container import AvroBlocks, NotPlainError
from lakeformat.files.avro.record_reader import ByteWindow, FieldValues, Lists, RecordReader, Spans
from lakeformat.files.avro.record_shape import Atom, AtomShape, Shape
from lakeformat.types.unaligned import Bytes, Positions, at_every_byte

__all__ = ["RecordFields", "read_windows"]

_WINDOW_BYTES = 2 << 20
"""The number of bytes that are read at once: many records, but few enough bytes for the CPU
cache.
"""
_LARGEST_WINDOW_BYTES = 64 << 20
_SHORTEST_TEXT = 3
"""The least length in bytes of a text to search for: shorter texts occur by chance too often."""
_WORD_BYTES = 8
_MASKS = np.array([(1 << 8 * size) - 1 for size in range(9)], np.uint64)


@dataclass(frozen=True, slots=True)
class RecordFields:
    """The fields of a record in the order of their bytes, and the text field by which records are
    found.
    """

    shapes: Mapping[str, Shape]
    text: str
    """The path of the text field whose values are searched for."""
    keys: Collection[int] | None = None
    """The keys of the pairs to return from lists of pairs; None returns all pairs."""

    def __post_init__(self) -> None:
        shape = self.shapes.get(self.text)
        required = (Atom.TEXT, None)
        if not isinstance(shape, AtomShape) or (shape.atom, shape.null_branch) != required:
            raise NotPlainError(f"the records have no required text field {self.text}")
        if not all(isinstance(self.shapes[name], AtomShape) for name in self.before):
            raise NotPlainError(f"the records have a list before the field {self.text}")

    @property
    def before(self) -> list[str]:
        """The paths of the fields before the text field."""
        names = list(self.shapes)
        return names[: names.index(self.text)]

    @property
    def after(self) -> list[str]:
        """The paths of the text field and of the fields after it."""
        names = list(self.shapes)
        return names[names.index(self.text) :]

    def read(self, reader: RecordReader, names: list[str]) -> dict[str, FieldValues]:
        """Return the fields with the paths ``names`` of all records, by path.

        ``reader`` must be at the first of these fields.
        """
        return {name: reader.read(self.shapes[name], self.keys) for name in names}


@dataclass(frozen=True, slots=True)
class _Pattern:
    """The bytes to search for: the encoded size of a text, and the first bytes of the text."""

    word: int
    size: int

    def places(self, data: Bytes, end: int) -> Positions:
        """Return the positions before ``end`` where the pattern occurs."""
        last = self.size - 1
        found = np.flatnonzero(data[last : end + last] == self.word >> 8 * last & 0xFF)
        words = at_every_byte(data, "u8")[found] & _MASKS[self.size]
        places: Positions = found[words == np.uint64(self.word)]
        return places


def read_windows(blocks: AvroBlocks, fields: RecordFields) -> Iterator[dict[str, FieldValues]]:
    """Yield the fields of many records at a time, by path.

    ``NotPlainError`` may be raised after some fields were yielded: then ignore these, and read the
    file with the general decoder.
    """
    ends = np.concatenate(([0], blocks.ends))
    filled = blocks.counts > 0
    if (ends[:-1] != ends[1:])[~filled].any():
        raise NotPlainError("a block without records has content")
    firsts, end = ends[:-1][filled], int(ends[-1])
    patterns = _patterns(blocks, fields, firsts)
    starts: list[Positions] = []
    start, size = 0, _WINDOW_BYTES
    while start < end:
        window = ByteWindow(blocks.content[start:], min(size, end - start))
        places, after, values = _read_window(window, fields, patterns)
        if len(places):
            starts.append(places + start)
            start += after
            yield values
        elif start + size >= end or size >= _LARGEST_WINDOW_BYTES:
            raise NotPlainError("a record has no end")
        else:
            size *= 2
    _check_blocks(np.concatenate([ends[:0], *starts]), firsts, blocks.counts[filled])


def _patterns(blocks: AvroBlocks, fields: RecordFields, firsts: Positions) -> set[_Pattern]:
    """Return the patterns of the texts in the first record of each block."""
    window = ByteWindow(blocks.content, int(blocks.ends[-1]) if len(blocks.ends) else 0)
    reader = RecordReader(window, firsts.copy())
    fields.read(reader, fields.before)
    places = np.minimum(reader.places, window.end)
    text = fields.read(reader, [fields.text])[fields.text].content
    assert isinstance(text, Spans)
    if not reader.finish().all() or (text.sizes < _SHORTEST_TEXT).any():
        raise NotPlainError(
            f"the first record of a block is incomplete, or its field {fields.text} is shorter "
            f"than {_SHORTEST_TEXT} bytes"
        )
    sizes = np.minimum(text.sizes + 1, _WORD_BYTES)
    words = at_every_byte(blocks.content, "u8")[places] & _MASKS[sizes]
    return {_Pattern(word, size) for word, size in zip(words.tolist(), sizes.tolist(), strict=True)}


def _read_window(
    window: ByteWindow, fields: RecordFields, patterns: set[_Pattern]
) -> tuple[Positions, int, dict[str, FieldValues]]:
    """Return the starts of all complete records in a window, the end of the last record, and the
    fields.
    """
    found = [each.places(window.data, window.end) for each in patterns]
    texts = found[0] if len(found) == 1 else np.unique(np.concatenate(found))
    reader = RecordReader(window, texts.copy())
    values = fields.read(reader, fields.after)
    broken = np.flatnonzero(~reader.finish())
    count = int(broken[0]) if len(broken) else len(texts)
    if not count:
        return texts[:0], 0, {}
    ends = reader.places[:count]
    starts = np.concatenate(([0], ends[:-1]))
    head = RecordReader(window, starts.copy())
    heads = fields.read(head, fields.before)
    if not head.finish().all() or (head.places != texts[:count]).any():
        raise NotPlainError("a record does not end where the next one starts")
    return starts, int(ends[-1]), heads | {name: _first(v, count) for name, v in values.items()}


def _first(values: FieldValues, count: int) -> FieldValues:
    content = values.content
    match content:
        case Spans():
            content = Spans(content.data, content.starts[:count], content.sizes[:count])
        case Lists():
            counts = content.counts[:count]
            total = int(counts.sum())
            content = Lists(counts, tuple(_first_items(each, total) for each in content.items))
        case _:
            content = content[:count]
    return FieldValues(content, None if values.present is None else values.present[:count])


def _first_items(items: Positions | Spans, total: int) -> Positions | Spans:
    if isinstance(items, Spans):
        return Spans(items.data, items.starts[:total], items.sizes[:total])
    return items[:total]


def _check_blocks(starts: Positions, firsts: Positions, counts: Positions) -> None:
    """Raise ``NotPlainError`` if a block has another number of records than its header claims.

    ``firsts`` are the starts of the blocks, ``starts`` the starts of the records, ``counts`` the
    claimed numbers.
    """
    places = np.searchsorted(starts, firsts)
    if (
        len(starts) != counts.sum()
        or (starts.take(places, mode="clip") != firsts).any()
        or (np.diff(places, append=len(starts)) != counts).any()
    ):
        raise NotPlainError("a block does not have as many records as it announces")
