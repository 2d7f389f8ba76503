# SPDX-License-Identifier: Apache-2.0
"""Checks the columns, the conditions and the key that were given to a reader of changes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lakeformat.errors import InvalidRequestError
from lakeformat.iceberg.arrow_types import to_arrow_field
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.read.condition_fields import columns_with
from lakeformat.iceberg.read.file_rows import lineage_of
from lakeformat.iceberg.read.where import row_filter
from lakeformat.iceberg.schema import Schema
from lakeformat.iceberg.types import Field, inner_fields
from lakeformat.rows.conditions.filter import PredicateFilter, Where, as_predicate
from lakeformat.rows.prune import Conjunction
from lakeformat.tables.arguments import Partitions
from lakeformat.tables.scan_arguments import advice_to_list, columns_named, project
from lakeformat.types.closest import closest
from lakeformat.types.types import STRING, DataField, with_nullability

__all__ = ["ROW_KIND", "AskedRows", "asked_rows", "require_one_kind"]

ROW_KIND = pa.field("rowkind", pa.string(), nullable=False)
"""The kind of a change: ``+I`` inserted, ``-D`` deleted, ``-U`` and ``+U`` before and after an
update."""
_KIND_IN_CONDITIONS = DataField(
    2_147_483_644, ROW_KIND.name, with_nullability(STRING, nullable=False)
)


@dataclass(frozen=True, slots=True)
class AskedRows:
    """The columns, the conditions and the key that a reader of changes requests."""

    schema: Schema
    wanted: tuple[Field, ...]
    key: tuple[Field, ...] = ()
    """The columns that identify a row; if there are none, updates are not recognised."""
    filters: Sequence[PredicateFilter] = ()
    """Conditions that need only columns of the table."""
    filters_of_changes: Sequence[PredicateFilter] = ()
    """Conditions that also need the kind of the change."""

    @property
    def arrow_schema(self) -> pa.Schema:
        """The schema of the result: the kind of the change, then the requested columns."""
        return pa.schema([ROW_KIND, *(to_arrow_field(each) for each in self.wanted)])

    @property
    def conditions(self) -> Conjunction:
        """Conditions by which files and row groups are skipped."""
        return [condition for each in self.filters for condition in each.conditions()]

    @property
    def result_fields(self) -> list[Field]:
        """The requested columns, then those that ``filters_of_changes`` need."""
        return self._and_those_of(self.wanted, self.filters_of_changes)

    @property
    def filtered_fields(self) -> list[Field]:
        """The columns of ``result_fields``, then those that ``filters`` need."""
        return self._and_those_of(self.result_fields, self.filters)

    def result(self, kinds: pa.Array, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the kind of each row and its requested columns.

        The first columns of ``rows`` must be ``result_fields``. Rows that do not meet
        ``filters_of_changes`` are left out.
        """
        schema = pa.schema([ROW_KIND, *map(to_arrow_field, self.result_fields)])
        columns = rows.columns[: len(schema) - 1]
        found = pa.RecordBatch.from_arrays([kinds, *columns], schema=schema)
        for each in self.filters_of_changes:
            found = found.filter(each.mask(found))
        return found.select(list(range(len(self.wanted) + 1)))

    def _and_those_of(
        self, first: Iterable[Field], filters: Iterable[PredicateFilter]
    ) -> list[Field]:
        named = {name for each in filters for name in each.columns}
        fields = {each.id: each for each in first}
        fields |= {each.id: each for each in columns_with(self.schema, named)}
        return [*fields.values()]


def asked_rows(
    metadata: TableMetadata,
    *,
    columns: Sequence[str] | None,
    where: Where | None,
    partitions: Partitions | None,
    keys: Sequence[str] | None,
) -> AskedRows:
    """Return the request of a reader, checked against the current columns of the table.

    Raise ``InvalidRequestError`` for a column, condition or key that does not fit the table.
    """
    schema = metadata.schema
    has_own = schema.named(ROW_KIND.name) is not None
    if has_own and where is not None:
        require_one_kind(as_predicate(where).columns)
    names = None if columns is None else columns_named(columns)
    if names:  # the kind is always the first column of the result
        names = [name for name in names if name != ROW_KIND.name] or None
    asked = row_filter(metadata, schema, where, partitions, (_KIND_IN_CONDITIONS,))
    parts = [] if asked is None else asked.conjuncts()
    wanted = project(schema.fields, names or columns, lineage_of(metadata), each_once=True)
    conditions = (name for each in parts if has_own for name in each.columns)
    require_one_kind([*conditions, *(each.name for each in wanted)])
    return AskedRows(
        schema,
        wanted,
        _key(schema, keys),
        [each for each in parts if ROW_KIND.name not in each.columns],
        [each for each in parts if ROW_KIND.name in each.columns],
    )


def require_one_kind(names: Iterable[str]) -> None:
    """Raise ``InvalidRequestError`` if ``names`` contains ``rowkind``.

    ``names`` are the table's columns that are read or that a condition uses. The result needs the
    name ``rowkind`` for the kind of each change.
    """
    if ROW_KIND.name in names:
        raise InvalidRequestError(
            f"the table has a column {ROW_KIND.name!r}, but the result needs this name for the "
            "kind of each change: rename the column of the table. Or read only other columns, with "
            "columns=[…], and use no condition on this column"
        )


def _key(schema: Schema, keys: Sequence[str] | None) -> tuple[Field, ...]:
    """Return the columns named in ``keys``; by default the columns of the identifier fields.

    Raise ``InvalidRequestError`` for a name that is not a column.
    """
    if keys is None:
        ids = set(schema.identifier_field_ids)
        return tuple(each for each in schema.fields if ids & _ids(each))
    by_name = {each.name: each for each in schema.fields}
    names = columns_named(keys)
    strange = [name for name in names if name not in by_name]
    if strange or (not names and not isinstance(keys, list | tuple)):
        raise InvalidRequestError(
            f"keys must name some of {', '.join(by_name)}, got {keys!r}"
            f"{closest(strange[0], by_name) if strange else advice_to_list('keys', keys)}"
        )
    return tuple(by_name[name] for name in names)


def _ids(field: Field) -> set[int]:
    return {field.id}.union(*(_ids(each) for each in inner_fields(field.type)))
