"""Iceberg tables of metadata only: 15 columns with all statistics; no data file exists."""

from __future__ import annotations

import random
import struct
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.iceberg_metadata import Manifest, PartitionColumn, write_iceberg_table

__all__ = ["FIRST_DAY", "ROWS_PER_FILE", "write_metadata_table"]

COLUMNS = {
    "id": "long",
    "event_time": "timestamptz",
    "user_id": "long",
    "country": "string",
    "city": "string",
    "device": "string",
    "session": "string",
    "url": "string",
    "referrer": "string",
    "price": "double",
    "score": "float",
    "quantity": "int",
    "amount": "decimal(12, 2)",
    "active": "boolean",
    "updated": "date",
}
FIRST_DAY, DAYS = 20_000, 365
BUCKETS = 16
ROWS_PER_FILE = 100_000
FILES_PER_MANIFEST = 20_000
"""The files in a manifest; a manifest written by Java then has about 8 MB."""
_DAY_MICROS = 86_400_000_000
_TEXT_BOUND = 16
_FLOATS = {"double": "<d", "float": "<f"}
_PARTITION = (
    PartitionColumn("event_time_day", 2, "day", {"type": "int", "logicalType": "date"}),
    PartitionColumn("id_bucket", 1, f"bucket[{BUCKETS}]"),
)


def write_metadata_table(folder: Path, count: int) -> None:
    """Write a table of one snapshot with entries of data files that do not exist.

    The files are in the order of their days; those of one day are spread over the buckets.
    """
    chance, location = random.Random(7), f"file://{folder}"
    starts = range(0, count, FILES_PER_MANIFEST)
    parts = (range(start, min(start + FILES_PER_MANIFEST, count)) for start in starts)
    manifests = (
        Manifest([_file(location, number, count, chance) for number in part]) for part in parts
    )
    write_iceberg_table(folder, COLUMNS, _PARTITION, manifests)


def _file(location: str, number: int, count: int, chance: random.Random) -> dict[str, Any]:
    day, bucket = FIRST_DAY + number * DAYS // count, number % BUCKETS
    name = f"00000-{number}-{uuid.UUID(int=chance.getrandbits(128))}-00001.parquet"
    return {
        "file_path": f"{location}/data/event_time_day={day}/id_bucket={bucket}/{name}",
        "partition": {"event_time_day": day, "id_bucket": bucket},
        "record_count": ROWS_PER_FILE,
        "file_size_in_bytes": chance.randrange(10**6, 10**8),
        "sort_order_id": 0,
        **_statistics(number, day, chance),
    }


def _statistics(number: int, day: int, chance: random.Random) -> dict[str, Any]:
    ids = range(1, len(COLUMNS) + 1)
    bounds = [_bounds(kind, number, day, chance) for kind in COLUMNS.values()]
    floats = [each for each, kind in zip(ids, COLUMNS.values(), strict=True) if kind in _FLOATS]
    return {
        "column_sizes": _pairs({each: chance.randrange(10**3, 10**6) for each in ids}),
        "value_counts": _pairs(dict.fromkeys(ids, ROWS_PER_FILE)),
        "null_value_counts": _pairs({each: chance.randrange(100) for each in ids}),
        "nan_value_counts": _pairs(dict.fromkeys(floats, 0)),
        "lower_bounds": _pairs({each: low for each, (low, _) in zip(ids, bounds, strict=True)}),
        "upper_bounds": _pairs({each: high for each, (_, high) in zip(ids, bounds, strict=True)}),
    }


def _bounds(kind: str, number: int, day: int, chance: random.Random) -> tuple[bytes, bytes]:
    """Return the least and the largest value of a column in one file."""
    if kind == "string":
        texts = sorted(f"{chance.getrandbits(64):016x}"[:_TEXT_BOUND] for _ in range(2))
        return texts[0].encode(), texts[1].encode()
    if kind == "boolean":
        return b"\0", b"\1"
    if kind.startswith("decimal"):
        low, high = sorted(chance.randrange(10**9) for _ in range(2))
        return low.to_bytes(5, "big"), high.to_bytes(5, "big")
    if kind == "timestamptz":
        return struct.pack("<q", day * _DAY_MICROS), struct.pack("<q", (day + 1) * _DAY_MICROS - 1)
    if kind in _FLOATS:
        code, bounds = _FLOATS[kind], sorted(chance.random() * 1000 for _ in range(2))
        return struct.pack(code, bounds[0]), struct.pack(code, bounds[1])
    if kind == "long":
        return (
            struct.pack("<q", number * ROWS_PER_FILE),
            struct.pack("<q", (number + 1) * ROWS_PER_FILE - 1),
        )
    return struct.pack("<i", day - chance.randrange(9)), struct.pack("<i", day)


def _pairs(values: Mapping[int, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": value} for key, value in values.items()]
