# SPDX-License-Identifier: Apache-2.0
"""Finds the types of partition values, from the transform and the type of the column."""

from __future__ import annotations

from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.partition_spec import PartitionField, PartitionSpec
from lakeformat.iceberg.transforms import TransformKind, parse_transform
from lakeformat.iceberg.types import Field, PrimitiveType, StructType, Type

__all__ = ["partition_type", "transform_result"]


def partition_type(metadata: TableMetadata, spec: PartitionSpec) -> StructType:
    """Return the partition type of a spec: a struct of its partition fields with their ids."""
    return StructType(tuple(_field(metadata, each) for each in spec.fields))


def transform_result(transform: str, source: Type | None) -> Type:
    """Return the type of the values of a transform.

    The result is ``string`` if the transform is unknown. It is also ``string`` if ``source`` is
    None and the transform needs a source type.
    """
    match parse_transform(transform).kind:
        case TransformKind.IDENTITY | TransformKind.TRUNCATE | TransformKind.VOID if source:
            return source
        case TransformKind.DAY:
            return PrimitiveType("date")
        case TransformKind.BUCKET | TransformKind.YEAR | TransformKind.MONTH | TransformKind.HOUR:
            return PrimitiveType("int")
    return PrimitiveType("string")


def _field(metadata: TableMetadata, field: PartitionField) -> Field:
    source = _source_type(field.source_id, metadata)
    return Field(field.field_id, field.name, transform_result(field.transform, source))


def _source_type(field_id: int, metadata: TableMetadata) -> Type | None:
    """Return the newest type of a column, even if it was dropped; None if no schema has it."""
    older = sorted(metadata.schemas, key=lambda schema: schema.schema_id, reverse=True)
    for schema in (metadata.schema, *older):
        if (found := schema.field(field_id)) is not None:
            return found.type
    return None
