# SPDX-License-Identifier: Apache-2.0
"""Returns the values of one key in a column of maps, such as the lower bounds of one field."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.types.arrow_memory import array_of

__all__ = ["map_entry"]


def map_entry(maps: pa.ChunkedArray, key: int) -> pa.Array:
    """Return the value of ``key`` in each map; null if the map is null or lacks the key."""
    parts = [_of_chunk(chunk, key) for chunk in maps.chunks]
    return pa.concat_arrays([pa.nulls(0, maps.type.item_type), *parts])


def _of_chunk(maps: pa.MapArray, key: int) -> pa.Array:
    offsets = maps.offsets.to_numpy()
    first, last = int(offsets[0]), int(offsets[-1])
    keys = maps.keys.to_numpy()[first:last]
    places = np.flatnonzero(keys == key) + first
    rows = np.searchsorted(offsets, places, side="right") - 1
    found = np.full(len(maps), -1, np.int64)
    found[rows] = places
    return maps.items.take(pc.if_else(array_of(found >= 0), array_of(found), None))
