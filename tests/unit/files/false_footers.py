"""Footers of Parquet files that contradict their files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lakeformat.files.parquet.end import END_BYTES, footer_of, with_end
from lakeformat.files.parquet.thrift_compact import Struct, parse_struct, serialize_struct

__all__ = ["DAMAGES", "with_footer"]

_ROWS, _GROUPS, _COLUMNS, _GROUP_ROWS, _META_DATA, _PAGES = 3, 4, 1, 3, 3, (9, 11)


def with_footer(content: bytes, change: Callable[[Struct], None]) -> bytes:
    """Return a file with a changed footer."""
    footer = footer_of(content)
    members = parse_struct(footer)
    change(members)
    return content[: -END_BYTES - len(footer)] + with_end(serialize_struct(members))


def _groups(footer: Struct) -> list[Any]:
    values: Any = footer[_GROUPS][1]
    return values.items


def _shift(footer: Struct, distance: int) -> None:
    for chunk in _groups(footer)[0][_COLUMNS][1].items:
        described = chunk[_META_DATA][1]
        for member in {*_PAGES} & {*described}:
            kind, place = described[member]
            described[member] = kind, place + distance


def _repeat(footer: Struct) -> None:
    again = _groups(footer)[0]
    _groups(footer).append(again)
    _add_rows(footer, again[_GROUP_ROWS][1])


def _add_rows(footer: Struct, rows: int) -> None:
    kind, known = footer[_ROWS]
    footer[_ROWS] = kind, int(str(known)) + rows


DAMAGES: dict[str, Callable[[Struct], None]] = {
    "pages beyond the file": lambda footer: _shift(footer, 1 << 40),
    "pages in the footer": lambda footer: _shift(footer, 500),
    "pages before the file": lambda footer: _shift(footer, -(1 << 40)),
    "the same pages twice": _repeat,
    "another row count": lambda footer: _add_rows(footer, 1),
}
