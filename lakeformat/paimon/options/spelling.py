# SPDX-License-Identifier: Apache-2.0
"""Checks undeclared option keys: misspellings, and credentials in the wrong place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.options.foreign import FOREIGN_OPTIONS
from lakeformat.paimon.options.option import COLUMN, ColumnOption, Option
from lakeformat.tables.credential_options import require_no_credential

__all__ = ["check_own_key"]

_SEPARATORS = re.compile(r"[-_.]")
_LIMITS = ((24, 3), (12, 2), (5, 1))
"""Pairs of a length and a number of edits, longest first.

A key of at least this length, and at most this number of edits away from a known key, is a
misspelling of it. Keys shorter than all lengths are never a misspelling.
"""


def check_own_key(key: str, declared: Sequence[Option[Any]]) -> None:
    """Raise InvalidRequestError for an undeclared key that a caller probably did not mean.

    These keys are: a misspelling of a known key, which the error suggests; the name of a
    credential, because every reader of the table could see its value; an empty key; and a key that
    begins with ``file-index.``, because no index would be built.
    """
    if key in FOREIGN_OPTIONS:
        return
    require_no_credential(key)
    known = (
        *(name for option in declared for name in (option.key, *option.older_keys)),
        *FOREIGN_OPTIONS,
    )
    meant = _meant_as(key, known)
    of_column = (_of_same_column(option, key) for option in declared)
    if (meant := meant or next(filter(None, of_column), None)) is not None:
        raise InvalidRequestError(
            f"there is no option {key!r}; did you mean {meant!r}? A key of your own is kept if it "
            "differs from every option by more than a few letters"
        )
    if not key.strip():
        raise InvalidRequestError("an option has an empty key: name the option")
    if key.startswith("file-index."):
        raise InvalidRequestError(
            f"option {key!r} would build no index: no option has this name, and keys of your own "
            "must not begin with 'file-index.'; correct or remove it"
        )


def _of_same_column(option: Option[Any], key: str) -> str | None:
    """Return the key that ``key`` means if only the part after the column's name is misspelt.

    Return None otherwise. The column's name itself is not checked.
    """
    if not isinstance(option, ColumnOption):
        return None
    start, end = option.key.split(COLUMN)
    column, dot, last = key.removeprefix(start).rpartition(".")
    is_slip = key.startswith(start) and _meant_as(dot + last, [end]) is not None
    return option.key_of(column) if is_slip else None


def _meant_as(key: str, known: Iterable[str]) -> str | None:
    """Return the known key of which ``key`` is a misspelling; None if there is none."""
    text = _folded(key)
    limit = next((edits for length, edits in _LIMITS if len(text) >= length), -1)
    near = [
        (edits, other)
        for other in known
        if abs(len(other) - len(text)) <= limit
        and (edits := _edits(text, _folded(other), limit)) <= limit
    ]
    return min(near)[1] if near else None


def _folded(key: str) -> str:
    return _SEPARATORS.sub("-", key.lower())


def _edits(first: str, second: str, limit: int) -> int:
    """Return the number of letters to insert, delete, replace or swap between two texts.

    If the number is above ``limit``, return any number above ``limit``.
    """
    last: list[int] = []
    before: list[int] = []
    row: list[int] = [*range(len(second) + 1)]
    for i, letter in enumerate(first, start=1):
        last, before, row = before, row, [i]
        for j, other in enumerate(second, start=1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != other))
            if last and j > 1 and (letter, first[i - 2]) == (second[j - 2], other):
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
        if min(row) > limit:
            return limit + 1
    return row[-1]
