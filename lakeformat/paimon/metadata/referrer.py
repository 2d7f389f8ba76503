# SPDX-License-Identifier: Apache-2.0
"""Adds to an error about damage the file or row that refers to the damaged file or value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lakeformat.errors import CorruptTableError

__all__ = ["naming", "naming_row", "referred_to_by"]


@contextmanager
def referred_to_by(referrer: str) -> Iterator[None]:
    """Add the referring file or snapshot to an error about a damaged table."""
    try:
        yield
    except CorruptTableError as reason:
        raise CorruptTableError(f"{reason} (named by {referrer})") from reason


@contextmanager
def naming(what: str) -> Iterator[None]:
    """Add a description of the value to an error about a damaged value."""
    try:
        yield
    except CorruptTableError as reason:
        raise CorruptTableError(f"{what}: {reason}") from reason


@contextmanager
def naming_row(
    count: int, again: Callable[[int], object], name: Callable[[int], str]
) -> Iterator[None]:
    """Add the row to an error about one of a column's ``count`` values.

    A column is decoded at once, so after an error its rows are decoded one by one to find the
    damaged row.
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
