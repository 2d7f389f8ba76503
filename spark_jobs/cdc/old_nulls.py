# SPDX-License-Identifier: Apache-2.0
"""Marks old values that are NULL in messages of Canal and Maxwell.

Their old rows have only the changed columns. Arrow reads a NULL and a missing member in the same
way, so a mark beside the old row keeps them apart.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

__all__ = ["OLD_NULLS", "marks_of", "with_old_nulls"]

OLD_NULLS = "__old_nulls"
"""The member with the marks. It has the form of the member ``old``: one row, or a list of rows."""

_NULL_IN_OLD = re.compile(rb'"old"\s*:\s*[\[{].*:\s*null')
_NOT_A_SPACE = re.compile(r"[^ \t\r]")
_DECODER = json.JSONDecoder()


def marks_of(columns: pa.StructType) -> pa.StructType:
    """Return the type of the marks of an old row with ``columns``."""
    return pa.struct([(each.name, pa.bool_()) for each in columns])


def with_old_nulls(block: bytes, columns: Sequence[str]) -> bytes:
    """Return a block of messages, in which each message whose old row has a NULL in one of
    ``columns`` also has a mark for this column.
    """
    if not columns or _NULL_IN_OLD.search(block) is None:
        return block
    return b"\n".join(_marked(line, columns) for line in block.split(b"\n"))


def _marked(line: bytes, columns: Sequence[str]) -> bytes:
    if _NULL_IN_OLD.search(line) is None:
        return line
    try:
        return "".join(_marked_messages(line.decode(), columns)).encode()
    except ValueError:
        return line  # Arrow refuses the line


def _marked_messages(line: str, columns: Sequence[str]) -> Iterator[str]:
    """Yield the messages of a line, usually one, with their marks."""
    end = 0
    while (begin := _NOT_A_SPACE.search(line, end)) is not None:
        message, end = _DECODER.raw_decode(line, begin.start())
        yield _with_marks(line[begin.start() : end], message, columns) + " "


def _with_marks(text: str, message: Any, columns: Sequence[str]) -> str:
    """Return the text of a message with its marks."""
    old = message.get("old")
    rows = old if isinstance(old, list) else [old]
    marks = [_nulls(row, columns) for row in rows]
    if not any(marks):
        return text
    member = json.dumps({OLD_NULLS: marks if isinstance(old, list) else marks[0]})
    return text.replace("{", member[:-1] + ", ", 1)


def _nulls(row: Any, columns: Sequence[str]) -> dict[str, bool]:
    given = row if isinstance(row, dict) else {}
    return {name: True for name in columns if name in given and given[name] is None}
