# SPDX-License-Identifier: Apache-2.0
"""Pruning of manifests and of their entries by conditions and buckets."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakeformat.paimon.binary_row import FramedRows
from lakeformat.paimon.metadata.manifest_columns import ManifestColumns
from lakeformat.paimon.metadata.manifest_columns.columns import (
    BytesColumn,
    ListColumn,
    NumberColumn,
    Positions,
    equal_lists,
)
from lakeformat.paimon.metadata.manifest_list import ManifestMeta
from lakeformat.paimon.read.pruning.buckets import HashedBuckets, by_merged_values
from lakeformat.paimon.schema import TableSchema
from lakeformat.rows.prune import (
    Bounds,
    ColumnTest,
    Conjunction,
    Mask,
    in_any,
    may_meet,
)
from lakeformat.types.types import DataField, with_nullability

__all__ = ["EntryPruner", "SchemaReader"]

_EMPTY_ROW_SIZE = 12

SchemaReader = Callable[[int], TableSchema]


@dataclass(frozen=True, slots=True)
class EntryPruner:
    """Skips manifests and entries by the conditions and buckets of a scan.

    ``buckets=None`` means all buckets.
    """

    schema: TableSchema
    conditions: Conjunction
    buckets: Collection[int] | None
    read_schema: SchemaReader
    """A function from a schema id to the schema; files may have been written with older schemas."""

    def pick_manifests(self, manifests: Sequence[ManifestMeta]) -> list[ManifestMeta]:
        """Return the manifests whose ranges of partitions and buckets may include wanted files."""
        mask = self._in_any(lambda one: one.of_manifests(manifests))
        return [manifest for manifest, may in zip(manifests, mask.tolist(), strict=True) if may]

    def by_place(self, columns: ManifestColumns) -> Mask:
        """Return a mask of the entries in wanted partitions and buckets.

        The ADD and the DELETE entry of a file are always both kept or both skipped.
        """
        return self._in_any(lambda one: one.by_place(columns))

    def by_statistics(self, columns: ManifestColumns) -> Mask:
        """Return a mask of the live files whose statistics do not exclude wanted rows.

        With a primary key, only conditions on the key are used: the newest row of a key might be in
        a file that other conditions would exclude.
        """
        return self._in_any(lambda one: one.by_statistics(columns))

    def by_merged_values(self, places: Sequence[Positions], columns: ManifestColumns) -> Mask:
        """Return a mask of the files to read, by conditions on columns outside of the primary key.

        ``places`` are the positions in ``columns`` of each bucket's files.
        """
        return self._in_any(lambda one: one.by_merged_values(places, columns))

    def _in_any(self, ask: Callable[[_Pruner], Mask]) -> Mask:
        def of(conditions: Sequence[ColumnTest]) -> Mask:
            return ask(_Pruner(self.schema, conditions, self.buckets, self.read_schema))

        return in_any(self.conditions, of)


@dataclass(frozen=True, slots=True)
class _Pruner:
    """Excludes manifests and data files in which no row can meet all ``conditions``."""

    schema: TableSchema
    conditions: Sequence[ColumnTest]
    buckets: Collection[int] | None
    read_schema: SchemaReader

    def of_manifests(self, manifests: Sequence[ManifestMeta]) -> Mask:
        mask = np.array([self._may_have_bucket(manifest) for manifest in manifests], np.bool_)
        conditions = self._on_partitions
        if conditions and manifests:
            stats = [manifest.partition_stats for manifest in manifests]
            known = _MinMaxStatistics(
                BytesColumn.of([each.min_values for each in stats]),
                BytesColumn.of([each.max_values for each in stats]),
                ListColumn.of_numbers([each.null_counts for each in stats]),
                np.array([m.num_added_files + m.num_deleted_files for m in manifests], np.int64),
            )
            mask &= known.may_meet(conditions, self._partition_fields)
        return mask

    def by_place(self, columns: ManifestColumns) -> Mask:
        mask = np.ones(len(columns), np.bool_)
        if self.buckets is not None:
            mask &= np.isin(columns.bucket.numbers, list(self.buckets))
        mask &= HashedBuckets(self.schema, self.conditions, self.read_schema).mask(columns)
        if self._on_partitions:
            values, ones = columns.partition, np.ones(len(columns), np.int64)
            mask &= _MinMaxStatistics(values, values, None, ones).may_meet(
                self._on_partitions, self._partition_fields
            )
        return mask

    def by_statistics(self, columns: ManifestColumns) -> Mask:
        conditions = self._on_keys if self.schema.primary_keys else self._on_values
        by = self._by_keys if self.schema.primary_keys else self._by_values
        return self._by_schema(columns, by) if conditions else np.ones(len(columns), np.bool_)

    def by_merged_values(self, places: Sequence[Positions], columns: ManifestColumns) -> Mask:
        keys = {field.name for field in self.schema.key_fields}
        if all(condition.column in keys for condition in self._on_values):
            return np.ones(len(columns), np.bool_)
        may_match = self._by_schema(columns, self._by_values)
        return by_merged_values(self.schema, columns, may_match, places)

    def _by_schema(
        self,
        columns: ManifestColumns,
        by: Callable[[ManifestColumns, Sequence[DataField]], Mask],
    ) -> Mask:
        """Return one mask of all files.

        ``by`` is called with the files of one schema at a time, and returns their mask.
        """
        mask = np.ones(len(columns), np.bool_)
        for schema_id in np.unique(columns.schema_id.numbers).tolist():
            rows = np.flatnonzero(columns.schema_id.numbers == schema_id)
            mask[rows] = by(columns.take(rows), self.read_schema(schema_id).fields)
        return mask

    @property
    def _partition_fields(self) -> list[DataField]:
        return _named(self.schema.fields, self.schema.partition_keys)

    @property
    def _on_partitions(self) -> list[ColumnTest]:
        keys = self.schema.partition_keys
        return [condition for condition in self.conditions if condition.column in keys]

    @property
    def _on_keys(self) -> list[ColumnTest]:
        keys = {field.name for field in self.schema.key_fields}
        return [condition for condition in self.conditions if condition.column in keys]

    @property
    def _on_values(self) -> list[ColumnTest]:
        keys = self.schema.partition_keys
        return [condition for condition in self.conditions if condition.column not in keys]

    def _may_have_bucket(self, manifest: ManifestMeta) -> bool:
        least, most = manifest.min_bucket, manifest.max_bucket
        if self.buckets is None or least is None or most is None:
            return True
        return any(least <= bucket <= most for bucket in self.buckets)

    def _by_keys(self, columns: ManifestColumns, fields: Sequence[DataField]) -> Mask:
        stats = _MinMaxStatistics(
            columns.key_min_values,
            columns.key_max_values,
            columns.key_null_counts,
            columns.row_count.numbers,
        )
        by_id = {field.id: field for field in fields}
        stored = [by_id.get(field.id) for field in self.schema.key_fields]
        covered = [field for field in stored if field is not None]
        if len(covered) < len(stored):
            return np.ones(len(columns), np.bool_)
        return stats.may_meet(self._usable(self._on_keys, covered), covered, self._stored_position)

    def _by_values(self, columns: ManifestColumns, fields: Sequence[DataField]) -> Mask:
        mask = np.ones(len(columns), np.bool_)
        whole = columns.write_cols
        if whole.present is None or whole.present.any():
            return mask  # other files may hold newer values of the same rows
        for names, rows in _by_list(columns.value_stats_cols):
            covered = list(fields) if names is None else _named(fields, names)
            conditions = self._usable(self._on_values, covered)
            part = columns.take(rows)
            stats = _MinMaxStatistics(
                part.value_min_values,
                part.value_max_values,
                part.value_null_counts,
                part.row_count.numbers,
            )
            mask[rows] = stats.may_meet(conditions, covered, self._stored_position)
        return mask

    def _usable(
        self, conditions: Sequence[ColumnTest], covered: Sequence[DataField]
    ) -> list[ColumnTest]:
        """Return the conditions that statistics of the fields ``covered`` can decide.

        These are the conditions on columns that have the same type in ``covered`` as in the table
        now. Columns are compared by field id, because they may have been renamed.
        """
        stored = {field.id: field.type for field in covered}
        now = {field.name: field for field in self.schema.fields}
        return [
            condition
            for condition in conditions
            if condition.column in now
            and (found := stored.get(now[condition.column].id)) is not None
            and with_nullability(found, nullable=True)
            == with_nullability(now[condition.column].type, nullable=True)
        ]

    def _stored_position(self, column: str, covered: Sequence[DataField]) -> int:
        """Return the position of the table's column ``column`` among the fields ``covered``.

        The field is found by its id, because the column may have been renamed.
        """
        [wanted] = [field.id for field in self.schema.fields if field.name == column]
        return [field.id for field in covered].index(wanted)


def _position(column: str, covered: Sequence[DataField]) -> int:
    return [field.name for field in covered].index(column)


@dataclass(frozen=True, slots=True)
class _MinMaxStatistics:
    """The minimum values, maximum values and null counts of each file or manifest.

    The values are framed binary rows. If ``nulls`` is None, ``least`` and ``most`` are one object,
    which holds the exact partition values.
    """

    least: BytesColumn
    most: BytesColumn
    nulls: ListColumn | None
    row_counts: Positions

    def may_meet(
        self,
        conditions: Sequence[ColumnTest],
        covered: Sequence[DataField],
        position_of: Callable[[str, Sequence[DataField]], int] = _position,
    ) -> Mask:
        """Return a mask of the files or manifests that may have rows meeting all conditions.

        ``covered`` are the fields of the statistics. If the statistics of a file or manifest have
        another number of fields, it is not excluded.
        """
        mask = np.ones(len(self.least), np.bool_)
        telling = np.flatnonzero(self._covers(len(covered)))
        if not conditions or not len(telling):
            return mask
        types = [field.type for field in covered]
        least = FramedRows(self.least.take(telling).to_arrow(), types)
        most = least
        if self.most is not self.least:
            most = FramedRows(self.most.take(telling).to_arrow(), types)
        for condition in conditions:
            position = position_of(condition.column, covered)
            first = least.column(position)
            bounds = Bounds(
                first,
                first if most is least else most.column(position),
                self._null_counts(position, telling, first),
                pa.array(self.row_counts[telling]),
            )
            mask[telling] &= may_meet(condition, bounds, types[position])
        return mask

    def _covers(self, arity: int) -> Mask:
        covers: Mask = _arities(self.least) == arity
        covers &= _arities(self.most) == arity
        if self.nulls is not None:
            covers &= self.nulls.counts == arity
        return covers

    def _null_counts(self, position: int, rows: Positions, values: pa.Array) -> pa.Array:
        if self.nulls is None:
            return values.is_null().cast(pa.int64())
        items = self.nulls.items
        assert isinstance(items, NumberColumn)
        found = items.take(self.nulls.starts[rows] + position)
        return pa.array(found.numbers, mask=None if found.present is None else ~found.present)


def _arities(rows: BytesColumn) -> Positions:
    """Return the number of fields of each framed row; -1 for bytes too short for a row."""
    arities = rows.words(0).view(np.uint32)[::2].byteswap().astype(np.int64)
    return np.where(rows.sizes < _EMPTY_ROW_SIZE, -1, arities)


def _named(fields: Sequence[DataField], names: Sequence[str]) -> list[DataField]:
    by_name = {field.name: field for field in fields}
    if any(name not in by_name for name in names):
        return []
    return [by_name[name] for name in names]


def _by_list(column: ListColumn) -> Iterator[tuple[tuple[str, ...] | None, Positions]]:
    """Yield each distinct list of names, None for null, with the positions of the files that have
    it.
    """
    rest = np.arange(len(column))
    if column.present is not None:
        yield None, rest[~column.present]
        rest = rest[column.present]
    while len(rest):
        same = equal_lists(column, rest, int(rest[0]))
        [names] = column.take(rest[:1]).texts()
        yield names, rest[same]
        rest = rest[~same]
