# SPDX-License-Identifier: Apache-2.0
"""Adds the place of the damage to the message of a CorruptTableError.

The place is the damaged row or value, or the file that names the damaged file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lakeformat.errors import CorruptTableError

__all__ = ["naming", "naming_row", "referred_to_by"]


@contextmanager
def referred_to_by(referrer: str) -> Iterator[None]:
    """Append ``(named by <referrer>)`` to a CorruptTableError that the block raises.

    ``referrer`` is the file or snapshot that refers to the damaged file.
    """
    try:
        yield
    except CorruptTableError as reason:
        raise CorruptTableError(f"{reason} (named by {referrer})") from reason


@contextmanager
def naming(what: str) -> Iterator[None]:
    """Put ``what`` in front of the message of a CorruptTableError that the block raises.

    ``what`` describes the damaged value.
    """
    try:
        yield
    except CorruptTableError as reason:
        raise CorruptTableError(f"{what}: {reason}") from reason


@contextmanager
def naming_row(
    count: int, again: Callable[[int], object], name: Callable[[int], str]
) -> Iterator[None]:
    """Put ``name(row)`` in front of a CorruptTableError about a column of ``count`` values.

    The ``with`` block decodes the whole column, so its error does not name a row. To find the
    damaged row, ``again(row)`` is called for one row after the other until a call raises
    CorruptTableError.
    """
    try:
        yield
    except CorruptTableError:
        for row in range(count):
            try:
                again(row)
            except CorruptTableError as reason:
                raise CorruptTableError(f"{name(row)}: {reason}") from reason
        raise
