# SPDX-License-Identifier: Apache-2.0
"""Row kinds: insert, update or delete, given by a caller for each row."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.errors import InvalidRequestError
from lakeformat.rows.groups import Mask
from lakeformat.types.count_text import counted

__all__ = [
    "DELETE",
    "INSERT",
    "KIND_NAMES",
    "UPDATE_AFTER",
    "UPDATE_BEFORE",
    "GivenKinds",
    "Kinds",
    "is_retract",
    "parse_kinds",
]

Kinds: TypeAlias = npt.NDArray[np.int8]
"""The kinds of rows: one byte for each row, an index in ``KIND_NAMES``, as files store it."""

INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE = range(4)
KIND_NAMES = ["+I", "-U", "+U", "-D"]
"""The name of each kind, by its number."""
_NAMES = "'+I', '-U', '+U' or '-D'"
_FORMS = f"{_NAMES}, or the numbers 0 to 3 that stand for them"
_MOST_CHARACTERS = 100
"""A message shows at most this many characters of the given kinds."""


def is_retract(kinds: Kinds) -> Mask:
    """Return a mask of the kinds ``-U`` and ``-D``."""
    found: Mask = (kinds == UPDATE_BEFORE) | (kinds == DELETE)
    return found


class GivenKinds:
    """Reads the kinds of the rows of one write, batch by batch."""

    def __init__(self, columns: Collection[str], given: Any) -> None:
        """Read kinds from ``given``: the name of a column of the rows, or one kind per row.

        ``columns`` are the columns of the table.
        """
        self._columns = columns
        self._column = given if isinstance(given, str) else None
        self._values = None if self._column is not None else _one_array(given)
        self._used = 0

    def split(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.Array]:
        """Return the rows, and the values of their kinds.

        The column of kinds is dropped from the rows, unless the table has it. Raise
        InvalidRequestError if the rows lack the column, or if there are fewer kinds than rows.
        """
        if self._values is None:
            assert self._column is not None
            return self._split_column(batch, self._column)
        start, self._used = self._used, self._used + batch.num_rows
        if self._used > len(self._values):
            raise InvalidRequestError(
                f"kinds has {counted(len(self._values), 'value')}, but there are more rows: pass "
                "one kind per row"
            )
        return batch, self._values.slice(start, batch.num_rows)

    def read(self, given: pa.Array, first_row: int) -> Kinds:
        """Return the kind of each row as a number from 0 to 3.

        Raise InvalidRequestError for a value that is not a row kind. The error shows the number of
        its row; ``first_row`` is the number of the first row of ``given``.
        """
        where = "kinds" if self._column is None else f"column {self._column!r}"
        return parse_kinds(given, where, first_row)

    def finish(self) -> None:
        """Raise InvalidRequestError if there are more kinds than rows."""
        if self._values is not None and self._used < len(self._values):
            raise InvalidRequestError(
                f"kinds has {counted(len(self._values), 'value')} for "
                f"{counted(self._used, 'row')}: pass one kind per row"
            )

    def _split_column(self, batch: pa.RecordBatch, name: str) -> tuple[pa.RecordBatch, pa.Array]:
        count = batch.schema.names.count(name)
        if count != 1:
            raise InvalidRequestError(
                f"kinds is {name!r}, but the rows have {count or 'no'} columns of that name; their "
                f"columns are {', '.join(batch.schema.names)}. Name a column, or pass one kind per "
                "row"
            )
        given = batch.column(name)
        return (batch if name in self._columns else batch.drop_columns([name])), given


def _one_array(given: Any) -> pa.Array:
    if isinstance(given, pa.ChunkedArray):
        return given.combine_chunks()
    if isinstance(given, pa.Array):
        return given
    if hasattr(given, "to_arrow"):  # polars
        return _one_array(given.to_arrow())
    # A set has no order, so its kinds belong to no row.
    if isinstance(given, bytes | dict | set | frozenset) or not isinstance(given, Iterable):
        raise InvalidRequestError(
            f"kinds must be a column name, or have one kind per row ({_FORMS}); got {_shown(given)}"
        )
    try:
        return pa.array(given if hasattr(given, "__len__") else list(given))
    except (pa.ArrowException, ValueError, OverflowError):
        raise InvalidRequestError(f"kinds must be {_FORMS}; got {_shown(given)}") from None


def _shown(given: Any) -> str:
    text = repr(given)
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}…"


def parse_kinds(values: pa.Array, where: str, first_row: int, *, only_names: bool = False) -> Kinds:
    """Return the kind of each row as a number from 0 to 3.

    ``values`` are names. If ``only_names`` is False, they may also be numbers from 0 to 3. Raise
    InvalidRequestError for any other value. In the error, ``where`` is the name of ``values``, and
    ``first_row`` is the number of the first row.
    """
    forms = _NAMES if only_names else _FORMS
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_string_view(values.type) or pa.types.is_large_string(values.type):
        values = values.cast(pa.string())
    if pa.types.is_string(values.type) or pa.types.is_null(values.type):
        found = pc.index_in(values.cast(pa.string()), pa.array(KIND_NAMES))
    elif not only_names and pa.types.is_integer(values.type):
        found = pc.index_in(values.cast(pa.int64(), safe=False), pa.array(range(len(KIND_NAMES))))
    else:
        raise InvalidRequestError(f"{where} has type {values.type}; kinds must be {forms}")
    if found.null_count:
        row = pc.index(found.is_null(), True).as_py()
        raise InvalidRequestError(
            f"row {first_row + row} has {values[row].as_py()!r} in {where}, which is not a row "
            f"kind: kinds must be {forms}"
        )
    kinds: Kinds = found.to_numpy(zero_copy_only=False).astype(np.int8)
    return kinds
