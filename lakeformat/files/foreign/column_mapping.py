# SPDX-License-Identifier: Apache-2.0
"""Renames the columns of a source to those of a table, and casts them as SQL's CAST does.

A cast rounds decimals, drops the fraction of a number that becomes an integer, and cuts a text that
is too long. A value beyond the range of its new type raises ``InvalidRequestError``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.errors import InvalidRequestError
from lakeformat.files.foreign.text_checks import first_refused
from lakeformat.types.arrow_types import to_arrow_type, type_of_column
from lakeformat.types.casts import cast_array
from lakeformat.types.closest import closest
from lakeformat.types.type_text import type_to_sql
from lakeformat.types.types import AtomicType, DataType, TypeName

__all__ = ["BY_NAME", "ColumnMapping"]

_BITS = {TypeName.TINYINT: 7, TypeName.SMALLINT: 15, TypeName.INT: 31, TypeName.BIGINT: 63}


@dataclass(frozen=True, slots=True)
class ColumnMapping:
    """The columns of a source whose name or type differs from that in the table."""

    sources: Mapping[str, str] = field(default_factory=dict)
    """The name in the source, by column of the table; other columns have the same name in both."""
    casts: Mapping[str, DataType] = field(default_factory=dict)
    """The type to cast to, by column of the table."""
    shown_types: Mapping[str, pa.DataType] = field(default_factory=dict)
    """The types of the cast columns in JSON files, by column of the source.

    A cast column that is not listed is read as text.
    """

    @property
    def cast_sources(self) -> list[str]:
        """The names, in the source, of the columns that are cast."""
        return [self.sources.get(name, name) for name in self.casts]

    def name_of(self, source: str) -> str:
        """Return the table's name for a column of the source."""
        named = [name for name, each in self.sources.items() if each == source]
        return named[0] if named else source

    def readable(self, columns: pa.Schema) -> pa.Schema:
        """Return the columns to read from a text file, with their names in the source.

        ``columns`` are the columns of the table. A column without an entry in ``sources`` is left
        out if the source's column of the same name is mapped to another column.
        """
        found = []
        elsewhere = {*self.sources.values()} - self.sources.keys()
        for column in columns:
            if column.name in elsewhere:
                continue
            source, kind = self.sources.get(column.name, column.name), column.type
            if column.name in self.casts:
                kind = self.shown_types.get(source, pa.string())
            found.append(pa.field(source, kind, nullable=column.nullable))
        return pa.schema(found)

    def names(self, sources: Sequence[str], there: Collection[str] = ()) -> list[str]:
        """Return the name in the table of each column in ``sources``.

        Raise ``InvalidRequestError`` if a mapped column is missing, if two columns get the same
        name, or if a column to cast is neither one of the returned names nor in ``there``, the
        columns of the table.
        """
        for name, source in self.sources.items():
            if source not in sources:
                turned = f". Write columns={{{source!r}: {name!r}}} if the table has {source!r}"
                raise InvalidRequestError(
                    f"columns={{{name!r}: {source!r}}} reads column {source!r}, which the source "
                    f"does not have: name one of its columns, {', '.join(sources)}"
                    f"{turned if name in sources else closest(source, sources)}"
                )
        names = [self.name_of(source) for source in sources]
        for name, source in self.sources.items():
            if names.count(name) > 1:
                raise InvalidRequestError(
                    f"columns={{{name!r}: {source!r}}} writes the source column {source!r} to the "
                    f"table column {name!r}, but the source has a column {name!r}, too: write the "
                    f"source column {name!r} to another table column, as in columns={{{name!r}: "
                    f"{source!r}, 'other': {name!r}}}"
                )
        for name in self.casts:
            if name not in names and name not in there:
                raise InvalidRequestError(
                    f"casts={{{name!r}: …}} needs a column {name!r}, which the rows do not have: "
                    f"name one of {', '.join(names)}{closest(name, names)}"
                )
        return names

    def applied(
        self, batch: pa.RecordBatch, first_row: int = 1, there: Collection[str] = ()
    ) -> pa.RecordBatch:
        """Return ``batch`` with the column names of the table, and with the casts done.

        Raise ``InvalidRequestError``, with row and column, for a value that cannot be cast.
        ``first_row`` is the number that the first row of the batch has in the file. ``there`` is as
        in ``names``.
        """
        if not self.sources and not self.casts:
            return batch
        names = self.names(batch.schema.names, there)
        arrays = [
            _cast(values, name, self.casts[name], first_row) if name in self.casts else values
            for name, values in zip(names, batch.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, names=names)


BY_NAME = ColumnMapping()
"""The mapping in which each column has the same name in source and table, and nothing is cast."""


def _cast(values: pa.Array, name: str, wanted: DataType, first_row: int) -> pa.Array:
    if pa.types.is_null(values.type):
        return pa.nulls(len(values), to_arrow_type(wanted))
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    stored = type_of_column(name, values.type)

    def attempt(values: pa.Array) -> pa.Array | None:
        if not _is_within(values, wanted):
            return None
        try:
            found = cast_array(values, stored, wanted)
        except InvalidRequestError as reason:
            if not len(values) or _has_no_cast(stored, wanted):
                raise InvalidRequestError(f"casts: column {name!r}: {reason}") from None
            return None
        return found if found.null_count == values.null_count else None

    found = attempt(values)
    if found is not None:
        return found
    row = first_refused(len(values), lambda start, size: attempt(values.slice(start, size)) is None)
    value = values[row].as_py()
    shown = repr(value) if isinstance(value, str) else str(value)
    raise InvalidRequestError(
        f"row {first_row + row}, column {name!r}: {shown} cannot become "
        f"{type_to_sql(wanted)}: correct it, or choose another type in casts"
    )


def _has_no_cast(stored: DataType, wanted: DataType) -> bool:
    try:
        cast_array(pa.array([], to_arrow_type(stored)), stored, wanted)
    except InvalidRequestError:
        return True
    return False


def _is_within(values: pa.Array, wanted: DataType) -> bool:
    """Return True if all numbers are finite and in the range of the integer type ``wanted``.

    Also return True if ``values`` are not numbers, or if ``wanted`` is not an integer type.
    """
    if not isinstance(wanted, AtomicType) or wanted.name not in _BITS:
        return True
    kind = values.type
    if pa.types.is_floating(kind):
        if not pc.all(pc.is_finite(values), min_count=0).as_py():
            return False
    elif not (pa.types.is_integer(kind) or pa.types.is_decimal(kind)):
        return True
    least, most = pc.min_max(values).as_py().values()
    end = 1 << _BITS[wanted.name]
    return least is None or (-end - 1 < least and most < end)
