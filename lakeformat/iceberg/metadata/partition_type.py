# SPDX-License-Identifier: Apache-2.0
"""The types of partition values: each follows from a transform and the type of its column."""

from __future__ import annotations

import re

from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.partition_spec import PartitionField, PartitionSpec
from lakeformat.iceberg.types import Field, PrimitiveType, StructType, Type

__all__ = ["partition_type", "transform_result"]

_OF_SOURCE = re.compile(r"identity|void|truncate\[\d+\]", re.ASCII)
_INT = re.compile(r"bucket\[\d+\]|years?|months?|hours?", re.ASCII)
_DAY = re.compile("days?")
_STRING = PrimitiveType("string")


def partition_type(metadata: TableMetadata, spec: PartitionSpec) -> StructType:
    """Return the fields of a partition under one spec, with the ids of the partition fields."""
    return StructType(tuple(_field(metadata, each) for each in spec.fields))


def transform_result(transform: str, source: Type | None) -> Type:
    """Return the type of a transform's values; that of an unknown transform is ``string``."""
    if _INT.fullmatch(transform):
        return PrimitiveType("int")
    if _DAY.fullmatch(transform):
        return PrimitiveType("date")
    if _OF_SOURCE.fullmatch(transform) and source is not None:
        return source
    return _STRING


def _field(metadata: TableMetadata, field: PartitionField) -> Field:
    source = _source_type(field.source_id, metadata)
    return Field(field.field_id, field.name, transform_result(field.transform, source))


def _source_type(field_id: int, metadata: TableMetadata) -> Type | None:
    """Return the newest type of a column, also of one that was dropped."""
    older = sorted(metadata.schemas, key=lambda schema: schema.schema_id, reverse=True)
    for schema in (metadata.schema, *older):
        if (found := schema.field(field_id)) is not None:
            return found.type
    return None
