# SPDX-License-Identifier: Apache-2.0
"""Row kinds: insert, update or delete, given by the caller or by a column of the table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.merge.row_kinds import INSERT, UPDATE_BEFORE, is_retract
from lakeformat.paimon.schema import TableSchema
from lakeformat.rows.groups import Mask, Positions

__all__ = ["Kinds", "RowKinds", "accepted_rows", "written_rows"]

Kinds: TypeAlias = npt.NDArray[np.int8]
"""The stored byte of each row's kind."""

_NAMES = ["+I", "-U", "+U", "-D"]
"""The name of each kind; its index is the stored byte."""
_FORMS = "'+I', '-U', '+U' or '-D', or the bytes 0 to 3 that stand for them"


class RowKinds:
    """Reads the kinds of the rows of one write, batch by batch."""

    def __init__(self, schema: TableSchema, given: Any) -> None:
        """Keep ``given``: a column name, one kind per row, or None for inserts."""
        self._columns = set(schema.column_names)
        self._field = schema.table_options.row_kind_field
        if self._field and given is not None:
            raise InvalidRequestError(
                f"the table reads kinds from its column {self._field!r} ('rowkind.field'): remove "
                "the argument 'kinds'"
            )
        if self._field and self._field not in self._columns:
            raise InvalidRequestError(
                f"option 'rowkind.field' is {self._field!r}, which is not a column of the table; "
                "change or remove the option"
            )
        self._column = given if isinstance(given, str) else None
        self._values = None if given is None or self._column is not None else _one_array(given)
        self._used = 0

    def split(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.Array | None]:
        """Return the rows without the column of kinds, unless the table has it, and their kinds."""
        if self._column is not None:
            return self._split_column(batch, self._column)
        if self._values is None:
            return batch, None
        start, self._used = self._used, self._used + batch.num_rows
        if self._used > len(self._values):
            raise InvalidRequestError(
                f"kinds has {len(self._values)} values, but there are more rows: pass one per row"
            )
        return batch, self._values.slice(start, batch.num_rows)

    def read(self, rows: pa.RecordBatch, given: pa.Array | None, first_row: int) -> Kinds:
        """Return the kind bytes of rows; ``first_row`` is the number of the first row."""
        if self._field:
            return _parse(rows.column(self._field), f"column {self._field!r}", first_row, _NAMES)
        if given is None:
            return np.full(rows.num_rows, INSERT, np.int8)
        return _parse(
            given, "kinds" if self._column is None else f"column {self._column!r}", first_row
        )

    def finish(self) -> None:
        """Raise InvalidRequestError if there are more kinds than rows."""
        if self._values is not None and self._used < len(self._values):
            raise InvalidRequestError(
                f"kinds has {len(self._values)} values for {self._used} rows: pass one per row"
            )

    def _split_column(
        self, batch: pa.RecordBatch, name: str
    ) -> tuple[pa.RecordBatch, pa.Array | None]:
        count = batch.schema.names.count(name)
        if count != 1:
            raise InvalidRequestError(
                f"kinds is {name!r}, but the rows have {count or 'no'} columns of that name; their "
                f"columns are {', '.join(batch.schema.names)}. Name a column, or pass one kind per "
                "row"
            )
        given = batch.column(name)
        return (batch if name in self._columns else batch.drop_columns([name])), given


def written_rows(schema: TableSchema, kinds: Kinds, first_row: int) -> Mask | None:
    """Mask the rows to write; None for all. Raise for a row that the table cannot take.

    ``first_row`` is the number of the first row in messages.
    """
    numbers: Sequence[int] | Positions = range(first_row, first_row + len(kinds))
    if not schema.primary_keys:
        _refuse_retracts(kinds, numbers, "but the table has no primary key: pass only '+I' rows")
        return None
    accepted = accepted_rows(schema, kinds)
    if accepted is not None:
        kinds, numbers = kinds[accepted], first_row + np.flatnonzero(accepted)
    if schema.table_options.merge_engine == "first-row":
        _refuse_retracts(
            kinds,
            numbers,
            "which merge engine 'first-row' does not accept; remove such rows, or create the table "
            "with 'ignore-delete' = 'true'",
        )
    return accepted


def accepted_rows(schema: TableSchema, kinds: Kinds) -> Mask | None:
    """Mask the rows of a primary-key table that are not ignored; None for all."""
    options = schema.table_options
    if options.ignore_delete:
        dropped = is_retract(kinds)
    elif options.ignore_update_before:
        dropped = kinds == UPDATE_BEFORE
    else:
        return None
    return ~dropped if dropped.any() else None


def _refuse_retracts(kinds: Kinds, numbers: Sequence[int] | Positions, reason: str) -> None:
    if kinds.any() and (retracts := is_retract(kinds)).any():  # inserts are 0
        row = int(np.argmax(retracts))
        raise InvalidRequestError(f"row {numbers[row]} is {_NAMES[kinds[row]]}, {reason}")


def _one_array(given: Any) -> pa.Array:
    if isinstance(given, pa.ChunkedArray):
        return given.combine_chunks()
    if isinstance(given, pa.Array):
        return given
    if hasattr(given, "to_arrow"):  # polars
        return _one_array(given.to_arrow())
    if isinstance(given, bytes | dict) or not isinstance(given, Iterable):
        raise InvalidRequestError(
            f"kinds must be a column name or one kind per row, {_FORMS}; got {given!r}"
        )
    try:
        return pa.array(given if hasattr(given, "__len__") else list(given))
    except (pa.ArrowException, ValueError, OverflowError):
        raise InvalidRequestError(f"kinds must be {_FORMS}; got {given!r}") from None


def _parse(values: pa.Array, where: str, first_row: int, allowed: list[str] | None = None) -> Kinds:
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_string_view(values.type) or pa.types.is_large_string(values.type):
        values = values.cast(pa.string())
    if pa.types.is_string(values.type) or pa.types.is_null(values.type):
        found = pc.index_in(values.cast(pa.string()), pa.array(_NAMES))
    elif allowed is None and pa.types.is_integer(values.type):
        found = pc.index_in(values.cast(pa.int64(), safe=False), pa.array(range(len(_NAMES))))
    else:
        raise InvalidRequestError(f"{where} has type {values.type}; kinds must be {_FORMS}")
    if found.null_count:
        row = pc.index(found.is_null(), True).as_py()
        raise InvalidRequestError(
            f"row {first_row + row} has {values[row].as_py()!r} in {where}, which is not a row "
            f"kind: kinds must be {_FORMS}"
        )
    kinds: Kinds = found.to_numpy(zero_copy_only=False).astype(np.int8)
    return kinds
