# SPDX-License-Identifier: Apache-2.0
"""Column statistics of files as text, for the current columns of the table.

Files of one schema with statistics of the same columns are decoded together, as a group. Columns
are compared by field id. A column that a file lacks counts as null in each of its rows. If the type
of a column has changed, its statistics are cast.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.binary_row import FramedRows
from lakeformat.paimon.metadata.manifest_columns import ManifestColumns
from lakeformat.paimon.metadata.manifest_columns.columns import BytesColumn, Positions
from lakeformat.paimon.system_tables.source import Source
from lakeformat.types.casts import cast_array
from lakeformat.types.types import DataField, with_nullability
from lakeformat.types.value_text import internal_text, join_texts

__all__ = ["FileStatistics"]

Names: TypeAlias = tuple[str, ...]
_Key: TypeAlias = tuple[int, Names | None, Names | None]
"""The schema id of a group, the columns in its files, and the columns with statistics; None means
all columns.
"""


class FileStatistics:
    """The column statistics of many files, each as text."""

    def __init__(self, source: Source, files: ManifestColumns) -> None:
        self._source = source
        self._files = files

    def null_counts(self) -> pa.Array:
        """Return, for each file, the number of nulls in each column, such as ``{id=0, note=2}``."""
        return self._shown(_Group.null_count)

    def least(self) -> pa.Array:
        """Return, for each file, the smallest values, such as ``{id=1, note=a}``.

        Texts may be truncated.
        """
        return self._shown(lambda group, field: group.bound(field, group.least))

    def greatest(self) -> pa.Array:
        """Return, for each file, the largest values, such as ``{id=9, note=z}``.

        A truncated text is an upper bound.
        """
        return self._shown(lambda group, field: group.bound(field, group.greatest))

    def _shown(self, show: Callable[[_Group, DataField], pa.Array]) -> pa.Array:
        if not len(self._files):
            return pa.array([], pa.string())
        # Java prints columns in the order of UTF-16.
        fields = sorted(self._source.handle.schema.fields, key=lambda f: f.name.encode("utf-16be"))
        parts = []
        for group in self._groups:
            texts = [_named(field.name, show(group, field)) for field in fields]
            parts.append(join_texts(texts, rows=len(group.rows), brackets="{}"))
        order = np.concatenate([group.rows for group in self._groups])
        return pa.concat_arrays(parts).take(pa.array(np.argsort(order)))

    @cached_property
    def _groups(self) -> list[_Group]:
        files = self._files
        keys = zip(
            files.schema_id.numbers.tolist(),
            files.write_cols.texts(),
            files.value_stats_cols.texts(),
            strict=True,
        )
        rows: dict[_Key, list[int]] = {}
        for row, key in enumerate(keys):
            rows.setdefault(key, []).append(row)
        return [self._group(key, np.array(members)) for key, members in rows.items()]

    def _group(self, key: _Key, rows: Positions) -> _Group:
        return _Group(rows, self._files.take(rows), _covered(self._source, *key))


@dataclass(frozen=True)
class _Group:
    """Files of one schema with statistics of the same columns."""

    rows: Positions
    files: ManifestColumns
    covered: _Covered

    @cached_property
    def least(self) -> FramedRows:
        return self._framed(self.files.value_min_values)

    @cached_property
    def greatest(self) -> FramedRows:
        return self._framed(self.files.value_max_values)

    def null_count(self, field: DataField) -> pa.Array:
        """Return, for each file, the number of rows in which a column is null; null if unknown."""
        if field.id not in self.covered.written:
            return pa.array(self.files.row_count.numbers, pa.int64())
        position = self.covered.positions.get(field.id)
        if position is None:
            return pa.nulls(len(self.rows), pa.int64())
        counts = self.files.value_null_counts.values()
        known = [None if c is None or position >= len(c) else c[position] for c in counts]
        return pa.array(known, pa.int64())

    def bound(self, field: DataField, bounds: FramedRows) -> pa.Array:
        """Return the bound of a column in each file, as text; null if a file has no such bound.

        ``bounds`` has the lower or the upper bounds. All results are null if one bound cannot be
        cast to the current type.
        """
        position = self.covered.positions.get(field.id)
        if position is None:
            return pa.nulls(len(self.rows), pa.string())
        stored = self.covered.fields[position].type
        values = bounds.column(position)
        plain_types = [with_nullability(t, nullable=True) for t in (stored, field.type)]
        if values.null_count == len(values):
            return pa.nulls(len(values), pa.string())
        if plain_types[0] != plain_types[1]:
            try:
                values = cast_array(values, stored, field.type)
            except InvalidRequestError:  # the bound has no value in the new type
                return pa.nulls(len(values), pa.string())
        return internal_text(values, field.type)

    def _framed(self, rows: BytesColumn) -> FramedRows:
        return FramedRows(rows.to_arrow(), [field.type for field in self.covered.fields])


@dataclass(frozen=True, slots=True)
class _Covered:
    """The columns that the files of a group have, and those with statistics."""

    written: frozenset[int]
    """The field ids of all columns in the files."""
    fields: tuple[DataField, ...]
    """The columns with statistics, in the order in which statistics store them."""
    positions: dict[int, int]
    """The position of each field id in ``fields``."""


def _covered(
    source: Source, schema_id: int, write_cols: Names | None, kept: Names | None
) -> _Covered:
    by_name = {field.name: field for field in source.schema(schema_id).fields}
    names = [*by_name] if write_cols is None else write_cols
    written = [by_name[name] for name in names if name in by_name]
    fields = tuple(written if kept is None else [by_name[n] for n in kept if n in by_name])
    positions = {field.id: position for position, field in enumerate(fields)}
    return _Covered(frozenset(field.id for field in written), fields, positions)


def _named(name: str, values: pa.Array) -> pa.Array:
    texts = pc.fill_null(values.cast(pa.string()), "null")
    return pc.binary_join_element_wise(f"{name}=", texts, "")
