"""A column of every type both sides hold, with the values that are easy to get wrong."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date, time
from decimal import Decimal
from typing import Any

import pyarrow as pa

__all__ = ["COLUMNS", "Column", "all_values", "column_list"]

SECONDS_FAR = 700_000 * 86_400
"""From 1970 to before the Gregorian calendar, and as far ahead."""
SECONDS_FAR_IN_NANOS = 100_000 * 86_400
"""Nanoseconds in 64 bits reach from 1677 to 2262."""


@dataclass(frozen=True, slots=True)
class Column:
    """A type as a schema names it, and values to store; timestamps are numbers since 1970."""

    type: str
    values: tuple[Any, ...]

    @property
    def name(self) -> str:
        """The type in the letters a column name may have."""
        return "".join(letter if letter.isalnum() else "_" for letter in self.type.lower())


def _decimals(precision: int, scale: int) -> Column:
    """Zero and both ends; built from digits, because arithmetic rounds to 28 of them."""
    digits = ((0,), (1,), (9,) * precision)
    values = tuple(Decimal((sign, digit, -scale)) for digit in digits for sign in (0, 1))
    return Column(f"DECIMAL({precision}, {scale})", values)


def _timestamps(precision: int, units_per_second: int, far: int = SECONDS_FAR) -> list[Column]:
    """Just before and after 1970, and far away in both directions."""
    step = units_per_second // 10**precision
    values = (
        0,
        step,
        -step,
        -units_per_second,
        1_700_000_000 * units_per_second + 123 * step,
        far * units_per_second - step,
        -far * units_per_second,
    )
    kind = f"TIMESTAMP({precision})"
    return [Column(kind, values), Column(f"{kind} WITH LOCAL TIME ZONE", values)]


COLUMNS = [
    Column("BOOLEAN", (True, False)),
    Column("TINYINT", (0, -(2**7), 2**7 - 1)),
    Column("SMALLINT", (0, -(2**15), 2**15 - 1)),
    Column("INT", (0, -(2**31), 2**31 - 1)),
    Column("BIGINT", (0, -(2**63), 2**63 - 1)),
    Column("FLOAT", (0.0, -0.0, 1.5, 3.4028234663852886e38, 2**-149, math.nan, -math.inf)),
    Column("DOUBLE", (0.0, -0.0, 0.1, 1.7976931348623157e308, 5e-324, math.nan, math.inf)),
    Column("CHAR(5)", ("12345", "a", "", "中文字五個")),
    Column("VARCHAR(20)", ("", "tab\tand 'quotes'", "中文", "x" * 20)),
    Column("STRING", ("", " ", "seven77", "eight888", "é", "🐧", "zero\0byte", "long " * 5_000)),
    Column("BINARY(4)", (b"\0\0\0\0", b"\xff\xfe\xfd\xfc")),
    Column("VARBINARY(8)", (b"", b"\0", b"\xff" * 8)),
    Column("BYTES", (b"", b"\0\xff", bytes(range(256)) * 50)),
    _decimals(1, 0),
    _decimals(9, 2),
    _decimals(10, 10),
    _decimals(18, 4),
    _decimals(19, 0),
    _decimals(38, 10),
    _decimals(38, 38),
    Column("DATE", (date(1970, 1, 1), date(1969, 12, 31), date(1, 1, 1), date(9999, 12, 31))),
    Column("TIME(0)", (time(0), time(23, 59, 59))),
    Column("TIME(3)", (time(0), time(1, 2, 3, 4_000), time(23, 59, 59, 999_000))),
    *_timestamps(0, 1_000),
    *_timestamps(3, 1_000),
    *_timestamps(4, 1_000_000),
    *_timestamps(6, 1_000_000),
    *_timestamps(9, 1_000_000_000, SECONDS_FAR_IN_NANOS),
    Column("ARRAY<INT>", ([], [1], [None, 2, None])),
    Column("ARRAY<STRING NOT NULL>", ([], ["", "a"])),
    Column("ARRAY<ARRAY<TIMESTAMP(6)>>", ([], [None], [[], [None, -1]])),
    Column("MAP<STRING, BIGINT>", ([], [("", None)], [("a", 1), ("b", 2)])),
    Column("MAP<INT, ARRAY<STRING>>", ([(1, None)], [(1, [None, ""]), (-2, [])])),
    Column("MAP<DATE, DECIMAL(20, 2)>", ([(date(1969, 1, 1), Decimal("-0.01"))],)),
    Column("ROW<a INT, b STRING>", ({"a": None, "b": None}, {"a": 1, "b": ""})),
    Column(
        "ROW<deep ROW<x DOUBLE, y ARRAY<ROW<z BYTES>>>, m MAP<STRING, ROW<t DATE>>>",
        (
            {"deep": None, "m": None},
            {
                "deep": {"x": None, "y": [None, {"z": b"\0"}]},
                "m": [("k", {"t": date(2024, 2, 29)})],
            },
        ),
    ),
    Column("ARRAY<ROW<a INT, b STRING>>", ([], [None, {"a": 1, "b": None}])),
    Column(
        "VARIANT",
        ({"value": b"\x02\x01\x00\x00\x02\x0c\x01", "metadata": b"\x01\x01\x00\x01a"},),
    ),
]


def column_list() -> list[tuple[str, str]]:
    """The columns as ``create_table`` takes them."""
    return [(column.name, column.type) for column in COLUMNS]


def all_values(schema: pa.Schema) -> pa.Table:
    """Every value of every column; shorter columns end in nulls, and the last row has nothing else.

    ``schema`` is that of a table with these columns.
    """
    rows = max(len(column.values) for column in COLUMNS) + 1
    padded = [[*column.values, *[None] * (rows - len(column.values))] for column in COLUMNS]
    arrays = [
        pa.array(values, type=kind) for values, kind in zip(padded, schema.types, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=schema)
