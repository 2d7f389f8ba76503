"""The sample columns of every type, as far as a file format holds them between Java and us."""

from __future__ import annotations

import pyarrow as pa

from tests.interop.every_type import COLUMNS, Column

__all__ = ["COMPRESSIONS", "FORMATS", "SAMPLES", "rows_with", "samples_of"]

FORMATS = ("parquet", "orc", "avro")
COMPRESSIONS = {
    "parquet": ("zstd", "snappy", "lz4", "gzip", "none"),
    "orc": ("zstd", "snappy", "lz4", "none"),
    "avro": ("zstd", "snappy", "deflate", "null"),
}

# What a format has no place for, whoever writes.
REFUSED = {
    "parquet": (),
    "orc": ("BINARY(", "VARBINARY(", "VARIANT"),
    "avro": ("TIMESTAMP(9)", "VARIANT"),
}
ORC_REACH_SECONDS = 9_000_000_000
"""Nanoseconds of 64 bits, as which Arrow reads ORC files, reach about so far from 1970."""
UNITS_PER_SECOND = {"0": 10**3, "3": 10**3, "4": 10**6, "6": 10**6, "9": 10**9}


def samples_of(file_format: str) -> list[Column]:
    """The columns a format holds, with the values it can keep."""
    refused = REFUSED[file_format]
    kept = [column for column in COLUMNS if not any(text in column.type for text in refused)]
    return [_within_reach(column) if file_format == "orc" else column for column in kept]


def rows_with(column: Column, schema: pa.Schema) -> pa.Table:
    """The column's values and a null, as rows of a table that has just this column."""
    return pa.Table.from_arrays([pa.array([*column.values, None], schema.types[0])], schema=schema)


def _within_reach(column: Column) -> Column:
    """Without what Java's own ORC files lose.

    They keep a second and a positive fraction of it: between the last second before 1970 and 1970
    the sign is lost, and far before 1582 two days are, by the Julian calendar.
    """
    if "ARRAY<TIMESTAMP" in column.type:
        return Column(column.type, ([], [None], [[], [None, 1]]))
    if not column.type.startswith("TIMESTAMP"):
        return column
    unit = UNITS_PER_SECOND[column.type[10]]
    near = [value for value in column.values if abs(value) < ORC_REACH_SECONDS * unit]
    return Column(column.type, tuple(value for value in near if not -unit < value < 0))


SAMPLES = [(file_format, column) for file_format in FORMATS for column in samples_of(file_format)]
"""Every column in every format that holds it."""
