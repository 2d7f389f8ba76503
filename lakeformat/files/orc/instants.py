# SPDX-License-Identifier: Apache-2.0
"""TIMESTAMP_LTZ in ORC files: a JVM outside of UTC stores it shifted by the offset of its zone.

It does so if ``orc.timestamp-ltz.legacy.type`` is true, the default. When the JVM writes an
instant, it treats the UTC date and time of the instant as a local time in its own zone, and stores
the instant of that local time. This module reverses the shift for readers, with the zone that the
file names. A file names its zone only if it has a column of type TIMESTAMP; for other files,
``lake.orc-writer-timezone`` gives the zone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakeformat.errors import UnsupportedError
from lakeformat.files.nested_arrays import (
    list_around,
    map_around,
    map_entries,
    struct_around,
    struct_children,
)
from lakeformat.files.orc.footer import timestamp_millis
from lakeformat.files.orc.tail import OrcTail
from lakeformat.types.java_zones import ZoneOffsets, zone_offsets

__all__ = ["INSTANT", "InstantRule", "as_written", "is_outside_utc", "offsets_of"]

INSTANT = 18
"""The number of the type TIMESTAMP_LTZ in ORC."""
ZONE_OPTION = "lake.orc-writer-timezone"

_NANOS_PER_MILLI = 1_000_000
_FARTHEST = 2**63 - 1 - 24 * 3_600_000 * _NANOS_PER_MILLI
_SMALLEST_OFFSET_MILLIS = 15 * 60_000

Millis = tuple[int, int]


@dataclass(frozen=True, slots=True)
class InstantRule:
    """The table options for TIMESTAMP_LTZ in ORC files, and the bounds of one file."""

    is_legacy: bool = False
    unnamed_zone: str = ""
    """The zone of the JVMs that wrote files without a zone; "" means UTC."""
    bounds: Callable[[], Mapping[str, Millis]] | None = None
    """A function that returns the least and greatest instant of each column in milliseconds, from
    the manifest.

    If it is None, the instants are not compared with the manifest.
    """


def offsets_of(
    rule: InstantRule, zones: set[str], tail: OrcTail, columns: Sequence[str]
) -> ZoneOffsets | None:
    """Return the offsets that correct the instants of a file; None if the instants are not shifted.

    ``zones`` are the zones in the file. Raise ``UnsupportedError`` for several zones, for a zone
    that this machine does not know, and if the bounds in the manifest show another zone.
    """
    if not rule.is_legacy or not _holds_instants(tail, columns):
        return None
    if len(zones) > 1:
        raise UnsupportedError(
            f"its stripes were written in several time zones ({', '.join(sorted(zones))}); this "
            "version cannot read the TIMESTAMP_LTZ values of such a file: rewrite the table with "
            "the engine that wrote it"
        )
    (named,) = zones or {""}
    offsets = _find_offsets(named or rule.unnamed_zone)
    if not named and rule.bounds is not None:
        _require_bounds(rule.bounds(), tail, columns, offsets)
    return None if offsets.is_utc else offsets


def is_outside_utc(zone: str) -> bool:
    """Return True if the zone's offset from UTC was ever different from 0.

    Raise ``UnsupportedError`` for a zone that this machine does not know.
    """
    return not _find_offsets(zone).is_utc


def _find_offsets(zone: str) -> ZoneOffsets:
    try:
        return zone_offsets(zone or "UTC")
    except ValueError:
        raise UnsupportedError(
            f"it was written in the time zone {zone!r}, which this machine does not know; "
            "install the Python package tzdata, or read it on a machine that knows the zone"
        ) from None


def _holds_instants(tail: OrcTail, columns: Sequence[str]) -> bool:
    """Return True if one of ``columns`` is a TIMESTAMP_LTZ or contains one."""
    return any(
        tail.types[number].kind == INSTANT for column in columns for number in tail.subtree(column)
    )


def as_written(batch: pa.RecordBatch, offsets: ZoneOffsets) -> pa.RecordBatch:
    """Return a batch with the instants that the writer got, before it shifted them.

    Raise ``UnsupportedError`` for an instant that the shift could move out of the years 1677 to
    2262.
    """
    arrays = [
        _shifted(array, offsets, name)
        for array, name in zip(batch.columns, batch.schema.names, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=batch.schema)


def _shifted(array: pa.Array, offsets: ZoneOffsets, column: str) -> pa.Array:
    kind = array.type
    if pa.types.is_struct(kind):
        children = [_shifted(child, offsets, column) for child in struct_children(array)]
        return struct_around(array, children, kind)
    if pa.types.is_map(kind):
        keys, items = (_shifted(part, offsets, column) for part in map_entries(array))
        return map_around(array, keys, items, kind)
    if pa.types.is_list(kind):
        return list_around(array, _shifted(array.values, offsets, column), kind)
    if not pa.types.is_timestamp(kind) or kind.tz is None:
        return array
    stored = np.asarray(array.view(pa.int64()).fill_null(0))
    if len(stored) and (stored.min() < -_FARTHEST or stored.max() > _FARTHEST):
        raise UnsupportedError(
            f"column {column!r} holds instants before 1677 or after 2262, which cannot be "
            "shifted to another time zone: read only the other columns, or use another engine"
        )
    nulls = np.asarray(array.is_null()) if array.null_count else None
    return pa.array(stored + offsets.at(stored), mask=nulls).view(kind)


def _require_bounds(
    bounds: Mapping[str, Millis], tail: OrcTail, columns: Sequence[str], offsets: ZoneOffsets
) -> None:
    """Raise ``UnsupportedError`` if corrected instants contradict the bounds in the manifest.

    In that case the file was written in another time zone.
    """
    root = tail.types[0]
    for name, number in zip(root.names, root.children, strict=False):
        if name not in columns or name not in bounds or tail.types[number].kind != INSTANT:
            continue
        stored = timestamp_millis(tail, number)
        if stored is None:
            continue
        for found, known in zip(stored, bounds[name], strict=True):
            nanos = np.array([found * _NANOS_PER_MILLI], np.int64)
            read = found + int(offsets.at(nanos)[0]) // _NANOS_PER_MILLI
            if abs(read - known) >= _SMALLEST_OFFSET_MILLIS:
                raise _other_zone(name, (known - found) / 3_600_000)


def _other_zone(column: str, hours: float) -> UnsupportedError:
    return UnsupportedError(
        f"the bounds in the manifest show that a JVM {hours:+g} hours from UTC wrote column "
        f"{column!r}, but the file does not name the time zone of the JVM; set '{ZONE_OPTION}' of "
        "the table to the zone of the JVMs that write it, such as 'Asia/Shanghai'"
    )
