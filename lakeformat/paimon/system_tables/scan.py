# SPDX-License-Identifier: Apache-2.0
"""A scan of a system table: its rows as Arrow, batches or pandas."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakeformat.errors import CorruptTableError, InvalidRequestError
from lakeformat.paimon.expiry_race import explaining_expiry
from lakeformat.paimon.system_tables.declaration import SystemColumn, SystemTableDeclaration
from lakeformat.paimon.system_tables.source import Source
from lakeformat.tables.scan_arguments import advice_to_list, columns_named
from lakeformat.types.arrow_types import to_arrow_schema

if TYPE_CHECKING:
    import pandas

__all__ = ["SystemScan"]

BATCH_ROWS = 16 * 1024


class SystemScan:
    """The rows of a system table; nothing is read until you ask for a result."""

    def __init__(
        self,
        declaration: SystemTableDeclaration[Any],
        source: Source,
        columns: Sequence[str] | None = None,
    ) -> None:
        self._declaration = declaration
        self._source = source
        self._columns = _project(declaration, columns)
        names = [column.name for column in self._columns]
        by_name = {field.name: field for field in declaration.schema.fields}
        self._schema = to_arrow_schema(tuple(by_name[name] for name in names))

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the rows."""
        return self._schema

    def to_arrow(self) -> pa.Table:
        """Return all rows as one Arrow table."""
        arrays = [
            self._array(column, field.type)
            for column, field in zip(self._columns, self._schema, strict=True)
        ]
        return pa.Table.from_arrays(arrays, schema=self._schema)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in batches; the metadata itself is read into memory at once."""
        yield from self.to_arrow().to_batches(BATCH_ROWS)

    def to_pandas(self) -> pandas.DataFrame:
        """Return all rows as a pandas DataFrame."""
        return self.to_arrow().to_pandas()

    def count(self) -> int:
        """Return the number of rows."""
        return len(self._rows)

    @cached_property
    def _rows(self) -> Any:
        shown = self._source.snapshot if self._declaration.of_snapshot else None
        with explaining_expiry(self._source.handle, shown):
            return self._declaration.open(self._source)

    def _array(self, column: SystemColumn[Any], arrow_type: pa.DataType) -> pa.Array:
        values = column.fill(self._rows)
        try:
            if isinstance(values, pa.Array | pa.ChunkedArray):
                return values.cast(arrow_type)
            return pa.array(values, arrow_type)
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as reason:
            raise CorruptTableError(
                f"{self._source.handle.uri}: column {column.name} of ${self._declaration.name} "
                "cannot be shown, because a value in the metadata does not fit the type of the "
                f"column: {reason}; name the other columns to read them"
            ) from None


def _project(
    declaration: SystemTableDeclaration[Any], columns: Sequence[str] | None
) -> list[SystemColumn[Any]]:
    by_name = {column.name: column for column in declaration.columns}
    if columns is None:
        return [*by_name.values()]
    names = columns_named(columns)
    if not names or any(name not in by_name for name in names):
        raise InvalidRequestError(
            f"columns of ${declaration.name} must name some of {', '.join(by_name)}, "
            f"got {columns!r}{advice_to_list('columns', columns)}"
        )
    return [by_name[name] for name in names]
