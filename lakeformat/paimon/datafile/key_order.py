# SPDX-License-Identifier: Apache-2.0
"""Checks that the rows of a file are in key order, and collects the keys for its manifest entry."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.datafile.system_fields import SEQUENCE_NUMBER, VALUE_KIND
from lakeformat.paimon.key_order import orderable

__all__ = ["KeyOrder", "KeyRows", "Keys"]

LARGEST = 2**63 - 1
_DELETE_KINDS = [1, 3]


class Keys(Enum):
    """The order of keys that the rows of a file must have, with or without repeated keys."""

    ONCE = "each key once"
    """For data files: ascending keys, each once; rows of one key are already merged."""
    REPEATED = "rows with the same key next to each other"
    """For changelog files: ascending keys; all changes of one key are next to each other."""
    ANY = "in any order"
    """No order, for files of ``bucket-postpone``; their rows are sorted when they get a bucket."""


_REMEDIES = {
    Keys.ONCE: "sort and merge them",
    Keys.REPEATED: "sort them by key with a stable sort",
}


class KeyOrder:
    """Checks the key order of all rows of one writer, across its files."""

    def __init__(self, columns: Sequence[str], keys: Keys) -> None:
        self.columns = list(columns)
        self._keys = keys
        self._last: pa.Table | None = None

    def check(self, rows: pa.Table, uri: str, start: int) -> None:
        """Raise InvalidRequestError unless ``rows`` are in order and follow the rows checked
        before.

        The message names the file ``uri``, in which ``rows`` begin at row ``start``.
        """
        if self._keys is Keys.ANY:
            return
        keys = rows.select(self.columns)
        before = 0
        if self._last is not None:
            keys, before = pa.concat_tables([self._last, keys]), 1
        position = _first_out_of_order(keys, self._keys)
        if position is not None:
            row = f"row {start + position - before} of {uri} has the key {_shown(keys, position)}"
            why = (
                f"{_behind(keys, position)}; rows of this file must be in key order, "
                f"{self._keys.value}: {_REMEDIES[self._keys]} before they are written"
            )
            if not all(column[position].is_valid for column in keys.columns):
                why = ", and a key must not be null: replace the null before the rows are written"
            raise InvalidRequestError(f"{row}{why}. The files written so far were deleted")
        self._last = keys.slice(keys.num_rows - 1)


class KeyRows:
    """Collects first and last key, sequence numbers and the number of deletes of a file."""

    def __init__(self, key_columns: Sequence[str]) -> None:
        self._columns = list(key_columns)
        self.first: pa.Table | None = None
        self.last: pa.Table | None = None
        self.min_sequence_number = LARGEST
        self.max_sequence_number = -LARGEST
        self.delete_count = 0

    def add(self, rows: pa.Table) -> None:
        """Add the next rows; there must be at least one."""
        keys = rows.select(self._columns)
        self.first = keys.slice(0, 1) if self.first is None else self.first
        self.last = keys.slice(rows.num_rows - 1)
        ends = pc.min_max(rows.column(SEQUENCE_NUMBER.name)).as_py()
        self.min_sequence_number = min(self.min_sequence_number, ends["min"])
        self.max_sequence_number = max(self.max_sequence_number, ends["max"])
        kinds = rows.column(VALUE_KIND.name)
        if pc.max(kinds).as_py() > 0:  # usually no row is a delete
            self.delete_count += pc.sum(pc.is_in(kinds, pa.array(_DELETE_KINDS, pa.int8()))).as_py()


def _first_out_of_order(keys: pa.Table, rule: Keys) -> int | None:
    """Return the position of the first row that is out of order; None if all rows are in order.

    If any key has a null, return the first row with a null in its key. Otherwise return the first
    row whose key does not follow the key before it.
    """
    nulls = [
        pc.index(column.is_null(), True).as_py() for column in keys.columns if column.null_count
    ]
    if nulls:
        return int(min(nulls))
    count = keys.num_rows - 1
    is_good = is_tied = None
    for column in map(orderable, keys.columns):
        here, following = column.slice(0, count), column.slice(1)
        rises = pc.less(here, following)
        is_good = rises if is_good is None else pc.or_(is_good, pc.and_(is_tied, rises))
        if pc.all(is_good).as_py():  # the other columns need no comparison
            return None
        same = pc.equal(here, following)
        is_tied = same if is_tied is None else pc.and_(is_tied, same)
    if rule is Keys.REPEATED:
        is_good = pc.or_(is_good, is_tied)
    pair = pc.index(is_good, False).as_py()
    return None if pair < 0 else int(pair) + 1


def _shown(keys: pa.Table, position: int) -> str:
    return f"({', '.join(str(column[position]) for column in keys.columns)})"


def _behind(keys: pa.Table, position: int) -> str:
    return f" after {_shown(keys, position - 1)}" if position else ""
