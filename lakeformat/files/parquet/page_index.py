# SPDX-License-Identifier: Apache-2.0
"""The optional parts of a Parquet file beside its pages: page indexes and Bloom filters.

The footer has their offsets. A reader that does not find them reads more pages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import cast

from lakeformat.files.parquet.thrift_compact import (
    Struct,
    ThriftKind,
    ThriftList,
    number_in,
    parse_struct,
    serialize_struct,
    structs_in,
)
from lakeformat.types.count_text import counted

__all__ = ["PageIndex", "bloom_filter", "index_extents", "page_index", "set_bloom_filter"]

ReadBytes = Callable[[int, int], bytes]
"""A function that returns bytes of a file; its arguments are the offset and the number of bytes."""

# Member numbers of positions, each followed by its length: in a column chunk,
_PAGES, _BOUNDS = 4, 6
# and in its description.
_BLOOM_FILTER = 14
# Members of the index of positions and of one page in it,
_LOCATIONS, _PLACE, _SIZE = 1, 1, 2
# and the members of the index of bounds with one value for each page.
_OF_EACH_PAGE = (1, 2, 3)


@dataclass(frozen=True, slots=True)
class PageIndex:
    """The page index of one column chunk.

    In a file, the page indexes of all chunks follow the pages of all chunks.
    """

    chunk: Struct
    bounds: bytes
    pages: bytes

    def place_bounds(self, place: int) -> bytes:
        """Return the bytes of the column index (the bounds), which are to be written at ``place``.

        The offset is set in the metadata of the chunk.
        """
        _set(self.chunk, _BOUNDS, place, len(self.bounds))
        return self.bounds

    def place_pages(self, place: int) -> bytes:
        """Return the bytes of the offset index (the pages), which are to be written at ``place``.

        The offset is set in the metadata of the chunk.
        """
        _set(self.chunk, _PAGES, place, len(self.pages))
        return self.pages


def index_extents(chunk: Struct, described: Struct) -> Iterator[tuple[int, int]]:
    """Yield the offset and the size of each index and Bloom filter of a column chunk.

    ``described`` is the chunk's metadata, which has the offset of the Bloom filter.
    """
    for members, first in ((chunk, _PAGES), (chunk, _BOUNDS), (described, _BLOOM_FILTER)):
        if first in members and first + 1 in members:
            yield number_in(members, first), number_in(members, first + 1)


def page_index(
    chunk: Struct, read: ReadBytes, extent: tuple[int, int], distance: int
) -> PageIndex | None:
    """Return the page index of a chunk, for pages that are moved by ``distance`` bytes.

    ``extent`` has the offset and the size of the pages of the chunk's row group. Return None if the
    chunk has no index, or an invalid one. The offsets of the old index are removed from ``chunk``.
    """
    places = [chunk.pop(each, None) for each in range(_PAGES, _BOUNDS + 2)]
    if None in places:
        return None
    pages_at, pages_size, bounds_at, bounds_size = (cast(int, each[1]) for each in places if each)
    try:
        bounds = read(bounds_at, bounds_size)
        pages = parse_struct(read(pages_at, pages_size))
        locations = structs_in(pages, _LOCATIONS)
        _require_bounds(parse_struct(bounds), len(locations))
        for location in locations:
            _move(location, extent, distance)
        return PageIndex(chunk, bounds, serialize_struct(pages))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None


def bloom_filter(described: Struct, read: ReadBytes) -> bytes | None:
    """Return the bytes of a chunk's Bloom filter, and remove its offset from the metadata.

    Return None if the chunk has no Bloom filter, or if the size of the filter is unknown.
    """
    place, size = described.pop(_BLOOM_FILTER, None), described.pop(_BLOOM_FILTER + 1, None)
    return None if place is None or size is None else read(cast(int, place[1]), cast(int, size[1]))


def set_bloom_filter(described: Struct, place: int, size: int) -> None:
    """Set the offset and the size of a Bloom filter in the metadata of its chunk."""
    _set(described, _BLOOM_FILTER, place, size)


def _require_bounds(bounds: Struct, pages: int) -> None:
    counts = {len(cast(ThriftList, bounds[each][1]).items) for each in _OF_EACH_PAGE}
    if counts != {pages}:
        shown = " or ".join(map(str, sorted(counts)))
        raise ValueError(f"a page index lists {counted(pages, 'page')}, but bounds for {shown}")


def _move(location: Struct, extent: tuple[int, int], distance: int) -> None:
    start, length = extent
    place, size = number_in(location, _PLACE), number_in(location, _SIZE)
    if not 0 <= place - start <= place - start + size <= length:
        raise ValueError(
            f"an index names a page of {size} bytes at {place}, outside of the pages of its row "
            "group"
        )
    location[_PLACE] = ThriftKind.I64, place + distance


def _set(members: Struct, number: int, place: int, size: int) -> None:
    members[number] = ThriftKind.I64, place
    members[number + 1] = ThriftKind.I32, size
