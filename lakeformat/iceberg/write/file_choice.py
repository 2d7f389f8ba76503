# SPDX-License-Identifier: Apache-2.0
"""Choices of whole files to remove from a table, by their partitions alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.errors import UnsupportedError
from lakeformat.iceberg.arrow_types import to_arrow_type
from lakeformat.iceberg.metadata.manifest import DATA
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.partition_spec import PartitionSpec
from lakeformat.iceberg.transforms import TransformKind, parse_transform
from lakeformat.rows.conditions.filter import PredicateFilter

__all__ = ["AllFiles", "FileChoice", "FilesOfPartitions", "FilesWhere"]


class FileChoice(Protocol):
    """Chooses live files of one partition spec, data files and delete files alike."""

    def mask(self, metadata: TableMetadata, spec: PartitionSpec, entries: pa.Table) -> pa.Array:
        """Return True for each entry whose file is chosen; raise if that is not known."""
        ...


class AllFiles:
    """Chooses every file."""

    def mask(self, metadata: TableMetadata, spec: PartitionSpec, entries: pa.Table) -> pa.Array:
        return pa.repeat(pa.scalar(True), len(entries))


@dataclass(frozen=True, slots=True)
class FilesOfPartitions:
    """Chooses the files in the same partitions as some new files."""

    added: pa.Table
    """The entries of the new files, all of one spec."""

    def mask(self, metadata: TableMetadata, spec: PartitionSpec, entries: pa.Table) -> pa.Array:
        if not len(self.added) or self.added.column("spec_id")[0].as_py() != spec.spec_id:
            return pa.repeat(pa.scalar(False), len(entries))
        wanted = set(map(repr, self.added.column("partition").to_pylist()))
        found = map(repr, entries.column("partition").to_pylist())
        return pa.array([each in wanted for each in found], pa.bool_())


@dataclass(frozen=True, slots=True)
class FilesWhere:
    """Chooses the files of which all rows meet a condition on columns that are partitions."""

    condition: PredicateFilter

    def mask(self, metadata: TableMetadata, spec: PartitionSpec, entries: pa.Table) -> pa.Array:
        places = {name: _identity_place(metadata, spec, name) for name in self.condition.columns}
        unknown = sorted(name for name, place in places.items() if place is None)
        if unknown:
            return _unknown(metadata, spec, entries, unknown)
        partitions = entries.column("partition").combine_chunks()
        columns = {}
        for name, place in places.items():
            field = metadata.schema.named(name)
            assert field is not None
            assert place is not None
            columns[name] = partitions.field(place).cast(to_arrow_type(field.type))
        batch = pa.RecordBatch.from_pydict(columns)
        return pc.fill_null(self.condition.mask(batch), False)


def _identity_place(metadata: TableMetadata, spec: PartitionSpec, name: str) -> int | None:
    """Return the place of the field of a partition that has a column's values unchanged."""
    column = metadata.schema.named(name)
    for place, field in enumerate(spec.fields):
        is_identity = parse_transform(field.transform).kind is TransformKind.IDENTITY
        if is_identity and column is not None and field.source_ids == (column.id,):
            return place
    return None


def _unknown(
    metadata: TableMetadata, spec: PartitionSpec, entries: pa.Table, names: list[str]
) -> pa.Array:
    """Raise if data files may hold chosen rows beside rows to keep; delete files are kept."""
    count = pc.sum(pc.equal(entries.column("content"), DATA)).as_py() or 0
    if count:
        raise UnsupportedError(
            f"{count} files of {metadata.location} may hold some of these rows beside other ones: "
            f"in partition spec {spec.spec_id} {', '.join(names)} is not a partition by itself, "
            "and this version removes whole files only. Name columns that are partitions of every "
            "file, or delete the rows with Spark"
        )
    return pa.repeat(pa.scalar(False), len(entries))
