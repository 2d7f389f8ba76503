# SPDX-License-Identifier: Apache-2.0
"""Adds the number of the first row, as in "(rows count from 0)", to errors that name a row."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from lakeformat.errors import InvalidRequestError

__all__ = ["rows_count_from", "with_first_number"]

_NAMES_A_ROW = re.compile(r"\brow \d")


@contextmanager
def rows_count_from(first: int) -> Iterator[None]:
    """Add "(rows count from <first>)" to an ``InvalidRequestError`` of a with block.

    A message that names no row, or already has such an end, is not changed.
    """
    try:
        yield
    except InvalidRequestError as reason:
        reason.args = (with_first_number(str(reason), f"from {first}"),)
        raise


def with_first_number(message: str, count: str) -> str:
    """Return a message with "(rows count <count>)" at its end.

    ``count`` is a text such as "from 0". A message that names no row, or already has such an end,
    is returned unchanged.
    """
    if not _NAMES_A_ROW.search(message) or "rows count" in message:
        return message
    return f"{message} (rows count {count})"
