# SPDX-License-Identifier: Apache-2.0
"""The declaration of a system table: its columns in order, each with its source."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Generic, TypeAlias, TypeVar

from lakeformat.paimon.schema import TableSchema
from lakeformat.paimon.system_tables.source import Source
from lakeformat.types.type_text import parse_type
from lakeformat.types.types import DataField, DataType

__all__ = ["SystemColumn", "SystemTableDeclaration", "column", "declare"]

R = TypeVar("R", bound=Sized)
ColumnValues: TypeAlias = Any
"""The values of a column: a ``pyarrow.Array``, or a list of Python values."""


@dataclass(frozen=True, slots=True)
class SystemColumn(Generic[R]):
    """A column, and the function that returns its values if a scan reads the column."""

    name: str
    type: DataType
    fill: Callable[[R], ColumnValues]


@dataclass(frozen=True, slots=True)
class SystemTableDeclaration(Generic[R]):
    """One kind of system table."""

    name: str
    columns: tuple[SystemColumn[R], ...]
    open: Callable[[Source], R]
    """Returns the object that is passed to the ``fill`` function of each column."""
    of_snapshot: bool
    """True if the table shows one snapshot, so that a scan may choose an older snapshot."""

    @property
    def schema(self) -> TableSchema:
        """The schema of the system table, made of its declared columns."""
        fields = tuple(
            DataField(position, column.name, column.type)
            for position, column in enumerate(self.columns)
        )
        return TableSchema(id=0, fields=fields, highest_field_id=len(fields) - 1)


def column(name: str, type_text: str, fill: str | Callable[[R], ColumnValues]) -> SystemColumn[R]:
    """Return a column of a system table, with the SQL type ``type_text``.

    ``fill`` is a function that returns the values of the column, or the path of an attribute. A
    path such as ``"file.row_count"`` is read from each row.
    """
    return SystemColumn(
        name, parse_type(type_text), _attribute(fill) if isinstance(fill, str) else fill
    )


def declare(
    name: str,
    open: Callable[[Source], R],
    columns: Sequence[SystemColumn[R]],
    *,
    of_snapshot: bool = False,
) -> SystemTableDeclaration[R]:
    """Return the declaration of a system table.

    ``open`` returns the object that is passed to the ``fill`` function of each column.
    ``of_snapshot`` is True if the table shows one snapshot, which a scan may choose.
    """
    return SystemTableDeclaration(name, tuple(columns), open, of_snapshot)


def _attribute(path: str) -> Callable[[Any], list[Any]]:
    get = attrgetter(path)
    return lambda rows: [get(row) for row in rows]
