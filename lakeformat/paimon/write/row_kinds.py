# SPDX-License-Identifier: Apache-2.0
"""The row kinds of a write: given by the caller, or read from a column of the table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.schema import TableSchema
from lakeformat.rows.groups import Mask, Positions
from lakeformat.rows.row_kinds import (
    INSERT,
    KIND_NAMES,
    UPDATE_BEFORE,
    GivenKinds,
    Kinds,
    is_retract,
    parse_kinds,
)

__all__ = ["RowKinds", "accepted_rows", "written_rows"]


class RowKinds:
    """Reads the kinds of the rows of one write, batch by batch."""

    def __init__(self, schema: TableSchema, given: Any) -> None:
        """Read kinds from ``given``: a column name, one kind per row, or None if all rows are
        inserts.

        If the table option ``rowkind.field`` is set, kinds are read from the column that it names.
        Raise InvalidRequestError if both the option and ``given`` are set, or if the option names a
        column that the table does not have.
        """
        columns = set(schema.column_names)
        self._field = schema.table_options.row_kind_field
        if self._field and given is not None:
            raise InvalidRequestError(
                f"the table reads kinds from its column {self._field!r} ('rowkind.field'): remove "
                "the argument 'kinds'"
            )
        if self._field and self._field not in columns:
            raise InvalidRequestError(
                f"option 'rowkind.field' is {self._field!r}, which is not a column of the table: "
                "add a STRING column of this name that holds +I, -U, +U or -D, or create a new "
                "table without the option"
            )
        self._given = None if given is None else GivenKinds(columns, given)

    def split(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.Array | None]:
        """Return the rows, and the values of their kinds.

        The values are None if the caller gave no kinds. The column of kinds is dropped from the
        rows, unless the table has it.
        """
        return (batch, None) if self._given is None else self._given.split(batch)

    def read(self, rows: pa.RecordBatch, given: pa.Array | None, first_row: int) -> Kinds:
        """Return the kind of each row as a number from 0 to 3.

        Raise InvalidRequestError for a value that is not a kind; rows are numbered from
        ``first_row`` on.
        """
        if self._field:
            where = f"column {self._field!r}"
            return parse_kinds(rows.column(self._field), where, first_row, only_names=True)
        if self._given is None or given is None:
            return np.full(rows.num_rows, INSERT, np.int8)
        return self._given.read(given, first_row)

    def finish(self) -> None:
        """Raise InvalidRequestError if there are more kinds than rows."""
        if self._given is not None:
            self._given.finish()


def written_rows(schema: TableSchema, kinds: Kinds, first_row: int) -> Mask | None:
    """Return a mask of the rows to write; None if all are written.

    Raise InvalidRequestError for a row whose kind the table does not accept; errors number rows
    from ``first_row`` on.
    """
    numbers: Sequence[int] | Positions = range(first_row, first_row + len(kinds))
    if not schema.primary_keys:
        _refuse_retracts(
            kinds,
            numbers,
            "but the table has no primary key: pass only '+I' rows, or write to a table with a "
            "primary key",
        )
        return None
    accepted = accepted_rows(schema, kinds)
    if accepted is not None:
        kinds, numbers = kinds[accepted], first_row + np.flatnonzero(accepted)
    if schema.table_options.merge_engine == "first-row":
        _refuse_retracts(
            kinds,
            numbers,
            "which merge engine 'first-row' does not accept; remove such rows, or set the table "
            "option 'ignore-delete' to 'true'",
        )
    return accepted


def accepted_rows(schema: TableSchema, kinds: Kinds) -> Mask | None:
    """Return a mask of the rows to write; None if all are written.

    ``ignore-delete`` drops DELETE and UPDATE_BEFORE rows; ``ignore-update-before`` drops
    UPDATE_BEFORE rows.
    """
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
        raise InvalidRequestError(f"row {numbers[row]} is {KIND_NAMES[kinds[row]]}, {reason}")
