# SPDX-License-Identifier: Apache-2.0
"""Chooses whole files to remove, by their partitions and statistics alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.errors import UnsupportedError
from lakeformat.iceberg.arrow_types import to_arrow_type
from lakeformat.iceberg.metadata.manifest import DATA, EQUALITY_DELETES
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.partition_spec import PartitionSpec
from lakeformat.iceberg.read.entry_columns import (
    EntryColumns,
    is_unpartitioned,
    partition_columns,
    scopes,
)
from lakeformat.iceberg.read.file_pruning import by_partition, by_statistics
from lakeformat.iceberg.read.where import row_filter
from lakeformat.iceberg.transforms import TransformKind, parse_transform
from lakeformat.rows.conditions.filter import PredicateFilter, Where, as_predicate
from lakeformat.rows.conditions.predicate import (
    And,
    Compare,
    Constant,
    IsIn,
    Not,
    Or,
    Predicate,
)
from lakeformat.types.arrow_memory import array_of
from lakeformat.types.count_text import counted

__all__ = [
    "AllFiles",
    "FileChoice",
    "FilesNamed",
    "FilesOfPartitions",
    "FilesWhere",
    "files_where",
    "may_meet",
]


class FileChoice(Protocol):
    """Decides which live data files and delete files are chosen."""

    def mask(self, metadata: TableMetadata, spec: PartitionSpec, entries: pa.Table) -> pa.Array:
        """Return a mask of the chosen files among ``entries``, which all have the partition spec
        ``spec``.

        Raise ``UnsupportedError`` if partitions and statistics do not decide the choice.
        """
        ...


class AllFiles:
    """Chooses every file."""

    def mask(self, metadata: TableMetadata, spec: PartitionSpec, entries: pa.Table) -> pa.Array:
        return pa.repeat(pa.scalar(True), len(entries))


@dataclass(frozen=True, slots=True)
class FilesOfPartitions:
    """Chooses the files that are in the same partitions as new files.

    Files with another partition spec than the new files are never chosen. If the spec has no
    partitions, equality deletes are not chosen, because they also apply to data files of other
    specs.
    """

    added: pa.Table
    """The manifest entries of the new files, which must have one partition spec."""

    def mask(self, metadata: TableMetadata, spec: PartitionSpec, entries: pa.Table) -> pa.Array:
        if not len(self.added) or self.added.column("spec_id")[0].as_py() != spec.spec_id:
            return pa.repeat(pa.scalar(False), len(entries))
        wanted = set(scopes(self.added))
        chosen = pa.array([each in wanted for each in scopes(entries)], pa.bool_())
        if is_unpartitioned(spec):
            is_key = pc.equal(entries.column("content").combine_chunks(), EQUALITY_DELETES)
            return pc.and_not(chosen, is_key)
        return chosen


@dataclass(frozen=True, slots=True)
class FilesNamed:
    """Chooses data files by their URIs."""

    paths: pa.Array

    def mask(self, metadata: TableMetadata, spec: PartitionSpec, entries: pa.Table) -> pa.Array:
        return pc.is_in(entries.column("file_path"), self.paths)


@dataclass(frozen=True, slots=True)
class FilesWhere:
    """Chooses the files whose rows all meet a condition.

    ``mask`` raises ``UnsupportedError`` if only some rows of a file may meet it.
    """

    condition: PredicateFilter
    opposite: PredicateFilter | None = None
    """The negation of ``condition``; a row with a null may meet neither of them.

    None if ``condition`` compares with null.
    """

    def mask(self, metadata: TableMetadata, spec: PartitionSpec, entries: pa.Table) -> pa.Array:
        has_some, chosen = self.masks(metadata, spec, entries)
        if count := pc.sum(pc.and_not(has_some, chosen)).as_py():
            names = ", ".join(sorted(self.condition.columns))
            raise UnsupportedError(
                f"the condition may be met by only some rows of {counted(count, 'file')} of "
                f"{metadata.location}: the partition values (spec {spec.spec_id}) and the column "
                f"bounds of {names} do not prove that all rows of these files meet it. This call "
                "can remove only whole files. Choose whole partitions, or delete the rows with "
                "table.delete(where) and then write the new rows without overwrite"
            )
        return chosen

    def masks(
        self, metadata: TableMetadata, spec: PartitionSpec, entries: pa.Table
    ) -> tuple[pa.Array, pa.Array]:
        """Return a mask of the files that may have matching rows, and a mask of those with only
        matching rows.
        """
        if self.is_decided_by(metadata, spec):
            found = self._by_partition(metadata, spec, entries)
            return found, found
        is_data = pc.equal(entries.column("content"), DATA).combine_chunks()
        has_some = pc.and_(is_data, may_meet(self.condition, metadata, spec, entries))
        if not pc.any(has_some).as_py():
            return has_some, has_some
        return has_some, pc.and_(has_some, self._has_no_other(metadata, spec, entries))

    def is_decided_by(self, metadata: TableMetadata, spec: PartitionSpec) -> bool:
        """Return True if partition values alone decide which rows meet the condition."""
        places = [_identity_place(metadata, spec, name) for name in self.condition.columns]
        return None not in places

    def _by_partition(
        self, metadata: TableMetadata, spec: PartitionSpec, entries: pa.Table
    ) -> pa.Array:
        """Return a mask of the files whose partition values meet the condition."""
        partitions = entries.column("partition").combine_chunks()
        # Gives the batch its number of rows.
        columns = {"file_path": entries.column("file_path").combine_chunks()}
        for name in self.condition.columns:
            field, place = metadata.schema.named(name), _identity_place(metadata, spec, name)
            assert field is not None
            assert place is not None
            columns[name] = partitions.field(place).cast(to_arrow_type(field.type))
        batch = pa.RecordBatch.from_pydict(columns)
        return pc.fill_null(self.condition.mask(batch), False)

    def _has_no_other(
        self, metadata: TableMetadata, spec: PartitionSpec, entries: pa.Table
    ) -> pa.Array:
        """Return a mask of the files whose rows all meet the condition.

        The mask selects no file if ``opposite`` is None, or if the condition has a nested column.
        It leaves out files in which a column of the condition has nulls or no null count.
        """
        names = self.condition.columns
        # Writers may not count all nulls of a field inside of a struct.
        if self.opposite is None or not names <= set(metadata.schema.column_names):
            return pa.repeat(pa.scalar(False), len(entries))
        found = pc.invert(may_meet(self.opposite, metadata, spec, entries))
        for name in names:
            field = metadata.schema.named(name)
            assert field is not None
            nulls = EntryColumns(entries).statistic("null_value_counts", field.id)
            found = pc.and_(found, pc.fill_null(pc.equal(nulls, 0), False))
        return found


def files_where(metadata: TableMetadata, where: Where) -> FilesWhere:
    """Return the choice of the files whose rows all meet a condition of the caller.

    Raise ``InvalidRequestError`` for a condition that does not fit the table.
    """
    schema = metadata.schema
    condition = row_filter(metadata, schema, where, None)
    assert condition is not None
    opposite = None
    if not _has_null(condition.predicate):
        opposite = row_filter(metadata, schema, Not(as_predicate(where)), None)
    return FilesWhere(condition, opposite)


def may_meet(
    condition: PredicateFilter, metadata: TableMetadata, spec: PartitionSpec, entries: pa.Table
) -> pa.Array:
    """Return a mask of the files that may have a row that meets a condition."""
    tests, schema = condition.conditions(), metadata.schema
    found = by_partition(tests, spec, schema, partition_columns(entries), len(entries))
    found &= by_statistics(tests, schema, EntryColumns(entries))
    return array_of(found)


def _identity_place(metadata: TableMetadata, spec: PartitionSpec, name: str) -> int | None:
    """Return the index of the identity partition field of a column; None if there is none."""
    column = metadata.schema.named(name)
    for place, field in enumerate(spec.fields):
        is_identity = parse_transform(field.transform).kind is TransformKind.IDENTITY
        if is_identity and column is not None and field.source_ids == (column.id,):
            return place
    return None


def _has_null(part: Predicate) -> bool:
    """Return True if a part of the condition compares with null."""
    match part:
        case And(parts) | Or(parts):
            return any(map(_has_null, parts))
        case Not(inner):
            return _has_null(inner)
        case IsIn(values=values):
            return not all(each.is_valid for each in values)
        case Compare(value=value):
            return not value.is_valid
        case Constant(value=value):
            return value is None
    return False
