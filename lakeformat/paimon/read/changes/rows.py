# SPDX-License-Identifier: Apache-2.0
"""Rows of changes: the column ``rowkind`` before the columns of the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.errors import CorruptTableError, InvalidRequestError
from lakeformat.paimon.datafile.system_fields import VALUE_KIND
from lakeformat.paimon.read.where import row_filter
from lakeformat.paimon.schema import TableSchema
from lakeformat.rows.conditions.filter import PredicateFilter, Where
from lakeformat.tables.arguments import Partitions
from lakeformat.tables.scan_arguments import advice_to_list, columns_named
from lakeformat.types.arrow_types import to_arrow_schema
from lakeformat.types.closest import closest
from lakeformat.types.types import STRING, DataField, with_nullability

__all__ = ["ROW_KIND", "ChangedRows", "changed_rows"]

ROW_KIND = DataField(2_147_483_644, "rowkind", with_nullability(STRING, nullable=False))
"""The kind of a row: ``+I`` inserted, ``-U`` and ``+U`` before and after an update, ``-D`` deleted.
"""

_KINDS = pa.array(["+I", "-U", "+U", "-D"])


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """The columns and the condition with which a reader asks for changes."""

    fields: tuple[DataField, ...]
    """The columns to read: the columns of the result, and the columns that the condition uses."""
    wanted: tuple[DataField, ...]
    where: PredicateFilter | None = None

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the result."""
        return to_arrow_schema((ROW_KIND, *self.wanted))

    def of_stored(
        self, batch: pa.RecordBatch, *, source: str = "a data file of the table"
    ) -> pa.RecordBatch:
        """Return stored rows of a primary-key table with the columns of the result.

        The numbers in ``_VALUE_KIND`` become the texts of ``rowkind``. Raise CorruptTableError,
        which names ``source``, if a number is not a row kind.
        """
        kinds = batch.column(VALUE_KIND.name)
        if batch.num_rows and not 0 <= pc.min(kinds).as_py() <= pc.max(kinds).as_py() < len(_KINDS):
            raise CorruptTableError(
                f"{source} is damaged: its row kinds range from {pc.min(kinds)} to "
                f"{pc.max(kinds)}, but only 0 to 3 are valid. Restore the file from a backup"
            )
        return self._shape(_KINDS.take(kinds), batch)

    def inserted(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows of an append table with the columns of the result and the kind ``+I``."""
        return self.all_of("+I", batch)

    def all_of(self, kind: str, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows with the columns of the result; each row has the row kind ``kind``."""
        return self._shape(pa.repeat(pa.scalar(kind), batch.num_rows), batch)

    def _shape(self, kinds: pa.Array, batch: pa.RecordBatch) -> pa.RecordBatch:
        schema = to_arrow_schema((ROW_KIND, *self.fields))
        columns = [batch.column(field.name) for field in self.fields]
        found = pa.RecordBatch.from_arrays([kinds, *columns], schema=schema)
        if self.where is not None:
            found = found.filter(self.where.mask(found))
        return found.select(self.schema.names)


def changed_rows(
    schema: TableSchema,
    columns: Sequence[str] | None,
    where: Where | None,
    partitions: Partitions | None,
) -> ChangedRows:
    """Return the ``ChangedRows`` for the columns, condition and partitions of a call.

    The condition may also use ``rowkind``. Raise InvalidRequestError for a column that does not
    exist.
    """
    by_name = {field.name: field for field in schema.fields}
    wanted = tuple(by_name[name] for name in _names(columns, by_name))
    bound = row_filter(schema, where, partitions, (ROW_KIND,))
    looked_at = bound.columns if bound is not None else frozenset()
    fields = {field.name: field for field in wanted}
    fields |= {name: by_name[name] for name in sorted(looked_at - {ROW_KIND.name})}
    if not fields:  # a batch without columns has no rows
        fields = dict([next(iter(by_name.items()))])
    return ChangedRows(tuple(fields.values()), wanted, bound)


def _names(columns: Sequence[str] | None, by_name: dict[str, DataField]) -> list[str]:
    if columns is None:
        return [*by_name]
    names = columns_named(columns)
    strange = [name for name in names if name not in by_name and name != ROW_KIND.name]
    if strange or not names:
        raise InvalidRequestError(
            f"columns must name some of {', '.join(by_name)}, got {columns!r}"
            f"{closest(strange[0], by_name) if strange else advice_to_list('columns', columns)}"
        )
    return [name for name in dict.fromkeys(names) if name != ROW_KIND.name]
