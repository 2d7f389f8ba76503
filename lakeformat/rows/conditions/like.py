# SPDX-License-Identifier: Apache-2.0
"""Patterns of LIKE: ``%`` matches any text, ``_`` any character."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.errors import InvalidRequestError
from lakeformat.rows.prune import ColumnTest, Op

__all__ = ["like_regex", "prefix_tests", "require_pattern"]

_LAST_CHARACTER = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)
_SURELY_SHORT = 10_000
"""Arrow can search for any pattern up to this length; a longer one may have too many wildcards."""


def require_pattern(pattern: str, escape: str) -> None:
    """Raise ``InvalidRequestError`` if ``escape`` is at the end of ``pattern``, or before a
    character other than ``%``, ``_`` and itself, or if a long pattern has too many wildcards for
    Arrow.
    """
    _pieces(pattern, escape)
    if len(pattern) <= _SURELY_SHORT:
        return
    try:
        pc.match_substring_regex(pa.array([""]), like_regex(pattern, escape))
    except pa.ArrowInvalid:
        raise InvalidRequestError(
            f"LIKE '{pattern[:40]}…' has {len(pattern)} characters, too many for a pattern with so "
            "many wildcards: write a shorter pattern"
        ) from None


def like_regex(pattern: str, escape: str) -> str:
    """Return the regular expression that matches the same texts as a LIKE pattern."""
    stands_for = {"%": ".*", "_": "."}
    pieces = _pieces(pattern, escape)
    body = "".join(stands_for[c] if is_wild else re.escape(c) for c, is_wild in pieces)
    return rf"(?s)\A{body}\z"


def prefix_tests(column: str, pattern: str, escape: str) -> list[ColumnTest]:
    """Return tests that every matching value passes, by the text before the first wildcard.

    A value must be at least this text, and below the next text that does not begin with it. If the
    pattern begins with a wildcard, the only test is that the value is not null.
    """
    prefix = _prefix(pattern, escape)
    if not prefix:
        return [ColumnTest(column, Op.IS_NOT_NULL)]
    from_it = ColumnTest(column, Op.GREATER_EQUAL, prefix)
    kept = prefix.rstrip(chr(_LAST_CHARACTER))
    if not kept:
        return [from_it]
    following = ord(kept[-1]) + 1
    if following in _SURROGATES:
        following = _SURROGATES.stop
    return [from_it, ColumnTest(column, Op.LESS, kept[:-1] + chr(following))]


def _pieces(pattern: str, escape: str) -> list[tuple[str, bool]]:
    """Return each character of a LIKE pattern, with True if it is a wildcard.

    Escape characters are left out, and an escaped character is not a wildcard.
    """
    found = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            following = next(characters, None)
            if following is None or following not in ("%", "_", escape):
                raise InvalidRequestError(
                    f"in LIKE '{pattern}', the escape {escape} must stand before %, _ or {escape}: "
                    f"write {escape}{escape} for the character itself"
                )
            found.append((following, False))
        else:
            found.append((character, character in "%_"))
    return found


def _prefix(pattern: str, escape: str) -> str:
    prefix = ""
    for character, is_wild in _pieces(pattern, escape):
        if is_wild:
            break
        prefix += character
    return prefix
