# SPDX-License-Identifier: Apache-2.0
"""``rbm32``: the union of Roaring bitmaps in their portable form."""

from __future__ import annotations

from collections.abc import Sequence

from pyroaring import BitMap

from lakeformat.errors import CorruptTableError
from lakeformat.files.byte_cursor import ByteCursor
from lakeformat.files.roaring import encode_bitmap, read_bitmap

__all__ = ["union_of_bitmaps"]


def union_of_bitmaps(values: Sequence[bytes]) -> bytes:
    """Return the union of the bitmaps; raise ValueError if one is damaged."""
    try:
        return encode_bitmap(BitMap.union(*map(_decoded, values)))
    except CorruptTableError as reason:
        raise ValueError(str(reason)) from None


def _decoded(value: bytes) -> BitMap:
    return read_bitmap(ByteCursor(value, "its bitmap", remedy="write the bitmap again"))
